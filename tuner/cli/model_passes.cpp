#include "tuner/cli/model_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.hpp"

namespace pascaline::cli {
namespace {

// Tokens that are anything but pictures.
std::vector<TokenId> some_tokens(const ModelConfig& config, std::int64_t count) {
  std::vector<TokenId> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t token = (1 + 7919 * i) % config.text.vocab;
    const bool is_picture = token == config.image_token || token == config.video_token;
    tokens.push_back(static_cast<TokenId>(is_picture ? 0 : token));
  }
  return tokens;
}

void read_tokens(Model& model, std::int64_t count) {
  model.clear();
  const std::vector<TokenId> tokens = some_tokens(model.config(), count);
  model.append({tokens, {}});
}

}  // namespace

ModelPass prefill_pass(Model& model, std::int64_t tokens) {
  return {"prefill", fmt::format("prompt of {} tokens, logits of its last token", tokens), [&model] { model.clear(); },
          [&model, tokens] { read_tokens(model, tokens); }};
}

ModelPass decode_pass(Model& model, std::int64_t context) {
  return {"decode", fmt::format("generated token, with {} tokens in the cache", context),
          [&model, context] {
            read_tokens(model, context);
            model.set_sampling({});
            (void)model.sample();
          },
          [&model] { (void)model.step(); }};
}

ModelPass image_pass(Model& model, std::int64_t height, std::int64_t width) {
  const VisionConfig& vision = model.config().vision;
  const std::int64_t rows = std::max(vision.merge, height / vision.patch / vision.merge * vision.merge);
  const std::int64_t columns = std::max(vision.merge, width / vision.patch / vision.merge * vision.merge);
  const auto values =
      std::make_shared<std::vector<float>>(static_cast<std::size_t>(rows * columns * vision.patch_values()));
  for (std::size_t i = 0; i < values->size(); ++i) {
    (*values)[i] = hash_weight("pixel_values", i);
  }
  return {"image", fmt::format("picture of {} x {} patches", rows, columns), [] {},
          [&model, rows, columns, values] {
            const PatchView picture{rows, columns, *values};
            (void)model.encode({&picture, 1});
          }};
}

std::vector<LaunchSum> observe_pass(Executor& executor, const ModelPass& pass) {
  Dispatcher* const dispatcher = executor.dispatcher();
  if (dispatcher == nullptr) {
    throw Error(
        "the model runs on the processor, where there are no kernels to look at; choose a device with --device");
  }
  pass.prepare();
  pass.run();  // compiles what is new
  pass.prepare();
  std::vector<LaunchSum> sums;
  dispatcher->observe([&](const Prepared& prepared, double time_us) {
    auto found =
        std::find_if(sums.begin(), sums.end(), [&](const LaunchSum& sum) { return sum.prepared == &prepared; });
    if (found == sums.end()) {
      found = sums.insert(sums.end(), LaunchSum{&prepared, 0, 0});
    }
    ++found->count;
    found->time_us += time_us;
  });
  try {
    pass.run();
  } catch (...) {
    dispatcher->observe({});
    throw;
  }
  dispatcher->observe({});
  return sums;
}

}  // namespace pascaline::cli
