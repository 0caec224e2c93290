#include "app/model/model_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include "core/error.hpp"
#include "model/requirements.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kFamilysMostPixels = std::int64_t{1} << 24;

// Tokens that are anything but images.
std::vector<TokenId> some_tokens(const ModelConfig& config, std::int64_t count) {
  std::vector<TokenId> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t token = (1 + 7919 * i) % config.text.vocab;
    const bool is_image = config.vision && (token == config.vision->image_token || token == config.vision->video_token);
    tokens.push_back(static_cast<TokenId>(is_image ? 0 : token));
  }
  return tokens;
}

// An image of so many pixels, of any content.
struct SomeImage {
  SomeImage(const VisionConfig& vision, std::int64_t height, std::int64_t width)
      : rows(patches_along(vision, height)),
        columns(patches_along(vision, width)),
        values(static_cast<std::size_t>(rows * columns * vision.patch_values())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = hash_pixel(i);
    }
  }
  [[nodiscard]] PatchView view() const { return {rows, columns, values}; }

  std::int64_t rows;
  std::int64_t columns;
  std::vector<float> values;
};

void read_tokens(Model& model, std::int64_t count) {
  model.clear();
  append_some(model, count);
}

}  // namespace

void append_some(Model& model, std::int64_t count) {
  const std::vector<TokenId> tokens = some_tokens(model.config(), count);
  model.append({tokens, {}});
}

std::int64_t patches_along(const VisionConfig& vision, std::int64_t pixels) {
  return std::max(vision.merge, pixels / vision.patch / vision.merge * vision.merge);
}

void PassCommandOptions::add_to(CLI::App& command, std::int64_t least_prompt) {
  command
      .add_option("--prompt-tokens", prompts,
                  fmt::format("Lengths of prompts and of the contexts for decoding (default: {})",
                              fmt::join(usual_prompts, " ")))
      ->transform(whole_number(least_prompt));
  command
      .add_option("--image-size", image,
                  fmt::format("Size of an image: HEIGHT WIDTH in pixels (default: {})", usual_image))
      ->expected(2)
      ->transform(whole_number(1));
}

void PassCommandOptions::choose_prompts(std::int64_t context, std::int64_t generated) {
  const std::int64_t most = context - generated;
  if (most < 1) {
    throw Error(
        fmt::format("a context of {} tokens has no room for a prompt and {} generated ones: give a larger "
                    "--context",
                    context, generated));
  }
  for (const std::int64_t tokens : prompts) {
    if (tokens > most) {
      throw Error(
          fmt::format("a prompt of {} tokens and {} generated ones exceed the context of {}: give a "
                      "larger --context or a smaller --prompt-tokens",
                      tokens, generated, context));
    }
  }
  if (!prompts.empty()) {
    return;
  }
  std::copy_if(usual_prompts.begin(), usual_prompts.end(), std::back_inserter(prompts),
               [&](std::int64_t tokens) { return tokens <= most; });
  if (prompts.size() < usual_prompts.size()) {
    prompts.push_back(most);
    fmt::print(
        stderr, "pascaline: the context of {} has no room for prompts of {} tokens; one of {} is taken instead\n",
        context,
        fmt::join(usual_prompts.begin() + static_cast<std::ptrdiff_t>(prompts.size()) - 1, usual_prompts.end(), ", "),
        most);
  }
}

std::int64_t most_pixels(const ModelFolder& model) {
  const std::filesystem::path file = preprocessor_file(model.path());
  return std::filesystem::exists(file) ? read_preprocessor_config(file).longest_edge : kFamilysMostPixels;
}

ModelRequest request_of(const ModelFolder& model, const PassCommandOptions& sizes, std::int64_t generated) {
  ModelRequest request;
  request.is_all = true;
  for (const std::int64_t tokens : sizes.prompts) {
    request.tokens = std::max(request.tokens, tokens + generated);
  }
  if (sizes.image.empty()) {
    return request;
  }
  const VisionConfig& vision = vision_of(model.config());
  const std::int64_t most = most_pixels(model);
  if (sizes.image[0] > most / sizes.image[1]) {
    throw Error(
        fmt::format("an image of {} x {} pixels; the model takes at most {} pixels: give a smaller "
                    "--image-size",
                    sizes.image[0], sizes.image[1], most));
  }
  const std::int64_t rows = patches_along(vision, sizes.image[0]);
  const std::int64_t columns = patches_along(vision, sizes.image[1]);
  request.images = 1;
  request.patches = rows * columns;
  request.longest_side = std::max(rows, columns);
  return request;
}

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
  const auto image = std::make_shared<SomeImage>(vision_of(model.config()), height, width);
  return {"image", fmt::format("image of {} x {} patches", image->rows, image->columns), [] {},
          [&model, image] {
            const PatchView view = image->view();
            (void)model.encode({&view, 1});
          }};
}

std::int64_t image_prompt_tokens(const ModelConfig& config, std::int64_t height, std::int64_t width) {
  const VisionConfig& vision = vision_of(config);
  return patches_along(vision, height) * patches_along(vision, width) / (vision.merge * vision.merge) + 1;
}

ModelPass image_prompt_pass(Model& model, std::int64_t height, std::int64_t width) {
  const auto image = std::make_shared<SomeImage>(vision_of(model.config()), height, width);
  std::vector<TokenId> tokens = some_tokens(model.config(), 1);
  tokens.resize(static_cast<std::size_t>(image_prompt_tokens(model.config(), height, width)),
                static_cast<TokenId>(vision_of(model.config()).image_token));
  return {"image_prompt",
          fmt::format("prompt of {} tokens that is an image of {} x {} patches", tokens.size(), image->rows,
                      image->columns),
          [&model] { model.clear(); },
          [&model, image, tokens] {
            const PatchView view = image->view();
            model.clear();
            model.append({tokens, {&view, 1}});
          }};
}

std::vector<LaunchSum> observe_pass(ModelSession& session, const ModelPass& pass,
                                    const std::function<void()>& between) {
  Dispatcher* const dispatcher = session.executor().dispatcher();
  const FusionDecisions& fusion = session.model().fusion();
  if (dispatcher == nullptr) {
    throw Error("the model has no dispatcher to observe");
  }
  pass.prepare();
  pass.run();  // compiles what is new
  pass.prepare();
  std::vector<LaunchSum> sums;
  dispatcher->observe([&](const Prepared& prepared, double time_us) {
    const FusionDecisions::Decision* const site = fusion.present();
    const std::string_view kind = site != nullptr ? site->key.kernel().text() : std::string_view();
    auto found = std::find_if(sums.begin(), sums.end(),
                              [&](const LaunchSum& sum) { return sum.prepared == &prepared && sum.site == kind; });
    if (found == sums.end()) {
      const char* const alternative = site != nullptr ? site->candidates[site->choice.candidate].name : "";
      found = sums.insert(sums.end(), LaunchSum{&prepared, std::string(kind), alternative, 0, 0});
    }
    ++found->count;
    found->time_us += time_us;
    if (between) {
      between();
    }
  });
  try {
    if (between) {
      between();
    }
    pass.run();
  } catch (...) {
    dispatcher->observe({});
    throw;
  }
  dispatcher->observe({});
  return sums;
}

}  // namespace pascaline
