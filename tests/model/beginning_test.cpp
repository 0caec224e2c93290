#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "model/session/model_folder.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

// A model whose texts begin with token 736, <|endoftext|>.
class BeginningTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  BeginningTest() {
    write_llama_folder(folder_.path());
    json tokenizer = json::parse(read_file(folder_ / "tokenizer.json"));
    tokenizer["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {{{"SpecialToken", {{"id", "<|endoftext|>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}}}}}},
        {"special_tokens", {{"<|endoftext|>", {{"id", "<|endoftext|>"}, {"ids", {736}}}}}}};
    write_file_atomically(folder_ / "tokenizer.json", tokenizer.dump());
  }

  // How often the tokens of a conversation begin with it, rendered as chatml.
  [[nodiscard]] int times(const json& own_template) const {
    write_file_atomically(folder_ / "tokenizer_config.json",
                          json{{"bos_token", "<|endoftext|>"}, {"chat_template", own_template}}.dump());
    const ModelFolder model(folder_.path(), ModelParts::all, "chatml");
    const std::vector<ChatMessage> messages{text_message(ChatRole::user, "hello")};
    const std::vector<TokenId> tokens = model.encode_messages(messages);
    const auto rest = std::find_if(tokens.begin(), tokens.end(), [](TokenId token) { return token != 736; });
    return static_cast<int>(rest - tokens.begin());
  }
};

TEST_F(BeginningTest, ARawTextBeginsWithItOnce) {
  const ModelFolder model(folder_.path(), ModelParts::words);
  const std::vector<TokenId> plain = model.encode_plain("hello", AddedTokens::match);
  EXPECT_EQ(plain.front(), 736);
  EXPECT_EQ(model.encode_plain("<|endoftext|>hello", AddedTokens::match), plain);
  const std::vector<TokenId> text = model.encode_plain("<|endoftext|>hello", AddedTokens::ignore);
  EXPECT_EQ(text.front(), 736);
  EXPECT_GT(text.size(), plain.size()) << "where it is text like any other";
}

TEST_F(BeginningTest, AnotherTemplateKeepsThatOfTheModelsOwn) {
  EXPECT_EQ(times("{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}"), 1);
  EXPECT_EQ(times("<|endoftext|>{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}"), 1);
  EXPECT_EQ(times("{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}"), 0) << "it writes none";
  EXPECT_EQ(times(nullptr), 1) << "the texts of the model begin with it";
}

}  // namespace
}  // namespace pascaline::testing
