#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/checkpoint/hf/safetensors.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;
using testing::safetensors_bytes;

SafetensorsContent parsed(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), "m.safetensors");
}

std::string header_complaint(const std::string& bytes) {
  return complaint_of([&] { (void)parsed(bytes); });
}

// What is said of a file with this header and so much data.
std::string complaint(const std::string& header, std::size_t data_bytes) {
  return header_complaint(safetensors_bytes(header, data_bytes));
}

constexpr const char* kOne = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(SafetensorsHeaderTest, TensorsComeInTheOrderOfTheirBytes) {
  const std::string bytes = safetensors_bytes(R"({"__metadata__":{"format":"pt","a":""},
    "late":{"dtype":"BF16","shape":[1,2],"data_offsets":[12,16]},
    "none":{"shape":[3,0],"dtype":"I64","data_offsets":[12,12]},
    "scalar":{"data_offsets":[0,4],"dtype":"F32","shape":[]},
    "\u00e9":{"dtype":"F64","shape":[1],"data_offsets":[4,12]}}   )",
                                              16);
  const SafetensorsContent content = parsed(bytes);
  ASSERT_EQ(content.tensors.size(), 4U);
  EXPECT_EQ(content.tensors[0].name, "scalar");
  EXPECT_TRUE(content.tensors[0].shape.empty());
  EXPECT_EQ(content.tensors[1].name, "\xC3\xA9");
  EXPECT_EQ(content.tensors[1].type, StoredType::F64);
  EXPECT_EQ(content.tensors[2].name, "none");
  EXPECT_TRUE(content.tensors[2].bytes.empty());
  EXPECT_EQ(content.tensors[3].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(reinterpret_cast<const char*>(content.tensors[3].bytes.data()), bytes.data() + bytes.size() - 4);
  EXPECT_EQ(content.tensors[3].bytes.size(), 4U);
  EXPECT_EQ(content.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"a", ""}}));
  EXPECT_TRUE(parsed(safetensors_bytes("{}", 0)).tensors.empty());
}

TEST(SafetensorsHeaderTest, EveryTypeHasItsSize) {
  const std::vector<std::pair<const char*, std::size_t>> types{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  for (const auto& [name, size] : types) {
    const std::string header = std::string(R"({"w":{"dtype":")") + name + R"(","shape":[3],"data_offsets":[0,)" +
                               std::to_string(3 * size) + "]}}";
    const std::string bytes = safetensors_bytes(header, 3 * size);
    const SafetensorsContent content = parsed(bytes);
    ASSERT_EQ(content.tensors.size(), 1U) << name;
    EXPECT_EQ(name_of(content.tensors[0].type), name);
    EXPECT_EQ(size_of(content.tensors[0].type), size);
  }
}

TEST(SafetensorsHeaderTest, HeaderLengthsMustBeWithinTheFile) {
  PASCALINE_EXPECT_SAYS(header_complaint(""), "m.safetensors: 0 bytes are too few");
  PASCALINE_EXPECT_SAYS(header_complaint(std::string(7, '\0')), "7 bytes are too few");
  std::string bytes = safetensors_bytes(kOne, 8);
  bytes[2] = 1;  // 65536 more
  PASCALINE_EXPECT_SAYS(header_complaint(bytes), "goes beyond the");
  bytes[7] = 1;
  PASCALINE_EXPECT_SAYS(header_complaint(bytes), "not a safetensors file");
  const std::uint64_t lengths[] = {100'000'001, UINT64_MAX, UINT64_MAX - 7, std::uint64_t{1} << 63U};
  for (const std::uint64_t length : lengths) {
    std::memcpy(bytes.data(), &length, sizeof length);
    PASCALINE_EXPECT_SAYS(header_complaint(bytes), "would have a header of " + std::to_string(length));
  }
  PASCALINE_EXPECT_SAYS(complaint("", 0), "does not begin with an opening brace");
}

TEST(SafetensorsHeaderTest, EveryTruncationIsRefused) {
  const std::string bytes = safetensors_bytes(kOne, 8);
  EXPECT_EQ(header_complaint(bytes), "accepted");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(header_complaint(bytes.substr(0, length)), "accepted") << length;
  }
}

TEST(SafetensorsHeaderTest, HeadersMustBeJsonObjects) {
  for (const char* header : {" {}", "[]", "null", "7", "\"w\"", "\xEF\xBB\xBF{}", "x"}) {
    PASCALINE_EXPECT_SAYS(complaint(header, 0), "m.safetensors: the header is not a JSON object");
  }
  for (const char* header : {"{", "{}}", "{} {}", "{\"w\":}", "{\"\\ud800\":{}}", "{\"a\" 1}", "{/**/}", "{'w':{}}"}) {
    PASCALINE_EXPECT_SAYS(complaint(header, 0), "m.safetensors: the header is not valid JSON in UTF-8 at its byte");
  }
  EXPECT_EQ(complaint("{\"__metadata__\":{\"a\":\"\xC0\x80 caf\xE9\"}}", 0), "accepted") << "a description in Latin-1";
  PASCALINE_EXPECT_SAYS(complaint("{\"\xFF\":{}}", 0), "the key 'dtype' is missing");
  PASCALINE_EXPECT_SAYS(complaint(std::string("{}\0 rest", 8), 0), "it holds a null character");
  PASCALINE_EXPECT_SAYS(complaint(R"({"w":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", 4), "at its byte");
}

TEST(SafetensorsHeaderTest, NamesStandOnce) {
  PASCALINE_EXPECT_SAYS(complaint(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                                      "w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                  2),
                        "the name 'w' is a duplicate");
  PASCALINE_EXPECT_SAYS(complaint(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' is a duplicate");
  PASCALINE_EXPECT_SAYS(complaint(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "the key 'a' is a duplicate");
  PASCALINE_EXPECT_SAYS(complaint(R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
                        "tensor 'w': the key 'dtype' is a duplicate");
}

TEST(SafetensorsHeaderTest, OnlyWhatTheFormatAllowsMayStandThere) {
  const std::vector<std::pair<const char*, const char*>> refusals{
      {R"({"w":1})", "the header has the number 1 at 'w'"},
      {R"({"w":null})", "has null at 'w'"},
      {R"({"w":[]})", "has an array at 'w'"},
      {R"({"w":"F32"})", "has text at 'w'"},
      {R"({"w":true})", "has a truth value at 'w'"},
      {R"({"w":{}})", "tensor 'w': the key 'dtype' is missing"},
      {R"({"w":{"dtype":"U8","shape":[0]}})", "tensor 'w': the key 'data_offsets' is missing"},
      {R"({"w":{"dtype":"U8","data_offsets":[0,0]}})", "tensor 'w': the key 'shape' is missing"},
      {R"({"w":{"shape":[0],"data_offsets":[0,0]}})", "tensor 'w': the key 'dtype' is missing"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})", "the key 'more' is unknown"},
      {R"({"w":{"dtype":"F31","shape":[0],"data_offsets":[0,0]}})", "tensor 'w': its dtype 'F31' is unknown"},
      {R"({"w":{"dtype":"f32","shape":[0],"data_offsets":[0,0]}})", "its dtype 'f32' is unknown"},
      {R"({"w":{"dtype":7,"shape":[0],"data_offsets":[0,0]}})", "has the number 7 at 'dtype'"},
      {R"({"w":{"dtype":["U8"],"shape":[0],"data_offsets":[0,0]}})", "has an array at 'dtype'"},
      {R"({"w":{"dtype":"U8","shape":0,"data_offsets":[0,0]}})", "has the number 0 at 'shape'"},
      {R"({"w":{"dtype":"U8","shape":[[0]],"data_offsets":[0,0]}})", "has an array at 'shape'"},
      {R"({"w":{"dtype":"U8","shape":[{}],"data_offsets":[0,0]}})", "has an object at 'shape'"},
      {R"({"w":{"dtype":"U8","shape":["0"],"data_offsets":[0,0]}})", "has text at 'shape'"},
      {R"({"w":{"dtype":"U8","shape":"0","data_offsets":[0,0]}})", "has text at 'shape'"},
      {R"({"w":{"dtype":"U8","shape":[0.0],"data_offsets":[0,0]}})",
       "'0.0', which is not an integer that fits 64 bits"},
      {R"({"w":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})",
       "not an integer that fits 64 bits"},
      {R"({"w":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})", "exceeds 63 bits"},
      {R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})", "tensor 'w': -1 is negative"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[-1,0]}})", "tensor 'w': -1 is negative"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", "its data_offsets are 1 instead of two"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})", "its data_offsets are more than two"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":{}}})", "has an object at 'data_offsets'"},
      {R"({"w":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "more than 16"},
      {R"({"__metadata__":{"a":1}})", "has the number 1 at 'a'"},
      {R"({"__metadata__":{"a":{}}})", "has an object at 'a'"},
      {R"({"__metadata__":"pt"})", "has text at '__metadata__'"}};
  for (const auto& [header, says] : refusals) {
    PASCALINE_EXPECT_SAYS(complaint(header, 0), says);
    PASCALINE_EXPECT_SAYS(complaint(header, 0), "m.safetensors: ");
  }
}

TEST(SafetensorsHeaderTest, BytesFitTypeAndShape) {
  const auto said = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return complaint(R"({"w":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 8);
  };
  EXPECT_EQ(said("F32", "[2]", "[0,8]"), "accepted");
  PASCALINE_EXPECT_SAYS(said("F32", "[3]", "[0,8]"), "tensor 'w': F32 [3] needs 12 bytes, its data_offsets hold 8");
  PASCALINE_EXPECT_SAYS(said("F16", "[2]", "[0,8]"), "F16 [2] needs 4 bytes");
  PASCALINE_EXPECT_SAYS(said("F32", "[0]", "[0,8]"), "needs 0 bytes");
  PASCALINE_EXPECT_SAYS(said("F32", "[]", "[0,8]"), "needs 4 bytes");
  PASCALINE_EXPECT_SAYS(said("F32", "[2]", "[8,0]"), "data_offsets 8 to 0 are not within the 8 bytes");
  PASCALINE_EXPECT_SAYS(said("F32", "[4]", "[0,16]"), "data_offsets 0 to 16 are not within the 8 bytes");
  PASCALINE_EXPECT_SAYS(said("U8", "[0]", "[9,9]"), "data_offsets 9 to 9 are not within the 8 bytes");
  PASCALINE_EXPECT_SAYS(said("F32", "[2]", "[9223372036854775800,9223372036854775807]"), "are not within");
  PASCALINE_EXPECT_SAYS(said("F32", "[4611686018427387905,4]", "[0,8]"), "exceeds 63 bits");
  PASCALINE_EXPECT_SAYS(said("F64", "[2305843009213693952]", "[0,8]"), "exceeds 63 bits");
}

TEST(SafetensorsHeaderTest, TensorsCoverTheDataOnce) {
  const auto two = [](const std::string& first, const std::string& second, std::size_t data) {
    return complaint(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                         R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                     data);
  };
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "accepted");
  PASCALINE_EXPECT_SAYS(two("[0,4]", "[3,7]", 7), "tensor 'b': its bytes overlap those of tensor 'a'");
  PASCALINE_EXPECT_SAYS(two("[0,4]", "[0,4]", 4), "tensor 'b': its bytes overlap those of tensor 'a'");
  PASCALINE_EXPECT_SAYS(two("[0,4]", "[6,10]", 10), "tensor 'b': 2 bytes before it belong to no tensor");
  PASCALINE_EXPECT_SAYS(two("[1,5]", "[5,9]", 9), "tensor 'a': 1 bytes before it belong to no tensor");
  PASCALINE_EXPECT_SAYS(two("[0,4]", "[4,8]", 9), "m.safetensors: 1 bytes at its end belong to no tensor");
  PASCALINE_EXPECT_SAYS(complaint("{}", 1), "1 bytes at its end belong to no tensor");
}

TEST(SafetensorsHeaderTest, NestingBombsAreRefusedAtOnce) {
  std::string deep = "{\"w\":{\"shape\":";
  deep += std::string(10'000'000, '[');
  PASCALINE_EXPECT_SAYS(complaint(deep, 0), "has an array at 'shape'");
}

TEST(SafetensorsHeaderTest, NamesInComplaintsAreTame) {
  const std::string long_name(5000, 'n');
  const std::string said = complaint("{\"" + long_name + "\":{}}", 0);
  EXPECT_LT(said.size(), 300U);
  PASCALINE_EXPECT_SAYS(complaint(R"({"a\nb\u0007":{}})", 0), "tensor 'a?b?'");
}

}  // namespace
}  // namespace pascaline
