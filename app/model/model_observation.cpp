#include "app/model/model_observation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace pascaline {
namespace {

// Whether the image is looked at in a prompt, which the context must have room for; `request` then counts it.
bool fit_image(const ModelCommandOptions& model, const PassCommandOptions& sizes, const ModelFolder& folder,
               ModelRequest& request) {
  if (sizes.image.empty()) {
    return false;
  }
  const std::int64_t tokens = image_prompt_tokens(folder.config(), sizes.image[0], sizes.image[1]);
  const std::int64_t context = model.prompt_limits(folder).context;
  if (tokens > context) {
    fmt::print(stderr,
               "pascaline: the context of {} has no room for a prompt with the image, of {} tokens; what such a prompt "
               "launches after the vision tower is left out: give a larger --context or a smaller --image-size\n",
               context, tokens);
    return false;
  }
  request.tokens = std::max(request.tokens, tokens);
  return true;
}

// The largest of a few usual sizes that the model takes and its context has room for; none if there is no such.
std::vector<std::int64_t> usual_image(const ModelCommandOptions& model, const ModelFolder& folder) {
  constexpr std::array<std::int64_t, 6> kSides{1024, 512, 256, 128, 64, 32};
  if (!folder.config().vision) {
    return {};
  }
  const std::int64_t context = model.prompt_limits(folder).context;
  for (const std::int64_t side : kSides) {
    const std::int64_t tokens = image_prompt_tokens(folder.config(), side, side);
    const bool allowed = model.most_image_tokens == 0 || tokens <= model.most_image_tokens;
    if (side * side <= most_pixels(folder) && tokens <= context && allowed) {
      return {side, side};
    }
  }
  return {};
}

}  // namespace

ObservedModel open_observed(ModelCommandOptions model, PassCommandOptions sizes) {
  model.no_graph = true;  // every launch by itself
  model.observe_only = true;
  model.require_kernels();
  ModelFolder folder = model.read_for_numbers();
  if (sizes.image.empty()) {
    sizes.image = usual_image(model, folder);
  }
  sizes.choose_prompts(model.prompt_limits(folder).context, kObservedSteps);
  ModelRequest request = request_of(folder, sizes, kObservedSteps);
  const bool image_fits = fit_image(model, sizes, folder, request);
  ObservedModel observed;
  observed.session = model.open(std::move(folder), request);
  Model& opened = observed.session->model();
  for (const std::int64_t tokens : std::set<std::int64_t>(sizes.prompts.begin(), sizes.prompts.end())) {
    observed.passes.push_back(prefill_pass(opened, tokens));
    observed.passes.push_back(decode_pass(opened, tokens));
  }
  if (!sizes.image.empty()) {
    const auto make = image_fits ? image_prompt_pass : image_pass;
    observed.passes.push_back(make(opened, sizes.image[0], sizes.image[1]));
  }
  return observed;
}

std::string phase_of(const ModelPass& pass) {
  return pass.name == "prefill" ? "prompt" : pass.name == "decode" ? "token" : "image";
}

std::int64_t ObservedPass::single_launches() const {
  std::int64_t sum = launches;
  for (const ObservedSite& site : sites) {
    sum += site.uses * (site.launches(0) - site.launches(site.choice.candidate));
  }
  return sum;
}

ObservedPass observe_sites(ModelSession& session, const ModelPass& pass) {
  ObservedPass observed{pass.name, pass.per, 0, {}};
  pass.prepare();
  session.model().fusion().count_uses();
  session.executor().observe([&](const ops::KernelProblem&) { ++observed.launches; });
  pass.run();
  session.executor().observe({});
  for (const FusionDecisions::Decision* const decision : session.model().fusion().decisions()) {
    if (decision->uses > 0) {
      observed.sites.push_back({decision->key, decision->what, decision->candidates, decision->choice,
                                static_cast<std::int64_t>(decision->uses)});
    }
  }
  return observed;
}

}  // namespace pascaline
