#include "runtime/text/chat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace pascaline {
namespace {

std::string_view name_of_role(ChatRole role) {
  return role == ChatRole::system ? "system" : role == ChatRole::user ? "user" : "assistant";
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
std::vector<ChatMessage> with_rendered_answers(std::span<const ChatMessage> messages) {
  std::vector<ChatMessage> rendered(messages.begin(), messages.end());
  bool asked = false;    // by the user
  bool is_open = false;  // an answer was last
  for (ChatMessage& message : rendered) {
    asked = asked || message.role == ChatRole::user;
    is_open = message.role == ChatRole::user ? false : is_open || message.role == ChatRole::assistant;
    const bool has_image = std::any_of(message.parts.begin(), message.parts.end(),
                                       [](const ChatPart& part) { return part.kind == ChatPart::Kind::image; });
    if (message.role == ChatRole::assistant && !has_image) {
      std::string text;
      for (const ChatPart& part : message.parts) {
        text += part.text;
      }
      message = text_message(ChatRole::assistant, without_thinking(text));
    }
  }
  if (asked && is_open) {
    throw Error(
        "the conversation ends with an answer, which Qwen3's template has no place for; end it with a message of "
        "the user");
  }
  return rendered;
}

class ChatEncoder {
 public:
  ChatEncoder(const Tokenizer& tokenizer, std::span<const std::size_t> image_tokens)
      : tokenizer_(&tokenizer),
        image_tokens_(image_tokens),
        turn_start_(tokenizer.require("<|im_start|>")),
        turn_end_(tokenizer.require("<|im_end|>")) {}

  void message(const ChatMessage& message) {
    begin(message.role);
    for (const ChatPart& part : message.parts) {
      if (part.kind == ChatPart::Kind::text) {
        text_ += part.text;
      } else {
        image(message.role);
      }
    }
    end();
  }
  void begin(ChatRole role) {
    token(turn_start_);
    text_ = fmt::format("{}\n", name_of_role(role));
  }
  void end() {
    token(turn_end_);
    text_ = "\n";
  }
  /// The ids, once every image has been placed.
  std::vector<TokenId> finish() {
    flush();
    if (images_ != image_tokens_.size()) {
      throw Error(fmt::format("the messages have {} images, but token counts were given for {}", images_,
                              image_tokens_.size()));
    }
    return std::move(ids_);
  }

 private:
  // What lies between two tokens is encoded as one text: splitting it elsewhere could give other ids.
  void flush() {
    const std::vector<TokenId> ids = tokenizer_->encode(text_, AddedTokens::ignore);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    text_.clear();
  }
  void token(TokenId id) {
    flush();
    ids_.push_back(id);
  }
  void image(ChatRole role) {
    if (role != ChatRole::user) {
      throw Error(fmt::format("a message of role '{}' has an image; only the user's can", name_of_role(role)));
    }
    if (images_ >= image_tokens_.size() || image_tokens_[images_] == 0) {
      throw Error(fmt::format("the number of tokens of image {} is not given", images_ + 1));
    }
    token(tokenizer_->require("<|vision_start|>"));
    ids_.insert(ids_.end(), image_tokens_[images_], tokenizer_->require("<|image_pad|>"));
    token(tokenizer_->require("<|vision_end|>"));
    ++images_;
  }

  const Tokenizer* tokenizer_;
  std::span<const std::size_t> image_tokens_;
  TokenId turn_start_;
  TokenId turn_end_;
  std::string text_;  // since the last token
  std::vector<TokenId> ids_;
  std::size_t images_ = 0;
};

}  // namespace

ChatMessage text_message(ChatRole role, std::string text) { return {role, {{ChatPart::Kind::text, std::move(text)}}}; }

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                 std::span<const std::size_t> image_tokens, ChatTemplate chat_template) {
  if (messages.empty()) {
    throw Error("cannot encode a conversation without messages");
  }
  ChatEncoder encoder(tokenizer, image_tokens);
  if (chat_template == ChatTemplate::qwen3) {
    for (const ChatMessage& message : with_rendered_answers(messages)) {
      encoder.message(message);
    }
  } else {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (i == 0 || messages[i].role != ChatRole::system) {
        encoder.message(messages[i]);
      }
    }
  }
  encoder.begin(ChatRole::assistant);
  return encoder.finish();
}

std::vector<TokenId> encode_next_turn(const Tokenizer& tokenizer, const ChatMessage& message,
                                      std::span<const std::size_t> image_tokens) {
  if (message.role != ChatRole::user) {
    throw Error(fmt::format("a conversation continues with a message of the user, not of role '{}'",
                            name_of_role(message.role)));
  }
  ChatEncoder encoder(tokenizer, image_tokens);
  encoder.end();
  encoder.message(message);
  encoder.begin(ChatRole::assistant);
  return encoder.finish();
}

}  // namespace pascaline
