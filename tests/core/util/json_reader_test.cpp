#include "core/util/json_reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace pascaline {
namespace {

std::string complaint(const std::string& text) {
  try {
    (void)parse_json(text, "f.json");
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.file(), "f.json");
    return error.what();
  }
  return "accepted";
}

TEST(ParseJsonTest, SyntaxErrorsNameLineAndColumn) {
  EXPECT_EQ(complaint(""), "f.json: not valid JSON at line 1, column 1");
  EXPECT_EQ(complaint("{\"a\": 1,}"), "f.json: not valid JSON at line 1, column 9");
  EXPECT_EQ(complaint("{\n  \"a\": [1, 2\n"), "f.json: not valid JSON at line 3, column 1");
  EXPECT_EQ(complaint("{\n  \"a\": tru }"), "f.json: not valid JSON at line 2, column 11");
  EXPECT_EQ(complaint("[1]\nx"), "f.json: not valid JSON at line 2, column 1");
  EXPECT_NE(complaint("\"\xFF\""), "accepted");
  EXPECT_EQ(complaint("[1e999]"), "f.json: not valid JSON: number overflow parsing '1e999'");
  EXPECT_NE(complaint("[NaN]"), "accepted");
}

TEST(ParseJsonTest, RepeatedKeysAreNamedByPointer) {
  EXPECT_EQ(complaint(R"({"a": 1, "a": 2})"), "f.json:/a: this key is a duplicate");
  EXPECT_EQ(complaint(R"({"x": [1, {}, {"a/b": {"k": [], "k": {}}}]})"), "f.json:/x/2/a~1b/k: this key is a duplicate");
  EXPECT_EQ(complaint(R"([[[0, 1], [2, {"": 1, "": 2}]]])"), "f.json:/0/1/1/: this key is a duplicate");
  EXPECT_EQ(complaint(R"({"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}, {"k": 1}]})"), "accepted");
}

TEST(ParseJsonTest, DepthIsBounded) {
  EXPECT_EQ(complaint(std::string(64, '[') + std::string(64, ']')), "accepted");
  EXPECT_NE(complaint(std::string(65, '[') + std::string(65, ']')), "accepted");
  EXPECT_NE(complaint(std::string(1'000'000, '[')), "accepted");
}

TEST(ParseJsonTest, BracketsInTextAreNotDepth) {
  const std::string brackets(200, '[');
  EXPECT_EQ(complaint("[\"" + brackets + "\"]"), "accepted");
  EXPECT_EQ(complaint("[\"\\\"" + brackets + "\\\"\"]"), "accepted");
}

TEST(ParseJsonTest, AnEscapedBackslashDoesNotHideDepth) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NE(complaint("[\"\\\\\", " + deep + "]"), "accepted");
  EXPECT_NE(complaint("[\"a\\\\\\\\\", " + deep + "]"), "accepted");
  EXPECT_NE(complaint("[\"a\\\\\\\"\", " + deep + "]"), "accepted");
}

class JsonNodeTest : public ::testing::Test {
 protected:
  template <typename Read>
  std::string complaint_of(Read read) {
    try {
      read();
    } catch (const SpaceError& error) {
      return error.pointer() + " " + error.what();
    }
    return "accepted";
  }
  const std::string file_ = "f.json";
  const nlohmann::json document_ =
      nlohmann::json::parse(R"({"i": 3, "u": 18446744073709551615, "r": 1.5, "t": "x", "e": "", "b": true,
                                "a": [1, [2]], "o": {"k~/": 1}, "n": null})");
  const JsonNode root_{document_, file_};
};

TEST_F(JsonNodeTest, ReadsWhatIsThere) {
  EXPECT_EQ(root_.at("i").integer(), 3);
  EXPECT_DOUBLE_EQ(root_.at("r").real(), 1.5);
  EXPECT_DOUBLE_EQ(root_.at("i").real(), 3.0);
  EXPECT_EQ(root_.at("t").name(), "x");
  EXPECT_EQ(root_.at("e").text(), "");
  EXPECT_TRUE(root_.at("b").boolean());
  EXPECT_EQ(root_.at("a").array_size(), 2U);
  EXPECT_EQ(root_.at("a").at(1).at(0).pointer(), "/a/1/0");
  EXPECT_EQ(root_.at("o").at("k~/").pointer(), "/o/k~0~1");
  EXPECT_TRUE(root_.has("n"));
  EXPECT_FALSE(root_.has("z"));
  EXPECT_FALSE(root_.at("a").has("z"));
}

TEST_F(JsonNodeTest, RefusesOtherTypesWithTheirPlace) {
  EXPECT_EQ(complaint_of([&] { (void)root_.at("r").integer(); }),
            "/r f.json:/r: expected an integer that fits 64 bits, found 1.5");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("u").integer(); }),
            "/u f.json:/u: expected an integer that fits 64 bits, found 18446744073709551615");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("t").integer(); }),
            "/t f.json:/t: expected an integer that fits 64 bits, found string");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("i").text(); }), "/i f.json:/i: expected text, found number");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("e").name(); }), "/e f.json:/e: must not be empty");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("t").real(); }), "/t f.json:/t: expected a number, found string");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("i").boolean(); }), "/i f.json:/i: expected true or false, found number");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("t").array_size(); }), "/t f.json:/t: expected an array, found string");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("t").at("x"); }), "/t f.json:/t: expected an object, found string");
  EXPECT_EQ(complaint_of([&] { (void)root_.at("z"); }), " f.json: the key 'z' is missing");
  EXPECT_EQ(complaint_of([&] {
              root_.at("o").only_keys({"k", "l"});
            }),
            "/o f.json:/o: unknown key 'k~/' (known here: k, l)");
}

TEST_F(JsonNodeTest, ExpressionsAreIntegersOrText) {
  Symbols symbols;
  symbols.add("x");
  const std::int64_t slots[] = {5};
  EXPECT_EQ(root_.at("i").expression(symbols).evaluate(slots), 3);
  EXPECT_EQ(root_.at("t").expression(symbols).evaluate(slots), 5);
  EXPECT_EQ(complaint_of([&] { (void)root_.at("t").expression(Symbols()); }),
            "/t f.json:/t: in expression 'x', column 1: unknown name 'x'");
  EXPECT_NE(complaint_of([&] { (void)root_.at("r").expression(symbols); }), "accepted");
  EXPECT_NE(complaint_of([&] { (void)root_.at("a").expression(symbols); }), "accepted");
  EXPECT_NE(complaint_of([&] { (void)root_.at("b").expression(symbols); }), "accepted");
}

}  // namespace
}  // namespace pascaline
