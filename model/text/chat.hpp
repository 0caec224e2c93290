#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/text/tokenizer.hpp"

namespace pascaline {

enum class ChatRole { system, user, assistant };

/// A part of a message: a text, or the place of an image.
struct ChatPart {
  enum class Kind { text, image };
  Kind kind = Kind::text;
  std::string text{};  ///< empty for an image
};

struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::vector<ChatPart> parts{};
};

/// A message that is one text.
[[nodiscard]] ChatMessage text_message(ChatRole role, std::string text);

/// Whose template renders a conversation.
enum class ChatTemplate {
  qwen3_vl,  ///< Qwen3-VL Instruct: a system message that is not the first message is ignored
  qwen3,     ///< Qwen3: every system message counts, and what answers say within <think> is left out
  smollm2,   ///< SmolLM2: a conversation without a system message at its beginning gets SmolLM's own
  chatml,    ///< ChatML: every message as it is
  llama3,    ///< Llama 3: texts without white space at their ends
  llama3_1   ///< Llama 3.1 to 3.3: likewise, and a system message begins with the dates of the template's default
};

/// Ids of a conversation as that template renders it, ending where the assistant is to go on. There is no other
/// default system message. Texts are encoded without added tokens, so that no message can hold a special token; each
/// image is
/// <|vision_start|>, as many <|image_pad|> as `image_tokens` says for it, in order over all messages, and
/// <|vision_end|>.
/// Where the template itself writes no token at the beginning of the text, `beginning` is, if it is given.
/// Throws Error if there are no messages, an image is not the user's, `image_tokens` does not have one positive
/// number an image, the tokenizer lacks a token of the template, or a conversation of Qwen3's ends with an answer.
[[nodiscard]] std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                               std::span<const std::size_t> image_tokens = {},
                                               ChatTemplate chat_template = ChatTemplate::qwen3_vl,
                                               std::optional<TokenId> beginning = {});

/// Ids that go on with a conversation whose cache holds the prompt and the answer without the id that ended it: the
/// end of the assistant's turn, the user's next message, and the beginning of the assistant's. What a Qwen3 answer said
/// within <think> stays in the cache. Errors as above, and Error if the
/// message is not the user's.
[[nodiscard]] std::vector<TokenId> encode_next_turn(const Tokenizer& tokenizer, const ChatMessage& message,
                                                    std::span<const std::size_t> image_tokens = {},
                                                    ChatTemplate chat_template = ChatTemplate::qwen3_vl);

}  // namespace pascaline
