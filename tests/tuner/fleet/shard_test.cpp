#include "tuner/fleet/shard.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

std::string fault_of_shard(const std::string& text) {
  try {
    (void)parse_shard(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(ShardTest, OneOfSeveral) {
  EXPECT_EQ(parse_shard("2/4"), (Shard{2, 4}));
  EXPECT_EQ(parse_shard("1/1"), (Shard{1, 1}));
  EXPECT_EQ(parse_shard("10000/10000").text(), "10000/10000");
}

TEST(ShardTest, OthersAreRefusedBySayingWhatIsWrong) {
  for (const char* text : {"", "2", "/", "a/b", "2/", "/4", "2/4/8", "-1/4", "1/-4", "1.5/4", " 1/4", "1/4 ", "0x1/4",
                           "99999999999999999999/4"}) {
    EXPECT_NE(fault_of_shard(text).find("is not a shard: give it as i/N"), std::string::npos) << text;
  }
  EXPECT_EQ(fault_of_shard("0/4"), "'0/4': there is no shard 0: those of 4 are numbered from 1 to 4");
  EXPECT_EQ(fault_of_shard("5/4"), "'5/4': there is no shard 5: those of 4 are numbered from 1 to 4");
  EXPECT_EQ(fault_of_shard("1/0"), "'1/0': a sweep is divided into 1 to 10000 shards, not 0");
  EXPECT_EQ(fault_of_shard("1/100000"), "'1/100000': a sweep is divided into 1 to 10000 shards, not 100000");
}

TEST(ShardTest, SessionsSayWhatTheyAreOf) {
  EXPECT_EQ(shard_of_options(R"({"seed": 1, "shard": {"fleet": "ab", "index": 2, "count": 4}})"),
            (ShardIdentity{"ab", {2, 4}}));
  for (const char* text :
       {"", "no JSON", "[]", "{}", R"({"shard": 3})", R"({"shard": {"fleet": "ab", "index": 2}})",
        R"({"shard": {"fleet": 1, "index": 2, "count": 4}})", R"({"shard": {"fleet": "ab", "index": 5, "count": 4}})",
        R"({"shard": {"fleet": "ab", "index": 0, "count": 4}})",
        R"({"shard": {"fleet": "ab", "index": 1, "count": 4000000000}})"}) {
    EXPECT_FALSE(shard_of_options(text)) << text;
  }
}

}  // namespace
}  // namespace pascaline::testing
