#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/model/model_options.hpp"
#include "app/model/model_passes.hpp"
#include "app/model/thermal_text.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "cli/model/pass_conditions.hpp"
#include "core/error.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct ProfileCommandOptions {
  ModelCommandOptions model;
  PassCommandOptions sizes{.usual_prompts = {512}, .usual_image = "no image", .prompts = {}, .image = {}};
  bool as_json = false;
};

double total_of(const std::vector<LaunchSum>& sums) {
  double total = 0;
  for (const LaunchSum& sum : sums) {
    total += sum.time_us;
  }
  return total;
}

// What belongs to a site of the model, or to none.
struct SiteSum {
  std::string site;
  std::string alternative;
  std::int64_t launches = 0;
  double time_us = 0;
};

std::vector<SiteSum> by_site(const std::vector<LaunchSum>& sums) {
  std::vector<SiteSum> sites;
  for (const LaunchSum& sum : sums) {
    auto found = std::find_if(sites.begin(), sites.end(), [&](const SiteSum& site) {
      return site.site == sum.site && site.alternative == sum.alternative;
    });
    if (found == sites.end()) {
      found = sites.insert(sites.end(), {sum.site, sum.alternative, 0, 0});
    }
    found->launches += sum.count;
    found->time_us += sum.time_us;
  }
  return sites;
}

json to_json(const ModelPass& pass, const std::vector<LaunchSum>& sums, json card) {
  json launches = json::array();
  for (const LaunchSum& sum : sums) {
    launches.push_back({{"problem", sum.prepared->plan.problem.text()},
                        {"site", sum.site},
                        {"count", sum.count},
                        {"time_us", sum.time_us},
                        {"provenance", name_of(sum.prepared->plan.provenance)},
                        {"reason", sum.prepared->plan.reason},
                        {"config", sum.prepared->plan.config.json()}});
  }
  json sites = json::array();
  for (const SiteSum& site : by_site(sums)) {
    sites.push_back({{"site", site.site},
                     {"alternative", site.alternative},
                     {"launches", site.launches},
                     {"time_us", site.time_us}});
  }
  return {{"pass", pass.name}, {"per", pass.per},      {"time_us", total_of(sums)},
          {"sites", sites},    {"launches", launches}, {"card", std::move(card)}};
}

void print_table(const ModelPass& pass, std::vector<LaunchSum> sums, const std::string& card) {
  const double total = total_of(sums);
  std::stable_sort(sums.begin(), sums.end(),
                   [](const LaunchSum& a, const LaunchSum& b) { return a.time_us > b.time_us; });
  fmt::print("{}: {}, {} in {} kernels\n", pass.name, pass.per, time_text(total), sums.size());
  fmt::print("{:>7} {:>12} {:>12} {:>7}  {:<8} {}\n", "count", "time each", "time", "share", "plan", "problem");
  for (const LaunchSum& sum : sums) {
    fmt::print("{:>7} {:>12} {:>12} {:>6.1f}%  {:<8} {}\n", sum.count,
               time_text(sum.time_us / static_cast<double>(sum.count)), time_text(sum.time_us),
               100 * sum.time_us / total, name_of(sum.prepared->plan.provenance), sum.prepared->plan.problem.text());
  }
  fmt::print("{:>7} {:>12} {:>12} {:>7}  by site of the model, and how it is computed\n", "count", "", "time", "share");
  for (const SiteSum& site : by_site(sums)) {
    fmt::print("{:>7} {:>12} {:>12} {:>6.1f}%  {}\n", site.launches, "", time_text(site.time_us),
               100 * site.time_us / total,
               site.site.empty() ? "(none)" : fmt::format("{}: {}", site.site, site.alternative));
  }
  fmt::print("{}\n", card);
}

int profile(const ProfileCommandOptions& given) {
  ProfileCommandOptions options = given;
  options.model.no_graph = true;
  options.model.require_kernels();
  ModelFolder folder = options.model.read_for_numbers();
  options.sizes.choose_prompts(options.model.prompt_limits(folder).context, kObservedSteps);
  const ModelRequest request = request_of(folder, options.sizes, kObservedSteps);
  if (options.model.plan) {
    options.model.show_plan(folder, request, options.as_json);
    return kSuccess;
  }
  const auto session = options.model.open(std::move(folder), request);
  Model& model = session->model();
  if (session->dispatcher() == nullptr) {
    throw Error("the model runs on the processor, without kernels to time; give --device cuda:N or emulator");
  }
  const Dispatcher& dispatcher = *session->dispatcher();
  std::vector<ModelPass> passes;
  for (const std::int64_t tokens : options.sizes.prompts) {
    passes.push_back(prefill_pass(model, tokens));
    passes.push_back(decode_pass(model, tokens));
  }
  if (!options.sizes.image.empty()) {
    passes.push_back(image_pass(model, options.sizes.image[0], options.sizes.image[1]));
  }
  json all = json::array();
  for (const ModelPass& pass : passes) {
    ConditionsRecorder recorder(dispatcher);
    const std::vector<LaunchSum> sums = observe_pass(*session, pass, [&] { recorder.look(); });
    const PassConditions conditions = recorder.finish();
    if (options.as_json) {
      all.push_back(to_json(pass, sums, conditions_json(conditions, dispatcher)));
    } else {
      print_table(pass, sums, conditions_line(conditions, dispatcher));
    }
  }
  if (options.as_json) {
    fmt::print("{}\n", json{{"device", session->device_name()},
                            {"attention", model.options().attention.name()},
                            {"passes", all},
                            {"thermal", thermal_json(*session)}}
                           .dump(2));
  } else {
    tell_thermal_events(*session);
  }
  return kSuccess;
}

void add_profile_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("profile", "Time every kernel of a prompt and of a decoding step");
  const auto options = std::make_shared<ProfileCommandOptions>();
  options->model.add_to(*command);
  options->model.add_residency_to(*command);
  options->sizes.add_to(*command);
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Each launch is timed separately by device events, with the caches as the preceding launches leave "
      "them.\nA line below each table says how warm the card was, at what clock, whether it slowed down, and by which "
      "objective the\nwinners were chosen that ran.\n\nExample:\n"
      "  pascaline profile --model Qwen3-VL-2B-Instruct --db tuned.db --prompt-tokens 1024");
  command->callback([&action, options] { action = [options] { return profile(*options); }; });
}

const Command kProfileCommand(Heading::models, 4, add_profile_command);

}  // namespace

}  // namespace pascaline::cli
