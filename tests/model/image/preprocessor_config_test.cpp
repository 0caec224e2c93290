#include "model/image/preprocessor_config.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tests/model/image/small_config.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::config_json;
using testing::real_config;

// The complaint about a configuration with one value replaced, or a key removed if it is null.
std::string problem_with(const std::string& pointer, const json& value) {
  json document = config_json();
  const json::json_pointer place(pointer);
  if (value.is_null()) {
    document.at(place.parent_pointer()).erase(place.back());
  } else {
    document[place] = value;
  }
  try {
    (void)parse_preprocessor_config(document.dump(), "preprocessor_config.json");
  } catch (const SpaceError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PreprocessorConfigTest, EveryValueIsRead) {
  json document = config_json();
  document["patch_size"] = 14;
  document["temporal_patch_size"] = 3;
  document["merge_size"] = 4;
  document["image_mean"] = {0.1, 0.2, 0.3};
  document["image_std"] = {0.4, 0.5, 0.6};
  document["rescale_factor"] = 0.5;
  const PreprocessorConfig config = parse_preprocessor_config(document.dump(), "x.json");
  EXPECT_EQ(config.shortest_edge, 65536);
  EXPECT_EQ(config.longest_edge, 16777216);
  EXPECT_EQ(config.factor(), 56);
  EXPECT_EQ(config.patch_values(), 3 * 3 * 14 * 14);
  EXPECT_EQ(config.image_mean, (std::array<double, 3>{0.1, 0.2, 0.3}));
  EXPECT_EQ(config.image_std, (std::array<double, 3>{0.4, 0.5, 0.6}));
  EXPECT_EQ(config.rescale_factor, 0.5);
  EXPECT_EQ(real_config().rescale_factor, 1.0 / 255);
}

TEST(PreprocessorConfigTest, AFolderMayHaveItInTheFileOfTheWholeProcessor) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "pascaline_preprocessor_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_EQ(preprocessor_file(folder), folder / "preprocessor_config.json") << "which errors then name";
  write_file_atomically(folder / "processor_config.json", R"({"processor_class": "Qwen3VLProcessor"})");
  write_file_atomically(folder / "preprocessor_config.json", config_json().dump());
  EXPECT_EQ(preprocessor_file(folder), folder / "preprocessor_config.json");
  json whole{{"image_processor", config_json()}, {"video_processor", {{"fps", 2}}}, {"processor_class", "x"}};
  whole["image_processor"]["size"]["longest_edge"] = 1 << 20;
  write_file_atomically(folder / "processor_config.json", whole.dump());
  EXPECT_EQ(preprocessor_file(folder), folder / "processor_config.json");
  EXPECT_EQ(read_preprocessor_config(preprocessor_file(folder)).longest_edge, 1 << 20);
  whole["image_processor"]["resample"] = 2;
  try {
    (void)parse_preprocessor_config(whole.dump(), "processor_config.json");
    ADD_FAILURE() << "another resampling was taken";
  } catch (const SpaceError& error) {
    EXPECT_EQ(std::string(error.what()), "processor_config.json:/image_processor/resample: 2 is not supported, only 3");
  }
  std::filesystem::remove_all(folder);
}

TEST(PreprocessorConfigTest, OlderKeysOfTheLimitsAreTaken) {
  json document = config_json();
  document.erase("size");
  document["min_pixels"] = 3136;
  document["max_pixels"] = 12845056;
  const PreprocessorConfig config = parse_preprocessor_config(document.dump(), "x.json");
  EXPECT_EQ(config.shortest_edge, 3136);
  EXPECT_EQ(config.longest_edge, 12845056);
}

TEST(PreprocessorConfigTest, AMissingKeyIsAnError) {
  for (const std::string key : {"size", "patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std"}) {
    EXPECT_EQ(problem_with("/" + key, nullptr), "preprocessor_config.json: the key '" + key + "' is missing");
  }
  EXPECT_EQ(problem_with("/size/longest_edge", nullptr),
            "preprocessor_config.json:/size: the key 'longest_edge' is missing");
}

TEST(PreprocessorConfigTest, ImpossibleValuesAreRefusedWithTheirPlace) {
  struct Case {
    std::string pointer;
    json value;
  };
  const std::array<Case, 20> cases{{{"/patch_size", 0},
                                    {"/patch_size", -16},
                                    {"/patch_size", 1'000'000},
                                    {"/patch_size", 16.5},
                                    {"/patch_size", "16"},
                                    {"/temporal_patch_size", 0},
                                    {"/merge_size", 100},
                                    {"/size/shortest_edge", 0},
                                    {"/size/longest_edge", 65535},
                                    {"/size/longest_edge", std::numeric_limits<std::int64_t>::max()},
                                    {"/size/shortest_edge", 20'000'000},
                                    {"/size", 448},
                                    {"/image_mean", {0.5, 0.5}},
                                    {"/image_mean/1", "half"},
                                    {"/image_std/2", 0.0},
                                    {"/image_std/0", -0.5},
                                    {"/rescale_factor", 0.0},
                                    {"/do_resize", false},
                                    {"/resample", 2},
                                    {"/image_processor_type", "CLIPImageProcessor"}}};
  for (const Case& c : cases) {
    const std::string problem = problem_with(c.pointer, c.value);
    // A shortest edge beyond the longest is told of the longest.
    const std::string place = c.value == 20'000'000 ? "/size/longest_edge" : c.pointer;
    EXPECT_TRUE(problem.starts_with("preprocessor_config.json:" + place + ": ")) << c.pointer << ": " << problem;
  }
  json tiny = config_json();
  tiny["size"] = {{"shortest_edge", 1}, {"longest_edge", 1023}};
  EXPECT_THROW((void)parse_preprocessor_config(tiny.dump(), "x.json"), SpaceError);
  EXPECT_THROW((void)parse_preprocessor_config("[]", "x.json"), SpaceError);
  EXPECT_THROW((void)parse_preprocessor_config("", "x.json"), SpaceError);
  EXPECT_THROW((void)read_preprocessor_config("/none/preprocessor_config.json"), Error);
}

struct SizeCase {
  std::int64_t height, width;
  TargetSize expected;
  std::int64_t tokens;
};

TEST(TargetSizeTest, AgreesWithTheReference) {
  const std::array<SizeCase, 9> cases{{{480, 640, {480, 640}, 300},
                                       {1080, 1920, {1088, 1920}, 2040},
                                       {720, 1280, {704, 1280}, 880},
                                       {3024, 4032, {3008, 4032}, 11844},
                                       {100, 100, {256, 256}, 64},
                                       {17, 31, {192, 352}, 66},
                                       {37, 5000, {32, 4992}, 156},
                                       {80, 1600, {64, 1600}, 100},
                                       {6000, 8000, {3520, 4704}, 16170}}};
  const PreprocessorConfig config = real_config();
  for (const SizeCase& c : cases) {
    const TargetSize size = target_size(c.height, c.width, config);
    EXPECT_EQ(size, c.expected) << c.height << " x " << c.width << ": " << size.height << " x " << size.width;
    EXPECT_EQ(image_tokens(size, config), c.tokens);
    const TargetSize turned = target_size(c.width, c.height, config);
    EXPECT_EQ(turned, (TargetSize{c.expected.width, c.expected.height}));
  }
}

TEST(TargetSizeTest, ExtremeRatiosAreRefused) {
  const PreprocessorConfig config = real_config();
  EXPECT_NO_THROW((void)target_size(10, 2000, config));
  EXPECT_THROW((void)target_size(10, 2001, config), Error);
  EXPECT_THROW((void)target_size(2001, 10, config), Error);
  EXPECT_THROW((void)target_size(0, 10, config), Error);
  EXPECT_THROW((void)target_size(10, -1, config), Error);
}

TEST(TargetSizeTest, TheUsersLimitIsKept) {
  const PreprocessorConfig limited = limit_tokens(real_config(), 256);
  EXPECT_EQ(limited.longest_edge, 256 * 1024);
  EXPECT_EQ(limited.shortest_edge, 65536);
  const TargetSize size = target_size(3024, 4032, limited);
  EXPECT_EQ(size, (TargetSize{416, 576}));
  EXPECT_LE(image_tokens(size, limited), 256);
  const PreprocessorConfig small = limit_pixels(real_config(), 5000);
  EXPECT_EQ(small.longest_edge, 5000);
  EXPECT_EQ(small.shortest_edge, 5000);
  EXPECT_EQ(target_size(480, 640, small), (TargetSize{32, 64}));
  // Never under a token a side, and never raised.
  EXPECT_EQ(target_size(32, 6400, small), (TargetSize{32, 992}));
  EXPECT_EQ(limit_tokens(real_config(), std::numeric_limits<std::int64_t>::max()).longest_edge, 16777216);
  EXPECT_THROW((void)limit_pixels(real_config(), 1023), Error);
  EXPECT_THROW((void)limit_tokens(real_config(), 0), Error);
}

}  // namespace
}  // namespace pascaline
