#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "model/image/image.hpp"
#include "model/image/preprocess.hpp"
#include "model/model_options.hpp"
#include "model/session/model_folder.hpp"
#include "model/text/chat.hpp"

namespace pascaline {

/// Images as patches.
struct FittedImages {
  std::vector<Patches> images;
  std::int64_t max_tokens = 0;  ///< that an image was given, where one had to be made smaller for `room`; else 0

  /// Of all images together.
  [[nodiscard]] std::int64_t patches() const noexcept;
};

/// Cuts images into patches as the preprocessor does; if they take more than `room` tokens together, those that have
/// most are made smaller, all to one limit. Throws Error, which ends with `advice`, if no limit makes them fit, and as
/// `preprocess` does, with the image's name.
[[nodiscard]] FittedImages fit_images(const PreprocessorConfig& preprocessor, std::span<const Image> images,
                                      std::int64_t room, std::string_view advice = {});

/// What a prompt and its answer may take.
struct PromptLimits {
  std::int64_t context = 0;            ///< tokens of both together
  std::int64_t used = 0;               ///< tokens of the context that a conversation has already
  std::int64_t answer = 1;             ///< tokens of the answer that must find room
  std::int64_t usual_answer = 512;     ///< that images made smaller leave room for, or for a quarter of what is left
  std::int64_t most_image_tokens = 0;  ///< of one image; 0: what the preprocessor allows, and fits the context
};

/// A prompt that a model can read.
struct ChatPrompt {
  std::vector<TokenId> tokens;
  FittedImages images;

  /// For `ModelOptions::request`, with an answer of so many tokens.
  [[nodiscard]] ModelRequest request(std::int64_t answer) const;
};

/// The patches of images for a prompt whose text takes `text_tokens`. Throws Error, with the options that help, if
/// they do not fit the context, and as `fit_images` does.
[[nodiscard]] FittedImages fit_prompt_images(const ModelFolder& model, std::span<const Image> images,
                                             std::int64_t text_tokens, const PromptLimits& limits);

/// Encodes messages with their images, in order. Throws Error, with the options that help, if prompt and answer do
/// not fit the context, and as `fit_prompt_images` and `encode_chat` do.
[[nodiscard]] ChatPrompt make_prompt(const ModelFolder& model, std::span<const ChatMessage> messages,
                                     std::span<const Image> images, const PromptLimits& limits);

/// Encodes a text that is to be continued as it is, without a chat template; special tokens that are spelled out in it
/// become their ids. Throws Error, with the options that help, if it and the answer do not fit the context, if it has
/// no tokens, and as `ModelFolder::encode_plain` does.
[[nodiscard]] ChatPrompt make_raw_prompt(const ModelFolder& model, std::string_view text, const PromptLimits& limits);

/// Tokens of each image; throws as `vision_of` if there are some.
[[nodiscard]] std::vector<std::size_t> tokens_of(std::span<const Patches> images, const ModelConfig& config);

}  // namespace pascaline
