#include "model/text/vocabulary.hpp"

namespace pascaline {

bool Vocabulary::add(TokenId id, std::string_view bytes, Kind kind) {
  const auto index = static_cast<std::size_t>(id);
  if (this->kind(id) != Kind::none) {
    return false;
  }
  const auto [entry, is_new] = ids_.try_emplace(std::string(bytes), id);
  if (!is_new) {
    return false;
  }
  if (index >= tokens_.size()) {
    tokens_.resize(index + 1);
  }
  tokens_[index] = {entry->first, kind};
  return true;
}

std::optional<TokenId> Vocabulary::find(std::string_view bytes) const {
  const auto entry = ids_.find(bytes);
  return entry == ids_.end() ? std::nullopt : std::optional<TokenId>(entry->second);
}

Vocabulary::Kind Vocabulary::kind(TokenId id) const noexcept {
  return id >= 0 && static_cast<std::size_t>(id) < tokens_.size() ? tokens_[static_cast<std::size_t>(id)].kind
                                                                  : Kind::none;
}

std::string_view Vocabulary::bytes(TokenId id) const noexcept {
  return kind(id) == Kind::none ? std::string_view() : tokens_[static_cast<std::size_t>(id)].bytes;
}

void Vocabulary::reserve(std::size_t tokens) {
  ids_.reserve(tokens);
  tokens_.reserve(tokens);
}

}  // namespace pascaline
