#include "model/text/chat_render.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "model/text/characters.hpp"
#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

constexpr ChatTurnForm kChatMlForm{"", "<|im_start|>", "", "\n", "<|im_end|>", "\n"};
constexpr ChatTurnForm kLlama3Form{
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "\n\n", "<|eot_id|>", ""};
constexpr const char* kSmolLm2System = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr const char* kLlama31System = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";

bool is_llama(ChatTemplate chat_template) {
  return chat_template == ChatTemplate::llama3 || chat_template == ChatTemplate::llama3_1;
}

bool has_image(const ChatMessage& message) {
  return std::any_of(message.parts.begin(), message.parts.end(),
                     [](const ChatPart& part) { return part.kind == ChatPart::Kind::image; });
}

std::string joined_text(const ChatMessage& message) {
  std::string text;
  for (const ChatPart& part : message.parts) {
    text += part.text;
  }
  return text;
}

// An earlier answer as Qwen3's template renders it: without what it says within <think>.
std::string without_thinking(const std::string& text) {
  constexpr std::string_view kEnd = "</think>";
  const std::size_t end = text.rfind(kEnd);
  if (end == std::string::npos) {
    return text;
  }
  const std::size_t begin = text.find_first_not_of('\n', end + kEnd.size());
  return begin == std::string::npos ? std::string() : text.substr(begin);
}

// The conversation with its answers as Qwen3's template renders them.
std::vector<ChatMessage> without_thoughts(std::span<const ChatMessage> messages) {
  std::vector<ChatMessage> rendered(messages.begin(), messages.end());
  bool asked = false;    // by the user
  bool is_open = false;  // an answer was last
  for (ChatMessage& message : rendered) {
    asked = asked || message.role == ChatRole::user;
    is_open = message.role == ChatRole::user ? false : is_open || message.role == ChatRole::assistant;
    if (message.role == ChatRole::assistant && !has_image(message)) {
      message = text_message(ChatRole::assistant, without_thinking(joined_text(message)));
    }
  }
  if (asked && is_open) {
    throw Error(
        "the conversation ends with an answer, which Qwen3's template has no place for; end it with a message of "
        "the user");
  }
  return rendered;
}

// What Jinja's filter `trim` removes at both ends: Python's white space.
bool is_trimmed(char32_t code) { return is_white_space(code) || (code >= 0x1C && code <= 0x1F); }

std::string trimmed(const std::string& text) {
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Step step = next_utf8(std::string_view(text).substr(i));
    if (step.kind != Utf8Step::Kind::character || !is_trimmed(step.code)) {
      begin = std::min(begin, i);
      end = i + step.bytes;
    }
    i += step.bytes;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string();
}

// A message with images is left for the encoder, which knows what can have one.
ChatMessage with_trimmed_text(const ChatMessage& message) {
  return has_image(message) ? message : text_message(message.role, trimmed(joined_text(message)));
}

}  // namespace

const ChatTurnForm& turn_form(ChatTemplate chat_template) noexcept {
  return is_llama(chat_template) ? kLlama3Form : kChatMlForm;
}

ChatMessage rendered_next(const ChatMessage& message, ChatTemplate chat_template) {
  return is_llama(chat_template) ? with_trimmed_text(message) : message;
}

std::vector<ChatMessage> rendered_messages(std::span<const ChatMessage> messages, ChatTemplate chat_template) {
  if (chat_template == ChatTemplate::qwen3) {
    return without_thoughts(messages);
  }
  const bool begins_with_system = !messages.empty() && messages.front().role == ChatRole::system;
  std::vector<ChatMessage> rendered;
  if (!begins_with_system && chat_template == ChatTemplate::smollm2) {
    rendered.push_back(text_message(ChatRole::system, kSmolLm2System));
  } else if (!begins_with_system && chat_template == ChatTemplate::llama3_1) {
    rendered.push_back(text_message(ChatRole::system, kLlama31System));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (chat_template == ChatTemplate::qwen3_vl && i > 0 && message.role == ChatRole::system) {
      continue;
    }
    rendered.push_back(rendered_next(message, chat_template));
    if (i == 0 && begins_with_system && chat_template == ChatTemplate::llama3_1) {
      std::vector<ChatPart>& parts = rendered.back().parts;
      parts.insert(parts.begin(), {ChatPart::Kind::text, kLlama31System});
    }
  }
  return rendered;
}

}  // namespace pascaline
