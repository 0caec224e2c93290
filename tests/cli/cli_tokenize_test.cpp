#include <gtest/gtest.h>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

class CliTokenizeTest : public CliTest {
 protected:
  const std::string model_ = PASCALINE_TEST_TEXT_DATA;

  [[nodiscard]] ProgramResult tokenize(const std::string& input, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"tokenize", "--model", model_};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.input = input;
    return run(words, setting);
  }
};

TEST_F(CliTokenizeTest, JsonListBecomesListOfIds) {
  const nlohmann::json entries = nlohmann::json::parse(read_file(model_ + "/encodings.json"))["encodings"];
  nlohmann::json texts = nlohmann::json::array();
  nlohmann::json ids = nlohmann::json::array();
  for (const nlohmann::json& entry : entries) {
    texts.push_back(entry["text"]);
    ids.push_back(entry["ids"]);
  }
  const ProgramResult result = tokenize(texts.dump(), {"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result), ids);
  EXPECT_EQ(tokenize("[]", {"--json"}).out, "[]\n");
  ProgramSetting setting;
  setting.input = texts.dump();
  EXPECT_EQ(json_of(run({"tokenize", "-m", model_, "--json"}, setting)), ids);
}

TEST_F(CliTokenizeTest, LinesBecomeLines) {
  const ProgramResult result = tokenize("ab\n\n<|im_start|><|im_end|>\nab");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const std::string ab = json_of(tokenize("[\"ab\"]", {"--json"}))[0].dump();
  std::string line = ab.substr(1, ab.size() - 2);
  for (char& c : line) {
    c = c == ',' ? ' ' : c;
  }
  EXPECT_EQ(result.out, line + "\n\n737 738\n" + line + "\n");
  EXPECT_EQ(tokenize("").out, "");
}

TEST_F(CliTokenizeTest, AddedTokensCanBeText) {
  const nlohmann::json ids = json_of(tokenize("[\"<|im_end|>\"]", {"--json", "--as-text"}))[0];
  EXPECT_GT(ids.size(), 1U);
  for (const nlohmann::json& id : ids) {
    EXPECT_LT(id.get<int>(), 736);
  }
}

TEST_F(CliTokenizeTest, WrongInputIsAFault) {
  expect_fault(tokenize("{}", {"--json"}), 1, {"standard input: expected an array"});
  expect_fault(tokenize("[\"a\", 7]", {"--json"}), 1, {"standard input:/1: expected text"});
  expect_fault(tokenize("[\"a\"", {"--json"}), 1, {"standard input: not valid JSON"});
  expect_fault(tokenize("[\"\xFF\"]", {"--json"}), 1, {"standard input: not valid JSON"});
  expect_fault(run({"tokenize"}), 2, {"--model"});
  expect_fault(run({"tokenize", "--model", "/nonexistent"}), 1, {"/nonexistent/tokenizer.json"});
  write_bytes(folder_ / "tokenizer.json", R"({"model": {"type": "Unigram"}})");
  expect_fault(run({"tokenize", "--model", folder_.path().string()}), 1,
               {"tokenizer.json:/model/type", "'Unigram' is not supported"});
}

}  // namespace
}  // namespace pascaline::testing
