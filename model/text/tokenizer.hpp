#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/added_tokens.hpp"
#include "model/text/vocabulary.hpp"

namespace pascaline {

struct TokenizerParts;

/// What is done with added tokens (`<|im_end|>` and the like) that are spelled out in a text.
enum class AddedTokens {
  match,   ///< they become their ids: for templates and trusted text
  ignore,  ///< they are text like any other: for whatever a user wrote
};

/// What is done with special tokens when ids become text.
enum class SpecialTokens { keep, skip };

/// Byte-level byte-pair encoding as a model folder's tokenizer.json or a GGUF file (build_gguf_tokenizer) describes it:
/// added tokens, normalisation, split patterns, merges. Immutable: several threads may use one at a time.
class Tokenizer {
 public:
  /// Reads `file`, with the added tokens of the files beside it (`load_tokenizer_file`). `embedding_rows` is how many
  /// ids the model has, 0 if unknown: ids from the last token's to it have no text, ids beyond are wrong. Throws
  /// SpaceError (file, JSON pointer) if the file is damaged or of another kind: another model type, normaliser,
  /// splitting, post-processing or decoder (see tokenizer_settings.hpp); Error if the model has fewer ids than the
  /// file.
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& file, std::size_t embedding_rows = 0);
  /// The same from the text of such a file alone; `file` is its name in messages.
  [[nodiscard]] static Tokenizer parse(std::string_view text, const std::string& file, std::size_t embedding_rows = 0);

  /// Of parts that were built from `file`. Error if the model has fewer ids than they.
  [[nodiscard]] static Tokenizer of_parts(TokenizerParts parts, const std::string& file, std::size_t embedding_rows);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  /// Ids of a text. Bytes that are no UTF-8 count as U+FFFD (one a maximal subpart, see valid_utf8); NUL is a
  /// character like others. With AddedTokens::ignore no special token comes out, whatever the text. Throws Error if
  /// the text has more than 1 GiB or splitting it reaches a limit of PCRE2.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, AddedTokens added) const;

  /// Text of ids. Ids without a token give nothing; bytes that are no UTF-8 give U+FFFD. Throws Error for ids below
  /// 0 or not below id_count().
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, SpecialTokens special) const;

  /// Bytes of one token, which need not be whole characters; empty if the id has none (or, on demand, is special).
  /// Valid while the tokenizer is. Throws Error for ids below 0 or not below id_count().
  [[nodiscard]] std::string_view bytes(TokenId id, SpecialTokens special = SpecialTokens::keep) const;
  /// The token with exactly these bytes, e.g. "<|im_end|>".
  [[nodiscard]] std::optional<TokenId> find(std::string_view bytes) const;
  /// The same; throws Error if there is none, naming the place of the tokens (file and, in GGUF, key), the token and
  /// who needs it: `need`, as in "which images need".
  [[nodiscard]] TokenId require(std::string_view bytes, std::string_view need = "which is needed") const;
  /// The token that a text begins with that no chat template renders, if there is one. `encode` does not add it.
  [[nodiscard]] std::optional<TokenId> beginning() const noexcept;
  /// Whether the id is a special token's.
  [[nodiscard]] bool is_special(TokenId id) const noexcept;
  /// Whether white space beside the token belongs to it, as `encode` has it where it finds the token itself.
  [[nodiscard]] TokenSides sides(TokenId id) const noexcept;
  /// Ids of the special tokens, ascending.
  [[nodiscard]] const std::vector<TokenId>& special_ids() const noexcept;
  /// How many ids there are: the model's embedding rows if they are known, else one more than the last token's id.
  [[nodiscard]] std::size_t id_count() const noexcept;
  /// How many tokens there are.
  [[nodiscard]] std::size_t token_count() const noexcept;

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

  std::unique_ptr<const TokenizerParts> parts_;
};

}  // namespace pascaline
