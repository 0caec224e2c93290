#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "core/space/space.hpp"
#include "tests/core/space/small_space.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::small_space;

// The default configuration with some settings replaced.
Config changed(const Space& space, const std::vector<Config::Setting>& changes) {
  std::vector<Config::Setting> settings = space.general_default().settings();
  for (const auto& [name, value] : changes) {
    for (auto& setting : settings) {
      if (setting.first == name) {
        setting.second = value;
      }
    }
  }
  return Config(settings);
}

class BoundSpaceTest : public ::testing::Test {
 protected:
  const Space space_ = Space::parse(small_space().dump(), "scale.json");
  const Problem problem_ = space_.problem({{"N", "1000"}, {"WIDTH", "3"}, {"STORAGE", "float16"}});
  const DeviceLimits limits_ = *limits_of_architecture("sm_61");
  const BoundSpace bound_{space_, problem_, limits_};
};

TEST_F(BoundSpaceTest, Geometry) {
  const Geometry geometry = bound_.geometry(space_.launches.front(), space_.general_default());
  EXPECT_EQ(geometry, (Geometry{{8, 3, 1}, {64, 1, 1}, 128}));
  EXPECT_EQ(geometry.threads(), 64U);
}

TEST_F(BoundSpaceTest, DefinesHoldMacrosDerivedMacrosAndTypes) {
  const std::vector<std::string> expected{"BLOCK=64",  "ITEMS=2",   "CACHED=1",       "MODE=ca",
                                          "RATIO=1.0", "ALIGNED=0", "STORAGE=float16"};
  EXPECT_EQ(bound_.defines(space_.general_default()), expected);
}

TEST_F(BoundSpaceTest, OptionsLeaveTheOmittedValueOut) {
  EXPECT_TRUE(bound_.options(space_.general_default()).empty());
  EXPECT_EQ(bound_.options(changed(space_, {{"MAX_REGISTERS", std::int64_t{32}}})),
            std::vector<std::string>{"--maxrregcount=32"});
}

TEST_F(BoundSpaceTest, ValuesAndTypesOfArguments) {
  const Config config = space_.general_default();
  EXPECT_EQ(bound_.value(space_.arguments[0], config), 3000);
  EXPECT_EQ(bound_.type_of(space_.arguments[0]), ElementType::float16);
  EXPECT_EQ(bound_.value(space_.arguments[2], config), 1000);
  EXPECT_EQ(bound_.type_of(space_.arguments[2]), ElementType::int32);
  EXPECT_DOUBLE_EQ(bound_.flops(), 3000);
  EXPECT_DOUBLE_EQ(bound_.bytes(), 12000);
}

// A table of ROWS rows, of which few are read.
TEST(MeasuredShapeTest, DimensionsHaveTheLargestValuesThatAreMeasured) {
  json document = small_space();
  document["dimensions"].push_back(
      {{"name", "ROWS"}, {"minimum", 4}, {"measured_at_most", "max(2 * N, device_l2_bytes / 65536 / WIDTH)"}});
  const json table{
      {"name", "table"}, {"buffer", "float32"}, {"access", "in"}, {"extent", "ROWS * WIDTH"}, {"high", "ROWS"}};
  document["arguments"].insert(document["arguments"].begin(), table);
  const Space space = Space::parse(document.dump(), "scale.json");
  const auto measured = [&](const char* n, const char* rows, std::int64_t l2_bytes) {
    DeviceLimits limits;
    limits.l2_bytes = l2_bytes;
    const BoundSpace whole(space, space.problem({{"N", n}, {"WIDTH", "2"}, {"ROWS", rows}}), limits);
    const BoundSpace part = whole.measured();
    EXPECT_EQ(part.problem().dimension("N"), whole.problem().dimension("N"));
    EXPECT_EQ(part.value(space.arguments[0], space.general_default()), 2 * part.problem().dimension("ROWS"));
    EXPECT_EQ(part.fill_range(space.arguments[0]).second, part.problem().dimension("ROWS"));
    EXPECT_EQ(part.measured().problem(), part.problem());
    return part.problem().dimension("ROWS");
  };
  EXPECT_EQ(measured("8", "1000000000000", 1 << 21), 16);
  EXPECT_EQ(measured("8", "1000000000000", 1 << 26), 512);
  EXPECT_EQ(measured("8", "15", 1 << 21), 15);
  EXPECT_EQ(measured("1", "5", 1), 4) << "not below the minimum";
}

TEST_F(BoundSpaceTest, SaysWhyAConfigurationIsInvalid) {
  EXPECT_EQ(bound_.why_invalid(space_.general_default()), std::nullopt);
  EXPECT_EQ(bound_.why_invalid(changed(space_, {{"BLOCK", std::int64_t{256}}})),
            "the tile is small (BLOCK * ITEMS <= 256)");
  const BoundSpace odd(space_, space_.problem({{"N", "7"}, {"WIDTH", "2"}}), limits_);
  EXPECT_EQ(odd.why_invalid(space_.general_default()), "threads do whole vectors (N % ITEMS == 0)");
}

TEST_F(BoundSpaceTest, SaysWhichDeviceLimitIsBroken) {
  DeviceLimits small = limits_;
  small.max_threads_per_block = 32;
  EXPECT_EQ(BoundSpace(space_, problem_, small).why_invalid(space_.general_default()),
            "a block of 64 x 1 x 1 threads; the device allows 32");
  small = limits_;
  small.max_shared_bytes_per_block = 100;
  EXPECT_EQ(BoundSpace(space_, problem_, small).why_invalid(space_.general_default()),
            "128 bytes of shared memory per block; the device has 100");
  small = limits_;
  small.max_grid_y = 2;
  EXPECT_EQ(BoundSpace(space_, problem_, small).why_invalid(space_.general_default()),
            "a grid of 3 blocks in dimension 1; the device allows 2");
}

// Three factors whose product is 2^64 must not pass for a block of no threads.
TEST_F(BoundSpaceTest, BlocksBeyondEveryBoundAreInvalid) {
  json text = small_space();
  text["launch"]["block"] = {"1 << 22", "1 << 21", "1 << 21"};
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_TRUE(BoundSpace(space, problem_, limits_).why_invalid(space.general_default()).has_value());
}

TEST_F(BoundSpaceTest, BlocksDeeperThanAnyDeviceTakesAreInvalid) {
  json text = small_space();
  text["launch"]["block"] = {1, 1, "BLOCK"};
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, problem_, limits_);
  EXPECT_EQ(bound.why_invalid(changed(space, {{"BLOCK", std::int64_t{64}}})), std::nullopt);
  EXPECT_EQ(bound.why_invalid(changed(space, {{"BLOCK", std::int64_t{128}}})),
            "a block of 128 threads along z; devices allow 64");
}

TEST_F(BoundSpaceTest, GeometryWithoutAValueIsInvalidNotAFault) {
  for (const char* grid : {"N / (BLOCK - 64)", "0", "-1", "1 << 40", "N * N * N * N * N * N * N"}) {
    json text = small_space();
    text["launch"]["grid"] = {grid};
    const Space space = Space::parse(text.dump(), "scale.json");
    const BoundSpace bound(space, problem_, limits_);
    EXPECT_TRUE(bound.why_invalid(space.general_default()).has_value()) << grid;
    EXPECT_THROW((void)bound.geometry(space.launches.front(), space.general_default()), Error) << grid;
  }
}

TEST_F(BoundSpaceTest, ConfigurationsOfAnotherSpaceAreFaults) {
  const Config missing(std::vector<Config::Setting>{{"BLOCK", std::int64_t{64}}});
  EXPECT_THROW((void)bound_.why_invalid(missing), Error);
  EXPECT_THROW((void)bound_.defines(missing), Error);
  EXPECT_THROW((void)bound_.options(missing), Error);
  EXPECT_THROW((void)bound_.why_invalid(changed(space_, {{"BLOCK", std::int64_t{65}}})), Error);
  EXPECT_THROW((void)bound_.why_invalid(changed(space_, {{"CACHED", std::int64_t{1}}})), Error);
  auto settings = space_.general_default().settings();
  settings.emplace_back("EXTRA", std::int64_t{1});
  EXPECT_THROW((void)bound_.why_invalid(Config(settings)), Error);
}

TEST_F(BoundSpaceTest, NegativeExtentsAreFaults) {
  json text = small_space();
  text["arguments"][0]["extent"] = "N - 2000";
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_THROW((void)BoundSpace(space, problem_, limits_).value(space.arguments[0], space.general_default()), Error);
}

// Times the element's size they could wrap around to a small buffer.
TEST_F(BoundSpaceTest, ExtentsBeyondAnyDeviceAreFaults) {
  const auto extent = [&](const char* expression) {
    json text = small_space();
    text["arguments"][1]["extent"] = expression;
    const Space space = Space::parse(text.dump(), "scale.json");
    return BoundSpace(space, problem_, limits_).value(space.arguments[1], space.general_default());
  };
  EXPECT_EQ(extent("1 << 45"), std::int64_t{1} << 45) << "of two bytes each";
  for (const char* expression : {"(1 << 45) + 1", "1 << 46", "1 << 62", "9223372036854775807"}) {
    try {
      (void)extent(expression);
      FAIL() << expression << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("buffer 'y' of kernel 'scale' has the extent"), std::string::npos) << message;
      EXPECT_NE(message.find("more than any device holds"), std::string::npos) << message;
    }
  }
}

TEST_F(BoundSpaceTest, IndicesAndConfigurationsRoundTrip) {
  const std::vector<std::uint16_t> indices{3, 0, 1, 1, 0, 1};
  const Config config = space_.config_at(indices);
  EXPECT_EQ(config.text(), "BLOCK=256 CACHED=1 ITEMS=1 MAX_REGISTERS=32 MODE=cg RATIO=1.0");
  EXPECT_EQ(space_.indices_of(config), indices);
}

TEST_F(BoundSpaceTest, ProblemsAreReadFromNamesAndValues) {
  EXPECT_EQ(space_.problem({{"WIDTH", "2"}, {"N", "8"}}).text(), "scale N=8 WIDTH=2 STORAGE=float32");
  const std::vector<std::vector<std::pair<std::string, std::string>>> wrong{
      {},
      {{"N", "8"}},
      {{"N", "0"}, {"WIDTH", "2"}},
      {{"N", "8"}, {"WIDTH", "1"}},
      {{"N", "8x"}, {"WIDTH", "2"}},
      {{"N", ""}, {"WIDTH", "2"}},
      {{"N", "99999999999999999999"}, {"WIDTH", "2"}},
      {{"N", "8"}, {"WIDTH", "2"}, {"M", "1"}},
      {{"N", "8"}, {"WIDTH", "2"}, {"STORAGE", "half"}},
      {{"N", "8"}, {"WIDTH", "2"}, {"STORAGE", "int8"}},
  };
  for (const auto& values : wrong) {
    EXPECT_THROW((void)space_.problem(values), Error);
  }
  try {
    (void)space_.problem({{"N", "8"}, {"WIDTH", "2"}, {"N", "9"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "N is given twice for a problem of kernel 'scale'");
  }
}

TEST_F(BoundSpaceTest, WrongNamesOfAProblemAreToldWithTheOneThatWasMeant) {
  const auto complaint = [&](const std::vector<std::pair<std::string, std::string>>& values) -> std::string {
    try {
      return "accepted: " + space_.problem(values).text();
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(complaint({{"N", "8"}, {"WIDHT", "2"}}),
            "kernel 'scale' has no dimension or type 'WIDHT' (did you mean 'WIDTH'?); it has N, WIDTH, STORAGE")
      << "not that WIDTH is missing";
  EXPECT_EQ(complaint({{"N", "8"}, {"WIDTH", "2"}, {"M", "1"}}),
            "kernel 'scale' has no dimension or type 'M'; it has N, WIDTH, STORAGE");
  EXPECT_EQ(complaint({{"N", "8"}, {"WIDTH", "2"}, {"STORAGE", "flaot16"}}),
            "unknown element type 'flaot16' for STORAGE (did you mean 'float16'?); it may be float32, float16");
}

TEST_F(BoundSpaceTest, DimensionsWithADefaultMayBeLeftOut) {
  json text = small_space();
  text["dimensions"][1]["default"] = "N / 4";
  text["dimensions"][1]["maximum"] = 50;
  text["types"].push_back({{"name", "OUT"}, {"values", {"float32", "float16"}}, {"like", "STORAGE"}});
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_EQ(space.problem({{"N", "8"}}).text(), "scale N=8 WIDTH=2 STORAGE=float32 OUT=float32");
  EXPECT_EQ(space.problem({{"STORAGE", "float16"}, {"N", "8"}, {"WIDTH", "3"}}).text(),
            "scale N=8 WIDTH=3 STORAGE=float16 OUT=float16");
  EXPECT_EQ(space.problem({{"STORAGE", "float16"}, {"N", "8"}, {"OUT", "float32"}}).type("OUT"), ElementType::float32);
  const auto complaint = [&](const std::vector<std::pair<std::string, std::string>>& values) -> std::string {
    try {
      return "accepted: " + space.problem(values).text();
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(complaint({{"WIDTH", "8"}}), "a problem of kernel 'scale' needs dimension N");
  EXPECT_EQ(complaint({{"N", "4"}}), "dimension WIDTH of kernel 'scale' is 1, below its minimum 2");
  EXPECT_EQ(complaint({{"N", "400"}}), "dimension WIDTH of kernel 'scale' is 100, above its maximum 50");
  EXPECT_EQ(complaint({{"N", "8"}, {"WIDTH", "51"}}), "dimension WIDTH of kernel 'scale' is 51, above its maximum 50");
}

TEST_F(BoundSpaceTest, ADefaultWithoutAValueIsAFault) {
  json text = small_space();
  text["dimensions"][1]["default"] = "8 / (N - 1)";
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_EQ(space.problem({{"N", "3"}}).dimension("WIDTH"), 4);
  EXPECT_THROW((void)space.problem({{"N", "1"}}), Error);
  EXPECT_EQ(space.problem({{"N", "1"}, {"WIDTH", "2"}}).dimension("WIDTH"), 2);
}

TEST_F(BoundSpaceTest, FillRangesAreWorkedOutForTheProblem) {
  json text = small_space();
  text["arguments"][0]["low"] = -3;
  text["arguments"][0]["high"] = "N * WIDTH + BLOCK";
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, problem_, limits_);
  EXPECT_EQ(bound.fill_range(space.arguments[0]), std::pair(-3.0, 3064.0)) << "parameters have their defaults";
  text["arguments"][0]["high"] = "1 / (N - 1000)";
  const Space broken = Space::parse(text.dump(), "scale.json");
  EXPECT_THROW((void)BoundSpace(broken, problem_, limits_).fill_range(broken.arguments[0]), Error);
}

TEST_F(BoundSpaceTest, ProblemsThatDoNotFitAreFaults) {
  Problem other = problem_;
  other.kernel = "matmul";
  EXPECT_THROW(BoundSpace(space_, other, limits_), Error);
  other = problem_;
  std::swap(other.dimensions[0], other.dimensions[1]);
  EXPECT_THROW(BoundSpace(space_, other, limits_), Error);
  other = problem_;
  other.types.clear();
  EXPECT_THROW(BoundSpace(space_, other, limits_), Error);
  other = problem_;
  other.types[0].second = ElementType::float64;
  EXPECT_THROW(BoundSpace(space_, other, limits_), Error);
}

}  // namespace
}  // namespace pascaline
