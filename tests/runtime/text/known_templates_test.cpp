#include "runtime/text/known_templates.hpp"

#include <algorithm>

#include "tests/runtime/text/gguf_fixture.hpp"

namespace pascaline {
namespace {

using testing::expect_holds;
using testing::text_error;

const nlohmann::json& template_fixture() {
  static const nlohmann::json fixture = nlohmann::json::parse(read_file(testing::text_data() / "chat_templates.json"));
  return fixture;
}

// SmolLM2's tokens, some of its special ones renamed to Llama 3's.
const Tokenizer& template_tokenizer() {
  static const Tokenizer tokenizer = [] {
    GgufTokenizerData data = testing::small_gguf_data();
    std::size_t place = 3;
    for (const char* name : {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}) {
      (*data.tokens)[place++] = name;
    }
    return build_gguf_tokenizer(data, "a.gguf").tokenizer;
  }();
  return tokenizer;
}

std::vector<ChatMessage> messages_of(const nlohmann::json& conversation) {
  std::vector<ChatMessage> out;
  for (const nlohmann::json& entry : conversation) {
    const auto role = entry[0].get<std::string>();
    out.push_back(text_message(role == "system" ? ChatRole::system
                               : role == "user" ? ChatRole::user
                                                : ChatRole::assistant,
                               entry[1].get<std::string>()));
  }
  return out;
}

std::string text_of(const std::vector<TokenId>& ids) { return template_tokenizer().decode(ids, SpecialTokens::keep); }

TEST(KnownTemplatesTest, RenderAsJinjaDoes) {
  EXPECT_EQ(template_fixture()["rendered"].size(), 5U);
  for (const auto& [name, rendered] : template_fixture()["rendered"].items()) {
    for (std::size_t i = 0; i < rendered.size(); ++i) {
      const std::vector<ChatMessage> messages = messages_of(template_fixture()["conversations"][i]);
      EXPECT_EQ(text_of(encode_chat(template_tokenizer(), messages, {}, chat_template_named(name))),
                rendered[i].get<std::string>())
          << name << " " << i;
    }
  }
}

// What follows the answer in a conversation is what the whole conversation ends with.
TEST(KnownTemplatesTest, FurtherTurnsAreTheEndOfTheConversation) {
  const ChatMessage next = text_message(ChatRole::user, " Three? ");
  for (const auto& entry : template_fixture()["rendered"].items()) {
    const ChatTemplate chat_template = chat_template_named(entry.key());
    const std::vector<ChatMessage> first{text_message(ChatRole::user, "One?")};
    const std::vector<ChatMessage> all{first[0], text_message(ChatRole::assistant, "Two."), next};
    EXPECT_EQ(text_of(encode_chat(template_tokenizer(), first, {}, chat_template)) + "Two." +
                  text_of(encode_next_turn(template_tokenizer(), next, {}, chat_template)),
              text_of(encode_chat(template_tokenizer(), all, {}, chat_template)))
        << entry.key();
  }
}

TEST(KnownTemplatesTest, NoMessageGivesASpecialToken) {
  const std::vector<ChatMessage> messages{text_message(ChatRole::user, "<|eot_id|><|im_end|>")};
  for (const ChatTemplate chat_template : {ChatTemplate::smollm2, ChatTemplate::llama3}) {
    const std::vector<TokenId> ids = encode_chat(template_tokenizer(), messages, {}, chat_template);
    const TokenId end =
        template_tokenizer().require(chat_template == ChatTemplate::llama3 ? "<|eot_id|>" : "<|im_end|>");
    EXPECT_EQ(std::count(ids.begin(), ids.end(), end), chat_template == ChatTemplate::llama3 ? 1 : 2);
  }
}

TEST(KnownTemplatesTest, TextsAreRecognisedWhole) {
  ASSERT_EQ(template_fixture()["texts"].size(), 5U);
  for (const nlohmann::json& entry : template_fixture()["texts"]) {
    const auto text = entry["text"].get<std::string>();
    const ChatTemplate expected = chat_template_named(entry["name"].get<std::string>());
    EXPECT_EQ(known_chat_template(text), expected) << entry["name"];
    EXPECT_EQ(known_chat_template(text + "\n"), expected) << entry["name"];
    EXPECT_EQ(gguf_chat_template(text, "", "a.gguf"), expected);
    EXPECT_FALSE(known_chat_template(text + " ")) << entry["name"];
    EXPECT_FALSE(known_chat_template(text.substr(1))) << entry["name"];
  }
  EXPECT_FALSE(known_chat_template(""));
}

TEST(KnownTemplatesTest, OtherTextsAreRefusedWithAWayOut) {
  const auto refusal = [](std::optional<std::string_view> text, std::string_view named = {}) {
    return text_error([&] { (void)gguf_chat_template(text, named, "a.gguf"); });
  };
  for (const std::string& message : {refusal(std::nullopt), refusal("{{ messages }}"), refusal("")}) {
    EXPECT_EQ(message.rfind("a.gguf: key 'tokenizer.chat_template': ", 0), 0U) << message;
    expect_holds(message, "--template chatml, smollm2, qwen3, qwen3-vl, llama3, llama3.1");
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(gguf_chat_template("{{ messages }}", "llama3", "a.gguf"), ChatTemplate::llama3);
  EXPECT_EQ(gguf_chat_template(std::nullopt, "qwen3-vl", "a.gguf"), ChatTemplate::qwen3_vl);
  expect_holds(refusal(std::nullopt, "vicuna"), "'vicuna' is not a known chat template; known are chatml,");
  EXPECT_EQ(gguf_chat_template("<|im_start|>assistant add_generation_prompt <|vision_start|><|image_pad|><|vision_end|>"
                               "<|im_end|>",
                               "", "a.gguf"),
            ChatTemplate::qwen3_vl);
}

}  // namespace
}  // namespace pascaline
