#include "model/text/tokenizer.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "model/text/normalize.hpp"
#include "model/text/tokenizer_folder.hpp"
#include "model/text/tokenizer_parts.hpp"
#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kLongestText = std::size_t{1} << 30U;

// Encodes text that holds no added tokens and is normalised.
class TextEncoder {
 public:
  TextEncoder(const TokenizerParts& parts, std::vector<TokenId>& out)
      : parts_(&parts), pieces_(parts.merges, parts.byte_tokens), out_(&out) {}

  void append(std::string_view text) { split(text, parts_->patterns); }

 private:
  void split(std::string_view text, std::span<const SplitPattern> patterns) {
    if (patterns.empty()) {
      append_piece(text);
      return;
    }
    for (const std::string_view piece : patterns.front().split(text)) {
      split(piece, patterns.subspan(1));
    }
  }
  void append_piece(std::string_view piece) {
    if (parts_->whole_pieces) {
      const std::optional<TokenId> id = parts_->vocabulary.find(piece);
      if (id && parts_->vocabulary.kind(*id) == Vocabulary::Kind::ordinary) {
        out_->push_back(*id);
        return;
      }
    }
    pieces_.append(piece, *out_);
  }

  const TokenizerParts* parts_;
  PieceEncoder pieces_;
  std::vector<TokenId>* out_;
};

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& file, std::size_t embedding_rows) {
  if (std::error_code unseen; !std::filesystem::exists(file, unseen)) {
    throw Error(fmt::format("{}: there is no such file, which text needs; take it from where the model is from",
                            file.string()));
  }
  return of_parts(build_tokenizer(load_tokenizer_file(file, embedding_rows), file.string()), file.string(),
                  embedding_rows);
}

Tokenizer Tokenizer::parse(std::string_view text, const std::string& file, std::size_t embedding_rows) {
  return of_parts(build_tokenizer(read_tokenizer_file(text, file), file), file, embedding_rows);
}

Tokenizer Tokenizer::of_parts(TokenizerParts parts, const std::string& file, std::size_t embedding_rows) {
  if (embedding_rows != 0) {
    if (embedding_rows < parts.id_count) {
      throw Error(
          fmt::format("{}: has token ids up to {}, but the model's embedding has only {} rows; take the tokenizer that "
                      "belongs to the model",
                      file, parts.id_count - 1, embedding_rows));
    }
    parts.id_count = embedding_rows;
  }
  return Tokenizer(std::make_unique<const TokenizerParts>(std::move(parts)));
}

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, AddedTokens added) const {
  if (text.size() > kLongestText) {
    throw Error(fmt::format("cannot encode {} bytes of text at once; give at most {}", text.size(), kLongestText));
  }
  std::vector<TokenId> out;
  TextEncoder encoder(*parts_, out);
  const std::string valid = valid_utf8(text);
  const auto normalised = [this](std::string_view piece) {
    return parts_->normalises ? nfc(piece) : std::string(piece);
  };
  if (added == AddedTokens::ignore) {
    encoder.append(normalised(valid));
    return out;
  }
  const auto on_token = [&out](TokenId id) { out.push_back(id); };
  const auto on_text = [&encoder](std::string_view piece) { encoder.append(piece); };
  parts_->verbatim.split(
      valid, [&](std::string_view piece) { parts_->normalised.split(normalised(piece), on_text, on_token); }, on_token);
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SpecialTokens special) const {
  std::string joined;
  for (const TokenId id : ids) {
    joined += bytes(id, special);
  }
  return valid_utf8(joined);
}

std::string_view Tokenizer::bytes(TokenId id, SpecialTokens special) const {
  if (id < 0 || static_cast<std::size_t>(id) >= parts_->id_count) {
    throw Error(fmt::format("there is no token {}: ids go from 0 to {}", id, parts_->id_count - 1));
  }
  return special == SpecialTokens::skip && is_special(id) ? std::string_view() : parts_->vocabulary.bytes(id);
}

std::optional<TokenId> Tokenizer::find(std::string_view bytes) const { return parts_->vocabulary.find(bytes); }

TokenId Tokenizer::require(std::string_view bytes, std::string_view need) const {
  const std::optional<TokenId> id = find(bytes);
  if (!id) {
    throw Error(fmt::format("{}: no token is '{}', {}", parts_->place, bytes, need));
  }
  return *id;
}

std::optional<TokenId> Tokenizer::beginning() const noexcept { return parts_->beginning; }

bool Tokenizer::is_special(TokenId id) const noexcept {
  return parts_->vocabulary.kind(id) == Vocabulary::Kind::special;
}

TokenSides Tokenizer::sides(TokenId id) const noexcept {
  const auto found = parts_->sides.find(id);
  return found == parts_->sides.end() ? TokenSides() : found->second;
}

const std::vector<TokenId>& Tokenizer::special_ids() const noexcept { return parts_->special_ids; }
std::size_t Tokenizer::id_count() const noexcept { return parts_->id_count; }
std::size_t Tokenizer::token_count() const noexcept { return parts_->vocabulary.size(); }

}  // namespace pascaline
