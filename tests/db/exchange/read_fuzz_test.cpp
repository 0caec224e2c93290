#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "db/exchange/unpack.hpp"
#include "tests/core/util/fuzz_test.hpp"
#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::fuzz_seed;
using testing::FuzzTest;
using testing::Mutator;
using testing::word_list;

const std::vector<std::string_view> kWords =
    word_list(R"("cache"|"tune_params"|"tune_params_keys"|"time"|"times"|"__error__"|NaN|Infinity|-Infinity|1e20|)"
              "\"\x7f\"|\"\x7fInfin\"|"
              R"("results"|"schema_version"|"configuration"|"correct"|null|true|{|}|[|]|,|:|"|\u0000|\ud800|,ok,|)"
              "\r\n|\n");

class ReadFuzzTest : public FuzzTest {
 protected:
  // Reads and, if accepted, holds the space against what it promises; anything but a SpaceError fails the test.
  void try_text(const std::string& text) {
    try {
      const RecordedSpace space = parse_recorded_space(text, "fuzz");
      ++accepted_;
      ASSERT_FALSE(space.trials.empty());
      for (const RecordedTrial& trial : space.trials) {
        ASSERT_NO_THROW((void)space.config(trial));
        ASSERT_EQ(trial.status == TrialStatus::ok, trial.time_us > 0);
        ASSERT_TRUE(std::isfinite(trial.time_us) && std::isfinite(trial.cost_ms()) && trial.cost_ms() >= 0);
      }
    } catch (const SpaceError& error) {
      ++refused_;
      ASSERT_EQ(error.file(), "fuzz");
    }
  }

  std::vector<std::string> seeds_{testing::kernel_tuner_sample(), testing::t4_sample().dump(), testing::csv_sample()};
};

TEST_F(ReadFuzzTest, DamagedTextIsRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 20, kWords);
  repeat(6, {}, [&] { try_text(mutator.damaged(seeds_[mutator.below(seeds_.size())])); });
  EXPECT_GT(accepted_, 0);
}

TEST_F(ReadFuzzTest, AlteredDocumentsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 21, kWords);
  std::string cache = testing::with(seeds_[0], "NaN", "null");
  const std::array<json, 2> documents{json::parse(cache), testing::t4_sample()};
  repeat(6, {.accepted = 1}, [&] { try_text(mutator.altered(documents[mutator.below(2)]).dump()); });
}

TEST_F(ReadFuzzTest, DamagedPackedFilesAreRefusedOrUnpacked) {
  Mutator mutator(fuzz_seed() + 22, {});
  const std::string whole = testing::packed(seeds_[0]);
  repeat(12, {}, [&] {
    try {
      ASSERT_LE(unpack_gzip(mutator.damaged(whole), "fuzz", 100'000).size(), 100'000U);
    } catch (const SpaceError&) {
      ++refused_;
    }
  });
}

TEST_F(ReadFuzzTest, BombsAreRefusedAtOnce) {
  const std::string head = seeds_[0].substr(0, seeds_[0].find("\"cache\""));
  std::string objects = head + "\"cache\": ";
  for (int i = 0; i < 100'000; ++i) {
    objects += R"({"a":)";
  }
  const std::string commas = std::string(1'000'000, ',') + "time_ms,status,eval_cost_ms\n";
  for (const std::string& text : {std::string(1'000'000, '['), objects, commas, std::string(1'000'000, '{')}) {
    ASSERT_NO_FATAL_FAILURE(try_text(text));
  }
  EXPECT_EQ(refused_, 4);
}

}  // namespace
}  // namespace pascaline
