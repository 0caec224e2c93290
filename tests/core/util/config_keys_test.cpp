#include "core/util/config_keys.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/error.hpp"
#include "core/util/unknown_keys.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::string_view, 1> kReadKeys{"size"};
constexpr std::array<LimitedKey, 3> kLimitedKeys{LimitedKey{"eps", "[1e-06]"}, LimitedKey{"kind", R"(["a", "b"])"},
                                                 LimitedKey{"bias", "[false]"}};
constexpr std::array<std::string_view, 1> kFreeKeys{"note"};

std::string key_complaint(const std::string& text) {
  const std::string file = "x.json";
  const nlohmann::json document = parse_json(text, file);
  try {
    check_keys(JsonNode(document, file), {kReadKeys, kLimitedKeys, kFreeKeys});
  } catch (const SpaceError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigKeysTest, WhatIsHeededOrWithoutEffectIsAccepted) {
  EXPECT_EQ(key_complaint("{}"), "accepted");
  EXPECT_EQ(key_complaint(R"({"size": 7, "note": {"a": [1]}, "eps": 1e-6, "kind": "b", "bias": false})"), "accepted");
  EXPECT_EQ(key_complaint(R"({"eps": null, "unheard_of": null})"), "accepted") << "as if they were left out";
  EXPECT_EQ(key_complaint(R"({"eps": 9.999999974752427e-07})"), "accepted") << "the float32 that is meant";
}

TEST(ConfigKeysTest, OtherValuesAreNamedWithThoseSupported) {
  EXPECT_EQ(key_complaint(R"({"eps": 1e-5})"), "x.json:/eps: 1e-05 is not supported, only 1e-06");
  EXPECT_EQ(key_complaint(R"({"eps": "1e-6"})"), R"(x.json:/eps: "1e-6" is not supported, only 1e-06)");
  EXPECT_EQ(key_complaint(R"({"kind": "c"})"), R"(x.json:/kind: "c" is not supported, only "a" or "b")");
  EXPECT_EQ(key_complaint(R"({"bias": 0})"), "x.json:/bias: 0 is not supported, only false");
}

TEST(ConfigKeysTest, KeysThatAreNotKnownAreToldOnce) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(key_complaint(R"({"rope_scale": 2, "a_tools_own": {"b": 1}, "size": 1})"), "accepted");
  EXPECT_EQ(key_complaint(R"({"rope_scale": 2, "a_tools_own": {"b": 1}, "size": 1})"), "accepted");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "pascaline: warning: x.json: 2 keys are unknown here and ignored: /a_tools_own, /rope_scale\n");
  EXPECT_NE(key_complaint("7"), "accepted");
}

TEST(ConfigKeysTest, KeysThatAreNotKnownAreRefusedOnDemand) {
  const StrictKeys strict(true);
  const std::string refused = "x.json: 1 key is unknown here and ignored: /wheel; --strict refuses that";
  for (int i = 0; i < 2; ++i) {
    try {
      (void)key_complaint(R"({"wheel": 2})");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), refused);
    }
  }
  const StrictKeys not_stricter(false);
  EXPECT_THROW((void)key_complaint(R"({"wheel": 2})"), Error) << "within the strict one";
  EXPECT_EQ(key_complaint(R"({"note": 2})"), "accepted");
}

}  // namespace
}  // namespace pascaline
