#include "model/text/known_templates.hpp"

#include <algorithm>

#include "tests/db/fixtures.hpp"
#include "tests/model/text/gguf_fixture.hpp"

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

std::string decoded_text(const std::vector<TokenId>& ids) {
  return template_tokenizer().decode(ids, SpecialTokens::keep);
}

TEST(KnownTemplatesTest, RenderAsJinjaDoes) {
  EXPECT_EQ(template_fixture()["rendered"].size(), 6U);
  for (const auto& [name, rendered] : template_fixture()["rendered"].items()) {
    for (std::size_t i = 0; i < rendered.size(); ++i) {
      const std::vector<ChatMessage> messages = messages_of(template_fixture()["conversations"][i]);
      EXPECT_EQ(decoded_text(encode_chat(template_tokenizer(), messages, {}, chat_template_named(name))),
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
    EXPECT_EQ(decoded_text(encode_chat(template_tokenizer(), first, {}, chat_template)) + "Two." +
                  decoded_text(encode_next_turn(template_tokenizer(), next, {}, chat_template)),
              decoded_text(encode_chat(template_tokenizer(), all, {}, chat_template)))
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
  ASSERT_EQ(template_fixture()["texts"].size(), 6U);
  for (const nlohmann::json& entry : template_fixture()["texts"]) {
    const auto text = entry["text"].get<std::string>();
    const ChatTemplate expected = chat_template_named(entry["name"].get<std::string>());
    EXPECT_EQ(known_chat_template(text), expected) << entry["name"];
    EXPECT_EQ(known_chat_template(text + "\n"), expected) << entry["name"];
    EXPECT_EQ(gguf_chat_template(text, "", "a.gguf"), expected);
    for (const std::string& end : std::vector<std::string>{"\r\n", "\r"}) {
      std::string windows = "\xEF\xBB\xBF";
      for (const char c : text) {
        windows += c == '\n' ? end : std::string(1, c);
      }
      EXPECT_EQ(known_chat_template(windows + end), expected) << entry["name"];
    }
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
}

// What has the tokens of a known template may write something else.
TEST(KnownTemplatesTest, WhatLooksLikeAKnownTextIsRefusedWithTheNearest) {
  const std::string marks =
      "<|im_start|>assistant add_generation_prompt <|vision_start|><|image_pad|><|vision_end|><|im_end|>";
  const auto refusal = [](const std::string& text) {
    return text_error([&] { (void)gguf_chat_template(text, "", "a.gguf"); });
  };
  const std::string begin =
      "a.gguf: key 'tokenizer.chat_template': this template is not a known one, and templates are not interpreted; the "
      "nearest known one is ";
  const auto expect_nearest = [&](const std::string& text, const std::string& rest) {
    const std::string message = refusal(text);
    EXPECT_EQ(message.rfind(begin + rest + " renders messages by that; name the one", 0), 0U) << message;
  };
  expect_nearest(marks, "qwen3-vl: --template qwen3-vl");
  expect_nearest(marks + "{{- '<|im_start|>assistant\\n<think>\\n' }}",
                 "qwen3-vl (this one opens a block of thinking): --template qwen3-vl");
  expect_nearest(marks + "<|im_start|>assistant\n<think>",
                 "qwen3-vl (this one opens a block of thinking): --template qwen3-vl");
  expect_nearest("You are a helpful assistant." + marks,
                 "qwen3-vl (this one adds a system message of its own): --template qwen3-vl");
  expect_nearest("<|im_start|> </think>", "qwen3: --template qwen3");
  expect_nearest("<|im_start|> named SmolLM", "smollm2: --template smollm2");
  expect_nearest("<|im_start|>", "chatml: --template chatml");
  expect_nearest("<|start_header_id|>", "llama3: --template llama3");
  expect_nearest("<|start_header_id|> Cutting Knowledge Date", "llama3.1: --template llama3.1");
  EXPECT_EQ(gguf_chat_template(marks, "qwen3-vl", "a.gguf"), ChatTemplate::qwen3_vl);
}

TEST(KnownTemplatesTest, FoldersAndGivenFilesNameWhatIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "chat_template.json").string();
  const auto refusal = [&] { return text_error([&] { (void)folder_chat_template(folder.path()); }); };
  expect_holds(refusal(), folder.path().string() + ": there is no chat template");
  for (const nlohmann::json& entry : template_fixture()["texts"]) {
    const ChatTemplate expected = chat_template_named(entry["name"].get<std::string>());
    testing::write_bytes(folder / "chat_template.json", nlohmann::json{{"chat_template", entry["text"]}}.dump());
    EXPECT_EQ(folder_chat_template(folder.path()), expected);
    testing::write_bytes(folder / "given.jinja", entry["text"].get<std::string>());
    EXPECT_EQ(chat_template_given((folder / "given.jinja").string()), expected);
  }
  testing::write_bytes(folder / "chat_template.json", R"({"chat_template": "<|im_start|>"})");
  EXPECT_EQ(refusal().rfind(file + ": key 'chat_template': this template is not a known one", 0), 0U) << refusal();
  testing::write_bytes(folder / "given.jinja", "<|im_start|>");
  const std::string given = (folder / "given.jinja").string();
  EXPECT_EQ(text_error([&] { (void)chat_template_given(given); }).rfind(given + ": this template is not", 0), 0U);
}

TEST(KnownTemplatesTest, ImagesStandWhereJinjaPutsThem) {
  const nlohmann::json& images = template_fixture()["images"];
  std::vector<ChatMessage> messages;
  for (const nlohmann::json& entry : images["conversation"]) {
    const bool has_parts = entry[1].is_array();
    const auto pair = nlohmann::json::array({entry[0], has_parts ? nlohmann::json("") : entry[1]});
    ChatMessage message = messages_of(nlohmann::json::array({pair})).front();
    if (has_parts) {
      message.parts.clear();
      for (const nlohmann::json& part : entry[1]) {
        message.parts.push_back(part["type"] == "image"
                                    ? ChatPart{ChatPart::Kind::image, {}}
                                    : ChatPart{ChatPart::Kind::text, part["text"].get<std::string>()});
      }
    }
    messages.push_back(message);
  }
  const Tokenizer& tokenizer = testing::small_tokenizer();
  EXPECT_EQ(tokenizer.decode(encode_chat(tokenizer, messages, std::vector<std::size_t>{1, 1, 1}), SpecialTokens::keep),
            images["rendered"]["qwen3-vl"].get<std::string>());
}

}  // namespace
}  // namespace pascaline
