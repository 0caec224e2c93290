#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/space/enumeration.hpp"
#include "core/util/paths.hpp"
#include "tests/core/space/small_space.hpp"
#include "tests/core/space/space_exercise.hpp"
#include "tests/core/util/fuzz_test.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::exercise;
using testing::fuzz_seed;
using testing::FuzzTest;
using testing::Mutator;
using testing::small_space;
using testing::word_list;

const std::vector<std::string_view> kSpaceWords =
    word_list(R"("schema"|"kernel"|"values"|"default"|"option"|"omit"|"require"|"because"|"float32"|"int8"|"buffer"|)"
              R"("scalar"|"in"|"out"|"model"|"barriers"|true|false|null|{|}|[|]|,|:|"|\\|\u0000|\ud800|BLOCK|)"
              R"(sizeof(STORAGE)| / 0| % N| << 62|device_warp_size|[[[[[[[[)");

class SpaceFuzzTest : public FuzzTest {
 protected:
  SpaceFuzzTest() {
    seeds_.push_back(small_space());
    seeds_.push_back(json::parse(read_file(data_folder("search_spaces") / "matmul.json")));
  }

  // Parses and, if accepted, uses the space; anything but a SpaceError from the parser fails the test.
  void try_text(const std::string& text) {
    const auto start = Clock::now();
    try {
      const Space space = Space::parse(text, "fuzz.json");
      ++accepted_;
      exercise(space);
    } catch (const SpaceError& error) {
      ASSERT_EQ(error.file(), "fuzz.json");
      // A message that is not valid UTF-8 could not be stored or reported.
      ASSERT_NO_THROW((void)json(error.what()).dump()) << error.what();
      ++refused_;
    }
    ASSERT_LT(Clock::now() - start, std::chrono::seconds(20)) << text;
  }

  std::vector<json> seeds_;
};

TEST_F(SpaceFuzzTest, DamagedTextIsRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 2, kSpaceWords);
  repeat(6, {}, [&] {
    const json& seed = seeds_[mutator.below(seeds_.size())];
    try_text(mutator.damaged(seed.dump(mutator.below(2) == 0 ? -1 : 1)));
  });
}

TEST_F(SpaceFuzzTest, AlteredDocumentsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 3, kSpaceWords);
  repeat(6, {.accepted = 1}, [&] { try_text(mutator.altered(seeds_[mutator.below(seeds_.size())]).dump()); });
}

TEST_F(SpaceFuzzTest, BombsAreRefusedAtOnce) {
  const std::string deep(1'000'000, '[');
  std::string parentheses = small_space().dump();
  parentheses.replace(parentheses.find("BLOCK * ITEMS <= 256"), 20, std::string(2000, '(') + std::string(2000, ')'));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += R"({"\\":)";
  }
  json wide = small_space();
  for (int i = 0; i < 5000; ++i) {
    wide["parameters"][0]["values"].push_back(1000 + i);
  }
  json impossible = small_space();
  impossible["constraints"] = json::array();
  for (int i = 0; i < 24; ++i) {
    impossible["parameters"].push_back(
        {{"name", "P" + std::to_string(i)}, {"values", {0, 1, 2, 3}}, {"default", 0}, {"description", "p"}});
  }
  impossible["constraints"].push_back({{"require", "P23 + P0 == 99"}, {"because", "nothing meets it"}});
  for (const std::string& text : {deep, parentheses, objects, wide.dump(), impossible.dump()}) {
    ASSERT_NO_FATAL_FAILURE(try_text(text));
  }
  EXPECT_EQ(refused_, 5);
}

}  // namespace
}  // namespace pascaline
