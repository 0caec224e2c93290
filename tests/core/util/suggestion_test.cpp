#include "core/util/suggestion.hpp"

#include <gtest/gtest.h>

namespace pascaline::testing {
namespace {

TEST(SuggestionTest, DistanceCountsEditsAndSwapsOfNeighbours) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("sweep", "sweep"), 0U);
  EXPECT_EQ(edit_distance("swep", "sweep"), 1U) << "a letter is missing";
  EXPECT_EQ(edit_distance("sweeep", "sweep"), 1U) << "a letter too many";
  EXPECT_EQ(edit_distance("swerp", "sweep"), 1U) << "another letter";
  EXPECT_EQ(edit_distance("trails", "trials"), 1U) << "two neighbours swapped";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U) << "nothing is put between what was swapped";
  EXPECT_EQ(edit_distance("block_m", "BLOCK_M"), 0U) << "in either case";
}

TEST(SuggestionTest, DistanceIsTheSameBothWays) {
  for (const char* a : {"", "a", "matmul", "matvec", "--trials", "BLOCK_K"}) {
    for (const char* b : {"", "b", "matmull", "--trails", "BLOCKS_K", "attention_decode"}) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
    }
  }
}

TEST(SuggestionTest, TheNearestNameIsMeant) {
  const std::vector<std::string> commands{"sweep", "serve", "show", "status", "bench-model"};
  EXPECT_EQ(closest_name("swep", commands), "sweep");
  EXPECT_EQ(closest_name("sevre", commands), "serve");
  EXPECT_EQ(closest_name("STATUS", commands), "status");
  EXPECT_EQ(closest_name("bench", commands), "bench-model") << "the only one that begins so";
  EXPECT_EQ(closest_name("shaw", commands), "show");
  EXPECT_EQ(closest_name("--trails", {"--type", "--trials", "--retry-failed"}), "--trials");
}

TEST(SuggestionTest, NothingIsGuessedWhereNothingIsNear) {
  EXPECT_EQ(closest_name("frobnicate", {"sweep", "generate"}), "");
  EXPECT_EQ(closest_name("X", {"M", "N", "K"}), "") << "a letter for a letter is no typing error";
  EXPECT_EQ(closest_name("m", {"M", "N", "K"}), "M");
  EXPECT_EQ(closest_name("att", {"attention_decode", "attention_prefill"}), "") << "two begin so";
  EXPECT_EQ(closest_name("", {"a"}), "");
  EXPECT_EQ(closest_name("sweep", {}), "");
  EXPECT_EQ(closest_name(std::string(100'000, 's'), {"sweep"}), "");
  EXPECT_EQ(closest_name("sweep", {std::string(100'000, 's')}), "");
}

TEST(SuggestionTest, IsReadAfterTheUnknownName) {
  EXPECT_EQ(did_you_mean("swep", {"sweep"}), " (did you mean 'sweep'?)");
  EXPECT_EQ(did_you_mean("help", {"sweep"}), "");
}

}  // namespace
}  // namespace pascaline::testing
