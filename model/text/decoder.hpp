#pragma once

#include <string>

#include "model/text/tokenizer.hpp"

namespace pascaline {

/// Text of ids that come one after another. What it gives, put together, is what Tokenizer::decode gives for all of
/// them: a character whose bytes are not all there yet is held back.
class StreamDecoder {
 public:
  /// The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::skip)
      : tokenizer_(&tokenizer), special_(special) {}

  /// The text that this id completes; may be empty. Throws Error for an id out of range, and then has not changed.
  [[nodiscard]] std::string push(TokenId id);
  /// What is held back, as U+FFFD; empty if nothing is. The decoder is as new then.
  [[nodiscard]] std::string finish();
  /// Whether something is held back.
  [[nodiscard]] bool is_within_character() const noexcept { return !held_.empty(); }

 private:
  const Tokenizer* tokenizer_;
  SpecialTokens special_;
  std::string held_;  // the beginning of a character: three bytes at most
};

}  // namespace pascaline
