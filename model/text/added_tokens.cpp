#include "model/text/added_tokens.hpp"

#include <algorithm>
#include <utility>

#include "model/text/characters.hpp"

namespace pascaline {

void AddedTokenMatcher::add(std::string content, TokenId id, TokenSides sides) {
  std::vector<Entry>& entries = by_first_byte_[static_cast<unsigned char>(content.front())];
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.content.size() < content.size(); });
  entries.insert(place, {std::move(content), id, sides});
}

const AddedTokenMatcher::Entry* AddedTokenMatcher::longest_at(std::string_view rest) const {
  const std::vector<Entry>& entries = by_first_byte_[static_cast<unsigned char>(rest.front())];
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return rest.starts_with(entry.content); });
  return found == entries.end() ? nullptr : &*found;
}

void AddedTokenMatcher::split(std::string_view text, const std::function<void(std::string_view)>& on_text,
                              const std::function<void(TokenId)>& on_token) const {
  std::size_t start = 0;
  const auto flush = [&](std::size_t end) {
    if (end > start) {
      on_text(text.substr(start, end - start));
    }
  };
  for (std::size_t i = 0; i < text.size();) {
    const Entry* entry = longest_at(text.substr(i));
    if (entry == nullptr) {
      ++i;
      continue;
    }
    const std::string_view before = text.substr(0, i);
    const std::string_view after = text.substr(i + entry->content.size());
    i += entry->content.size();
    if (entry->sides.single_word && (ends_with_word(before) || begins_with_word(after))) {
      continue;
    }
    flush(before.size() - (entry->sides.strips_left ? trailing_space(before) : 0));
    on_token(entry->id);
    start = i + (entry->sides.strips_right ? leading_space(after) : 0);
  }
  flush(text.size());
}

}  // namespace pascaline
