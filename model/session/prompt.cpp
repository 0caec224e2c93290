#include "model/session/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "model/model.hpp"
#include "model/requirements.hpp"

namespace pascaline {
namespace {

// Work on one of several images, whose errors name it.
template <typename Work>
auto on_image(std::span<const Image> images, std::size_t index, const Work& work) {
  try {
    return work(images[index]);
  } catch (const Error& error) {
    const std::string& name = images[index].name;
    throw Error(fmt::format("{}: {}", name.empty() ? fmt::format("image {}", index + 1) : name, error.what()));
  }
}

std::int64_t token_sum(std::span<const Image> images, const PreprocessorConfig& preprocessor) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    sum += on_image(images, i, [&](const Image& image) {
      return image_tokens(target_size(image.height, image.width, preprocessor), preprocessor);
    });
  }
  return sum;
}

// The largest limit an image with which all take `room` tokens at most; 0 if there is none. A limit is not kept to the
// token (ratios are kept, sides are whole), so it is looked for.
std::int64_t common_limit(const PreprocessorConfig& preprocessor, std::span<const Image> images, std::int64_t room) {
  std::int64_t fits = 0;
  std::int64_t beyond = room + 1;
  while (beyond - fits > 1) {
    const std::int64_t limit = fits + (beyond - fits) / 2;
    (token_sum(images, limit_tokens(preprocessor, limit)) <= room ? fits : beyond) = limit;
  }
  return fits;
}

// For the tokens of a prompt's text, and an answer.
void require_room(std::int64_t text, const char* beside, const PromptLimits& limits) {
  if (text > limits.context - limits.used - limits.answer) {
    throw Error(
        fmt::format("a prompt of {} tokens{} and an answer of up to {} do not fit the context of {}; ask for a "
                    "larger one with --context{}",
                    text, beside, limits.answer, limits.context,
                    limits.answer > 1 ? ", or for a shorter answer with --max-tokens" : ""));
  }
}

}  // namespace

std::int64_t FittedImages::patches() const noexcept {
  return std::accumulate(images.begin(), images.end(), std::int64_t{0},
                         [](std::int64_t sum, const Patches& image) { return sum + image.grid.rows(); });
}

FittedImages fit_images(const PreprocessorConfig& preprocessor, std::span<const Image> images, std::int64_t room,
                        std::string_view advice) {
  FittedImages result;
  PreprocessorConfig own = preprocessor;
  if (const std::int64_t wanted = token_sum(images, preprocessor); wanted > room) {
    result.max_tokens = common_limit(preprocessor, images, room);
    if (result.max_tokens == 0) {
      throw ContextFullError(
          fmt::format("{} images of {} tokens together cannot be made small enough for the {} tokens of the "
                      "context that are left for them{}",
                      images.size(), wanted, std::max<std::int64_t>(room, 0), advice));
    }
    own = limit_tokens(preprocessor, result.max_tokens);
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    result.images.push_back(on_image(images, i, [&](const Image& image) { return preprocess(image, own); }));
  }
  return result;
}

FittedImages fit_prompt_images(const ModelFolder& model, std::span<const Image> images, std::int64_t text_tokens,
                               const PromptLimits& limits) {
  if (images.empty()) {
    return {};
  }
  const std::int64_t room = limits.context - limits.used - text_tokens - limits.answer;
  if (limits.most_image_tokens == 0) {
    const std::int64_t spared =
        std::min(std::max<std::int64_t>(room / 4, 0), std::max<std::int64_t>(limits.usual_answer - limits.answer, 0));
    return fit_images(model.preprocessor(), images, room - spared,
                      fmt::format("; ask for a larger one with --context (it is {})", limits.context));
  }
  const PreprocessorConfig own = limit_tokens(model.preprocessor(), limits.most_image_tokens);
  if (const std::int64_t wanted = token_sum(images, own); wanted > room) {
    throw ContextFullError(
        fmt::format("{} images of {} tokens together do not fit into the {} tokens that text and answer leave of "
                    "the context of {}; ask for a larger one with --context, or for smaller images with "
                    "--max-image-tokens",
                    images.size(), wanted, std::max<std::int64_t>(room, 0), limits.context));
  }
  return fit_images(own, images, room);
}

std::vector<std::size_t> tokens_of(std::span<const Patches> images, const ModelConfig& config) {
  std::vector<std::size_t> result;
  for (const Patches& image : images) {
    const std::int64_t merge = vision_of(config).merge;
    result.push_back(static_cast<std::size_t>(image.grid.rows() / (merge * merge)));
  }
  return result;
}

ModelRequest ChatPrompt::request(std::int64_t answer) const {
  ModelRequest result;
  result.tokens = static_cast<std::int64_t>(tokens.size()) + answer;
  result.images = static_cast<std::int64_t>(images.images.size());
  result.patches = images.patches();
  for (const Patches& image : images.images) {
    result.longest_side = std::max({result.longest_side, image.grid.h, image.grid.w});
  }
  return result;
}

ChatPrompt make_prompt(const ModelFolder& model, std::span<const ChatMessage> messages, std::span<const Image> images,
                       const PromptLimits& limits) {
  if (!images.empty()) {
    (void)vision_of(model.config());
  }
  const std::vector<std::size_t> ones(images.size(), 1);
  const auto text = static_cast<std::int64_t>(model.encode_messages(messages, ones).size() - images.size());
  require_room(text, images.empty() ? "" : " without its images", limits);
  ChatPrompt prompt;
  prompt.images = fit_prompt_images(model, images, text, limits);
  prompt.tokens = model.encode_messages(messages, tokens_of(prompt.images.images, model.config()));
  return prompt;
}

ChatPrompt make_raw_prompt(const ModelFolder& model, std::string_view text, const PromptLimits& limits) {
  ChatPrompt prompt;
  prompt.tokens = model.encode_plain(text, AddedTokens::match);
  if (prompt.tokens.empty()) {
    throw Error("the prompt has no tokens, so there is nothing to continue; give a text");
  }
  require_room(static_cast<std::int64_t>(prompt.tokens.size()), "", limits);
  return prompt;
}

}  // namespace pascaline
