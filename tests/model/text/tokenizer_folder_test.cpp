#include "model/text/tokenizer_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/text/byte_level.hpp"
#include "model/text/chat.hpp"
#include "model/text/tokenizer.hpp"

// What is expected here is what Transformers 5.17 gives for the same files (class TokenizersBackend).
namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json added(int id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", !special}, {"special", special}};
}

// A token for each byte, 256 for "ab", 257 and 258 added.
json small_tokenizer() {
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[spelling_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocabulary["ab"] = 256;
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", R"(\p{N}|\s+|[^\s\p{N}]+)"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {{"added_tokens", {added(257, "<|im_end|>", true), added(258, "<tool>", false)}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
          {"decoder", bytes},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array({"a b"})}}}};
}

json token(const std::string& content, const json& changes = json::object()) {
  json object = {{"content", content}, {"lstrip", false},      {"normalized", false},
                 {"rstrip", false},    {"single_word", false}, {"special", true}};
  object.update(changes);
  return object;
}

class TokenizerFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    put("tokenizer.json", small_tokenizer());
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const json& content) const { std::ofstream(folder_ / name) << content.dump(); }
  void config(const json& content) const { put("tokenizer_config.json", content); }
  [[nodiscard]] Tokenizer load(std::size_t rows = 0) const { return Tokenizer::load(folder_ / "tokenizer.json", rows); }
  // Tokens of a text with bars between them.
  [[nodiscard]] std::string tokens(const std::string& text = kText) const {
    const Tokenizer tokenizer = load();
    std::string joined;
    for (const TokenId id : tokenizer.encode(text, AddedTokens::match)) {
      joined += (joined.empty() ? "" : "|") + std::string(tokenizer.bytes(id));
    }
    return joined;
  }
  [[nodiscard]] std::string told() const {
    ::testing::internal::CaptureStderr();
    (void)load();
    return ::testing::internal::GetCapturedStderr();
  }
  [[nodiscard]] std::string refusal() const {
    const StrictKeys strict(true);
    try {
      (void)load();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  static constexpr const char* kText = "x <new> <|im_end|> <tool> y <b>";
  static constexpr const char* kPlain = "x| |<|n|e|w|>| |<|im_end|>| |<tool>| |y| |<|b|>";
  static constexpr const char* kAll = "x| |<new>| |<|im_end|>| |<tool>| |y| |<b>";
  fs::path folder_ =
      fs::path(::testing::TempDir()) /
      ("tokenizer_folder_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(TokenizerFolderTest, TokenizerJsonAloneCounts) {
  EXPECT_EQ(tokens(), kPlain);
  config(json::object());
  EXPECT_EQ(tokens(), kPlain);
  EXPECT_EQ(told(), "");
}

TEST_F(TokenizerFolderTest, TheDecoderOfTheConfigurationAddsTokensWithTheirFlags) {
  config({{"added_tokens_decoder",
           {{"257", token("<|im_end|>")},
            {"258", token("<tool>", {{"special", false}, {"normalized", true}})},
            {"259", token("<new>", {{"lstrip", true}, {"rstrip", true}})},
            {"260", token("<b>", {{"special", false}})}}}});
  EXPECT_EQ(tokens(), "x|<new>|<|im_end|>| |<tool>| |y| |<b>");
  EXPECT_EQ(told(), "");
  const Tokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.find("<new>"), 259);
  EXPECT_EQ(tokenizer.find("<b>"), 260);
  EXPECT_TRUE(tokenizer.is_special(259));
  EXPECT_FALSE(tokenizer.is_special(260));
  EXPECT_EQ(tokenizer.id_count(), 261U);
}

TEST_F(TokenizerFolderTest, TheDecoderChangesFlagsOfTokensThatAreThere) {
  config({{"added_tokens_decoder",
           {{"257", token("<|im_end|>", {{"lstrip", true}})}, {"258", token("<tool>", {{"rstrip", true}})}}}});
  EXPECT_EQ(tokens(), "x| |<|n|e|w|>|<|im_end|>| |<tool>|y| |<|b|>");
  EXPECT_TRUE(load().is_special(258));
  config({{"added_tokens_decoder", {{"257", token("<|im_end|>", {{"special", false}})}}}});
  EXPECT_FALSE(load().is_special(257));
}

TEST_F(TokenizerFolderTest, FlagsLeftOutHaveTheirDefaults) {
  config({{"added_tokens_decoder", {{"259", {{"content", "<new>"}}}}}});
  EXPECT_FALSE(load().is_special(259));
  config({{"added_tokens_decoder", {{"259", {{"content", "<new>"}, {"special", true}}}}}});
  EXPECT_TRUE(load().is_special(259));
}

TEST_F(TokenizerFolderTest, IdsAreThoseThatTransformersGivesAndOthersAreTold) {
  config({{"added_tokens_decoder", {{"300", token("<new>")}, {"290", token("<b>")}}}});
  const std::string warning = told();
  EXPECT_EQ(tokens(), kAll);
  EXPECT_NE(warning.find("tokenizer_config.json: /added_tokens_decoder: 2 tokens have other ids here, as in "
                         "Transformers: '<b>' is 259 instead of 290, '<new>' is 260 instead of 300"),
            std::string::npos)
      << warning;
  EXPECT_NE(refusal().find("--strict refuses that"), std::string::npos);
  EXPECT_EQ(load().find("<b>"), 259);
}

TEST_F(TokenizerFolderTest, ListsOfSpecialTokensAddThem) {
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    config({{key, {"<new>", "<b>"}}});
    EXPECT_EQ(tokens(), kAll) << key;
    EXPECT_TRUE(load().is_special(259));
    EXPECT_EQ(load().find("<b>"), 260);
  }
  config({{"extra_special_tokens", {{"new_token", "<new>"}, {"a_token", "<b>"}}}});
  EXPECT_EQ(tokens(), kAll);
  config({{"additional_special_tokens", {token("<new>", {{"rstrip", true}, {"__type", "AddedToken"}}), "<b>"}}});
  EXPECT_EQ(tokens(), "x| |<new>|<|im_end|>| |<tool>| |y| |<b>");
  config({{"extra_special_tokens", {"<new>"}}, {"additional_special_tokens", {"<b>"}}});
  EXPECT_EQ(tokens(), "x| |<new>| |<|im_end|>| |<tool>| |y| |<|b|>") << "the later key counts";
  config({{"extra_special_tokens", {"<tool>"}}});
  EXPECT_FALSE(load().is_special(258)) << "a token that is there stays what it is";
  EXPECT_EQ(told(), "");
}

TEST_F(TokenizerFolderTest, NewIdsFollowTheOrderOfTheFile) {
  std::ofstream(folder_ / "tokenizer_config.json")
      << R"({"z_token": "<z>", "extra_special_tokens": {"y": "<y>", "a": "<a>"}, "eos_token": "<e>"})";
  const Tokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.find("<e>"), 259);
  EXPECT_EQ(tokenizer.find("<z>"), 260);
  EXPECT_EQ(tokenizer.find("<y>"), 261);
  EXPECT_EQ(tokenizer.find("<a>"), 262);
}

TEST_F(TokenizerFolderTest, NamedTokensAreSpecial) {
  config({{"eos_token", "<new>"}, {"image_token", "<b>"}, {"add_bos_token", true}, {"pad_token", nullptr}});
  EXPECT_EQ(tokens(), kAll);
  config({{"eos_token", token("<new>", {{"lstrip", true}})}});
  EXPECT_EQ(tokens(), "x|<new>| |<|im_end|>| |<tool>| |y| |<|b|>");
  config({{"eos_token", "<tool>"}});
  EXPECT_TRUE(load().is_special(258));
  config({{"eos_token", "<new>"}, {"added_tokens_decoder", {{"259", token("<new>", {{"special", false}})}}}});
  EXPECT_TRUE(load().is_special(259));
}

TEST_F(TokenizerFolderTest, AddedTokensJsonCountsWithoutADecoder) {
  put("added_tokens.json", {{"<b>", 260}, {"<new>", 259}});
  EXPECT_EQ(tokens(), kAll);
  EXPECT_EQ(load().find("<new>"), 259);
  EXPECT_FALSE(load().is_special(259));
  EXPECT_EQ(told(), "");
  config({{"eos_token", "<new>"}, {"additional_special_tokens", {"<b>"}}});
  EXPECT_TRUE(load().is_special(259));
  EXPECT_TRUE(load().is_special(260));
  config({{"added_tokens_decoder", {{"257", token("<|im_end|>")}}}});
  EXPECT_EQ(tokens(), kPlain);
  config(json::object());
  put("added_tokens.json", {{"<b>", 257}, {"<new>", 258}});
  EXPECT_EQ(tokens(), kPlain) << "tokenizer.json has these ids";
}

TEST_F(TokenizerFolderTest, SpecialTokensMapCountsWithoutADecoder) {
  put("special_tokens_map.json",
      {{"eos_token", token("<new>", {{"lstrip", true}})}, {"additional_special_tokens", {"<b>"}}});
  EXPECT_EQ(tokens(), "x|<new>| |<|im_end|>| |<tool>| |y| |<b>");
  config({{"added_tokens_decoder", {{"257", token("<|im_end|>")}}}});
  EXPECT_EQ(tokens(), kPlain);
}

TEST_F(TokenizerFolderTest, TokensWithoutARowOfTheEmbeddingAreIgnoredAndTold) {
  config({{"extra_special_tokens", {"<new>", "<b>"}}, {"pad_token", "<pad>"}});
  ::testing::internal::CaptureStderr();
  const Tokenizer tokenizer = load(260);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(tokenizer.find("<pad>"), 259);
  EXPECT_EQ(tokenizer.find("<new>"), std::nullopt);
  EXPECT_NE(warning.find("/extra_special_tokens: 2 tokens are beyond the model's embedding of 260 rows, and ignored: "
                         "'<new>' would be 260, '<b>' would be 260"),
            std::string::npos)
      << warning;
}

TEST_F(TokenizerFolderTest, OrdinaryTextDoesNotBecomeSpecial) {
  config({{"pad_token", "!"}, {"extra_special_tokens", {"ab", " "}}});
  EXPECT_EQ(tokens("x! ab"), "x|!| |ab");
  EXPECT_TRUE(load().special_ids() == std::vector<TokenId>{257});
  put("tokenizer_config.json", {{"pad_token", "?"}});
  const std::string warning = told();
  EXPECT_NE(warning.find("tokenizer_config.json: /pad_token: 1 token is ignored, because the vocabulary has the same "
                         "text as ordinary text: '?'"),
            std::string::npos)
      << warning;
}

TEST_F(TokenizerFolderTest, SettingsThatAreNotAppliedAreTold) {
  for (const char* key : {"add_prefix_space", "split_special_tokens"}) {
    config({{key, false}});
    EXPECT_EQ(told(), "");
    config({{key, true}});
    const std::string expected = "tokenizer_config.json: /" + std::string(key) + ": this setting is not applied: ";
    EXPECT_NE(refusal().find(expected), std::string::npos) << refusal();
    EXPECT_NE(told().find(expected), std::string::npos);
  }
}

TEST_F(TokenizerFolderTest, WrongFilesAreRefusedByName) {
  const std::vector<std::pair<json, std::string>> cases{
      {{{"added_tokens_decoder", {{"x", token("<new>")}}}}, "/added_tokens_decoder/x: the key is not a token's id"},
      {{{"added_tokens_decoder", {{"259", 7}}}}, "/added_tokens_decoder/259: "},
      {{{"added_tokens_decoder", {{"259", {{"special", true}}}}}}, "/added_tokens_decoder/259"},
      {{{"added_tokens_decoder", {{"259", token("<new>", {{"lstrip", 1}})}}}}, "/added_tokens_decoder/259/lstrip: "},
      {{{"extra_special_tokens", "<new>"}}, "/extra_special_tokens: "},
      {{{"pad_token", 3}}, "/pad_token: "}};
  for (const auto& [content, expected] : cases) {
    config(content);
    EXPECT_NE(refusal().find("tokenizer_config.json:" + expected), std::string::npos) << refusal();
  }
  config(json::object());
  put("added_tokens.json", {{"<new>", "259"}});
  EXPECT_NE(refusal().find("added_tokens.json:/<new>: "), std::string::npos) << refusal();
}

TEST_F(TokenizerFolderTest, FlagsOfTokenizerJsonAreFollowed) {
  json document = small_tokenizer();
  document["added_tokens"].push_back(added(259, "<s>", true));
  document["added_tokens"].push_back(added(260, "<w>", true));
  document["added_tokens"].push_back(added(261, "<ws>", true));
  document["added_tokens"][2].update({{"lstrip", true}, {"rstrip", true}});
  document["added_tokens"][3]["single_word"] = true;
  document["added_tokens"][4]["single_word"] = true;
  put("tokenizer.json", document);
  EXPECT_EQ(tokens("a \xC2\xA0\n<s>\t\xE3\x80\x80 b"), "a|<s>|b");
  EXPECT_EQ(tokens("<s> <s>  <s>"), "<s>|<s>|<s>");
  EXPECT_EQ(tokens("<tool> <s>"), "<tool>|<s>");
  EXPECT_EQ(tokens("x<w> <w>x <w> <w>"), "x|<|w|>| |<|w|>|x| |<w>| |<w>");
  EXPECT_EQ(tokens("\xC3\xA9<w>"), "\xC3|\xA9|<|w|>") << "a letter";
  EXPECT_EQ(tokens("<w>\xCC\x81"), "<|w|>|\xCC|\x81") << "a mark";
  EXPECT_EQ(tokens("_<w>"), "_|<|w|>");
  EXPECT_EQ(tokens("5<w>"), "5|<|w|>");
  EXPECT_EQ(tokens("-<w>-"), "-|<w>|-");
  EXPECT_EQ(tokens("\xE2\x82\xAC<w>"), "\xE2|\x82|\xAC|<w>") << "a symbol";
}

TEST_F(TokenizerFolderTest, ConversationsLoseWhiteSpaceBesideTokensThatTakeIt) {
  json document = small_tokenizer();
  document["added_tokens"].push_back(added(259, "<|im_start|>", true));
  document["added_tokens"][0].update({{"lstrip", true}, {"rstrip", true}});
  put("tokenizer.json", document);
  const Tokenizer tokenizer = load();
  const std::vector<ChatMessage> messages{text_message(ChatRole::user, "hi \n")};
  const std::vector<TokenId> ids = encode_chat(tokenizer, messages, {}, ChatTemplate::chatml);
  const std::string rendered = "<|im_start|>user\nhi \n<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(ids, tokenizer.encode(rendered, AddedTokens::match));
  EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::keep), "<|im_start|>user\nhi<|im_end|><|im_start|>assistant\n");
}

}  // namespace
}  // namespace pascaline::testing
