#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/text/chat.hpp"

namespace pascaline {

/// How a template writes a turn: `start`, the role, `header_end` if it is not empty, `before` the message, the message,
/// `end`, `after` it. Start, end and header's end are single tokens.
struct ChatTurnForm {
  std::string_view text_start;  ///< a token before the first turn, or empty
  std::string_view start;
  std::string_view header_end;
  std::string_view before;
  std::string_view end;
  std::string_view after;
};
[[nodiscard]] const ChatTurnForm& turn_form(ChatTemplate chat_template) noexcept;

/// The turns that a template writes for these messages, as it words them. Throws Error for a conversation that the
/// template has no place for.
[[nodiscard]] std::vector<ChatMessage> rendered_messages(std::span<const ChatMessage> messages,
                                                         ChatTemplate chat_template);

/// A message of the user after others, likewise.
[[nodiscard]] ChatMessage rendered_next(const ChatMessage& message, ChatTemplate chat_template);

}  // namespace pascaline
