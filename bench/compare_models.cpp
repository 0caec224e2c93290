// The logits of a model beside those of the same model stored otherwise, such as a GGUF file with its projector beside
// a folder: after each token of one prompt, with an image if one is given, and of the tokens that each of the two then
// chooses greedily. The prompt goes through tokenizer, chat template and preprocessor of each, which must agree. Prints
// JSON; exit code 1 if the tokens chosen differ.
//
//   compare_models --model FILE.gguf [--mmproj FILE.gguf] --reference DIR [--weights float32] --prompt TEXT
//   [--image FILE] [--tokens 16] [--device cuda:0] [--target sm_61] [and other options of `pascaline validate`]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/model/logit_agreement.hpp"
#include "app/model/logit_reference.hpp"
#include "app/model/model_options.hpp"
#include "core/error.hpp"
#include "model/image/decode.hpp"
#include "model/session/prompt.hpp"

namespace {

using namespace pascaline;
using Clock = std::chrono::steady_clock;

struct Options {
  ModelCommandOptions model;
  std::string reference;
  std::string prompt = "What is this?";
  std::string image;
  std::int64_t tokens = 16;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// What a model made of the prompt, and the time that loading and running it took.
struct Run {
  ChatPrompt prompt;
  LogitReference logits;
  nlohmann::json described;
};

ChatPrompt prompt_of(const ModelFolder& folder, const Options& options, const PromptLimits& limits) {
  ChatMessage message;
  std::vector<Image> images;
  if (!options.image.empty()) {
    images.push_back(read_image(options.image));
    message.parts.push_back({ChatPart::Kind::image, {}});
  }
  message.parts.push_back({ChatPart::Kind::text, options.prompt});
  return make_prompt(folder, {&message, 1}, images, limits);
}

std::int32_t likeliest(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Reads the prompt, and then as many tokens as are asked for, of which each is the likeliest.
LogitReference answer(Model& model, const ChatPrompt& prompt, std::int64_t tokens) {
  const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
  LogitReference out;
  out.tokens = prompt.tokens;
  std::vector<PatchView> images;
  for (const Patches& image : prompt.images.images) {
    images.push_back({image.grid.h, image.grid.w, image.view()});
  }
  model.clear();
  (void)model.append({out.tokens, images}, [&](std::int64_t, std::span<const float> logits) {
    out.logits.insert(out.logits.end(), logits.begin(), logits.end());
  });
  std::int32_t next = likeliest(std::span(out.logits).last(vocabulary));
  for (std::int64_t i = 0; i < tokens; ++i) {
    out.decode_tokens.push_back(next);
    model.choose(next);
    (void)model.step();
    const std::vector<float> logits = model.logits();
    out.decode_logits.insert(out.decode_logits.end(), logits.begin(), logits.end());
    next = likeliest(logits);
  }
  out.decode_tokens.push_back(next);  // chosen, but not read
  return out;
}

Run run(const ModelCommandOptions& model, const Options& options) {
  Run result;
  Clock::time_point begin = Clock::now();
  ModelFolder folder = model.read_folder();
  PromptLimits limits = model.prompt_limits(folder);
  limits.answer = options.tokens;
  result.prompt = prompt_of(folder, options, limits);
  ModelRequest request = result.prompt.request(options.tokens);
  request.all_logits = request.is_all = true;
  const auto session = model.open(std::move(folder), request);
  const double load = seconds_since(begin);
  begin = Clock::now();
  result.logits = answer(session->model(), result.prompt, options.tokens);
  const ModelMemory memory = session->model().memory();
  result.described = {{"path", model.folder},
                      {"device", session->device_name()},
                      {"weights", session->model().options().weights.name()},
                      {"weight_bytes", memory.weights},
                      {"load_s", load},
                      {"run_s", seconds_since(begin)},
                      {"tokens", result.logits.decode_tokens}};
  return result;
}

void require_same_prompt(const ChatPrompt& own, const ChatPrompt& expected) {
  if (own.tokens != expected.tokens) {
    throw Error("the two models make different tokens of the prompt");
  }
  const std::vector<Patches>& images = own.images.images;
  const std::vector<Patches>& others = expected.images.images;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto here = images[i].view();
    const auto there = others[i].view();
    if (!std::equal(here.begin(), here.end(), there.begin(), there.end())) {
      throw Error("the two models make different patches of the image");
    }
  }
}

void add_rows(LogitAgreement& part, std::span<const float> own, std::span<const float> expected,
              std::size_t vocabulary) {
  for (std::size_t first = 0; first < own.size(); first += vocabulary) {
    part.add(static_cast<std::int64_t>(first / vocabulary) + 1, own.subspan(first, vocabulary),
             expected.subspan(first, vocabulary));
  }
}

nlohmann::json compare(const Run& own, const Run& expected) {
  require_same_prompt(own.prompt, expected.prompt);
  const LogitReference& here = own.logits;
  const LogitReference& there = expected.logits;
  const std::size_t vocabulary = there.logits.size() / there.tokens.size();
  LogitAgreement prompt("prompt");
  add_rows(prompt, here.logits, there.logits, vocabulary);
  // Steps after different tokens are not to be compared.
  const auto apart = std::mismatch(here.decode_tokens.begin(), here.decode_tokens.end(), there.decode_tokens.begin());
  const auto agreeing = static_cast<std::size_t>(apart.first - here.decode_tokens.begin());
  const std::size_t steps = std::min(agreeing, there.decode_tokens.size() - 1);
  LogitAgreement answer("steps");
  add_rows(answer, std::span(here.decode_logits).first(steps * vocabulary),
           std::span(there.decode_logits).first(steps * vocabulary), vocabulary);
  std::int64_t patches = 0;
  for (const Patches& image : own.prompt.images.images) {
    patches += image.grid.rows();
  }
  nlohmann::json parts = nlohmann::json::array({prompt.to_json()});
  if (steps > 0) {
    parts.push_back(answer.to_json());
  }
  return {{"prompt_tokens", here.tokens.size()}, {"patches", patches}, {"tokens_chosen", there.decode_tokens.size()},
          {"tokens_agreeing", agreeing},         {"parts", parts},     {"models", {own.described, expected.described}}};
}

int command(int argc, char** argv) {
  Options options;
  CLI::App app("The logits of a model beside those of the same model stored otherwise");
  options.model.add_to(app);
  options.model.add_residency_to(app);
  app.add_option("--reference", options.reference, "Folder or GGUF file of the model that is compared with")
      ->required();
  app.add_option("-p,--prompt", options.prompt, "What the user says")->capture_default_str();
  app.add_option("-i,--image", options.image, "A PNG, JPEG or WebP image before it");
  app.add_option("-n,--tokens", options.tokens, "Steps after the prompt")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  ModelCommandOptions reference = options.model;
  reference.folder = options.reference;
  reference.projector.clear();
  const Run expected = run(reference, options);
  const Run own = run(options.model, options);
  const nlohmann::json result = compare(own, expected);
  fmt::print("{}\n", result.dump(2));
  return result["tokens_chosen"] == result["tokens_agreeing"] ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_models: %s\n", error.what());
    return 2;
  }
}
