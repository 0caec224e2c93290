#include "model/text/chat.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "model/text/characters.hpp"
#include "model/text/chat_render.hpp"
#include "model/text/known_templates.hpp"

namespace pascaline {
namespace {

std::string_view name_of_role(ChatRole role) {
  return role == ChatRole::system ? "system" : role == ChatRole::user ? "user" : "assistant";
}

constexpr std::string_view kImagesNeed = "which images need; take the tokenizer that belongs to the model";

class ChatEncoder {
 public:
  ChatEncoder(const Tokenizer& tokenizer, std::span<const std::size_t> image_tokens, ChatTemplate chat_template)
      : tokenizer_(&tokenizer),
        image_tokens_(image_tokens),
        template_(chat_template),
        form_(&turn_form(chat_template)),
        turn_start_(written(form_->start)),
        turn_end_(written(form_->end)) {}

  void begin_text(std::optional<TokenId> beginning) {
    if (!form_->text_start.empty()) {
      token(written(form_->text_start));
    } else if (beginning && *beginning != turn_start_) {
      token(*beginning);
    }
  }

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
    text_ = name_of_role(role);
    if (!form_->header_end.empty()) {
      token(written(form_->header_end));
    }
    text_ += form_->before;
  }
  void end() {
    token(turn_end_);
    text_ = form_->after;
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
  // A token that the template writes.
  [[nodiscard]] TokenId written(std::string_view bytes) const {
    const std::string_view name = chat_template_name(template_);
    return tokenizer_->require(
        bytes, fmt::format("which the chat template {0} (the model's own, or --template {0}) writes; name the one that "
                           "the model was trained with, or take the tokenizer that belongs to the model",
                           name));
  }
  // What lies between two tokens is encoded as one text: splitting it elsewhere could give other ids.
  void flush(TokenSides next = {}) {
    std::string_view text = text_;
    const bool ended = !ids_.empty() && tokenizer_->sides(ids_.back()).strips_right;
    text.remove_prefix(ended ? leading_space(text) : 0);
    text.remove_suffix(next.strips_left ? trailing_space(text) : 0);
    const std::vector<TokenId> ids = tokenizer_->encode(text, AddedTokens::ignore);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    text_.clear();
  }
  void token(TokenId id) {
    flush(tokenizer_->sides(id));
    ids_.push_back(id);
  }
  void image(ChatRole role) {
    if (role != ChatRole::user) {
      throw Error(fmt::format("a message of role '{}' has an image; only the user's can", name_of_role(role)));
    }
    if (images_ >= image_tokens_.size() || image_tokens_[images_] == 0) {
      throw Error(fmt::format("the number of tokens of image {} is not given", images_ + 1));
    }
    token(tokenizer_->require("<|vision_start|>", kImagesNeed));
    ids_.insert(ids_.end(), image_tokens_[images_], tokenizer_->require("<|image_pad|>", kImagesNeed));
    token(tokenizer_->require("<|vision_end|>", kImagesNeed));
    ++images_;
  }

  const Tokenizer* tokenizer_;
  std::span<const std::size_t> image_tokens_;
  ChatTemplate template_;
  const ChatTurnForm* form_;
  TokenId turn_start_;
  TokenId turn_end_;
  std::string text_;  // since the last token
  std::vector<TokenId> ids_;
  std::size_t images_ = 0;
};

}  // namespace

ChatMessage text_message(ChatRole role, std::string text) { return {role, {{ChatPart::Kind::text, std::move(text)}}}; }

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                 std::span<const std::size_t> image_tokens, ChatTemplate chat_template,
                                 std::optional<TokenId> beginning) {
  if (messages.empty()) {
    throw Error("cannot encode a conversation without messages");
  }
  ChatEncoder encoder(tokenizer, image_tokens, chat_template);
  encoder.begin_text(beginning);
  for (const ChatMessage& message : rendered_messages(messages, chat_template)) {
    encoder.message(message);
  }
  encoder.begin(ChatRole::assistant);
  return encoder.finish();
}

std::vector<TokenId> encode_next_turn(const Tokenizer& tokenizer, const ChatMessage& message,
                                      std::span<const std::size_t> image_tokens, ChatTemplate chat_template) {
  if (message.role != ChatRole::user) {
    throw Error(fmt::format("a conversation continues with a message of the user, not of role '{}'",
                            name_of_role(message.role)));
  }
  ChatEncoder encoder(tokenizer, image_tokens, chat_template);
  encoder.end();
  encoder.message(rendered_next(message, chat_template));
  encoder.begin(ChatRole::assistant);
  return encoder.finish();
}

}  // namespace pascaline
