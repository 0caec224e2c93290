#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/tokenizer.hpp"

namespace pascaline {

/// What the metadata of a GGUF file says of its tokenizer (keys `tokenizer.ggml.…`), not yet checked. A key that the
/// file lacks is nothing here. Texts point into the file's bytes.
struct GgufTokenizerData {
  std::optional<std::string_view> model;                ///< `model`: kind of tokenizer
  std::optional<std::string_view> pre;                  ///< `pre`: how text is split
  std::optional<std::vector<std::string_view>> tokens;  ///< `tokens`, by id
  std::optional<std::vector<std::int64_t>> types;       ///< `token_type`, one a token
  std::optional<std::vector<std::string_view>> merges;  ///< `merges`, two tokens with a space between them
  std::optional<std::int64_t> bos;                      ///< `bos_token_id`
  std::optional<std::int64_t> eos;                      ///< `eos_token_id`
  std::optional<std::int64_t> eot;                      ///< `eot_token_id`
  std::optional<std::int64_t> eom;                      ///< `eom_token_id`
  std::optional<std::int64_t> pad;                      ///< `padding_token_id`
  std::optional<bool> add_bos;                          ///< `add_bos_token`
  std::optional<bool> add_eos;                          ///< `add_eos_token`
  std::optional<bool> add_space_prefix;                 ///< `add_space_prefix`
};

/// A tokenizer with what a GGUF file says of its use.
struct GgufTokenizer {
  Tokenizer tokenizer;
  std::optional<TokenId> bos;  ///< token of beginning
  std::optional<TokenId> pad;
  bool adds_bos = false;      ///< a text that no chat template renders begins with `bos`, which is there then
  std::vector<TokenId> ends;  ///< tokens that end an answer, without duplicates: see gguf_end_tokens
};

/// Builds the tokenizer of a GGUF file whose `tokenizer.ggml.model` is `gpt2` (byte-level byte-pair encoding) and whose
/// `tokenizer.ggml.pre` is known (see pre_tokenizer.hpp). Tokens of control are special, those of the user are added
/// tokens, unused ones have no text. A byte that has no token (SmolLM2 has none for some control characters and some
/// first bytes of UTF-8) is left out of what is encoded, as the Python package tokenizers does. `embedding_rows` as for
/// Tokenizer::load. Throws Error (`file: key 'key': problem`): another kind of tokenizer or splitting, lists that are
/// missing or of unlike lengths, empty or doubled tokens, merges that name no tokens or are doubled, ids out of range,
/// a special token that plain text could give.
[[nodiscard]] GgufTokenizer build_gguf_tokenizer(const GgufTokenizerData& data, const std::string& file,
                                                 std::size_t embedding_rows = 0);

}  // namespace pascaline
