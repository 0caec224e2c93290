#include "model/image/preprocess.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/model/image/image_encoder.hpp"
#include "tests/model/image/small_config.hpp"

namespace pascaline {
namespace {

using testing::real_config;
using testing::synthetic_image;

struct Sample {
  std::int64_t row, column;
  float value;
};

struct Golden {
  std::int64_t height, width;
  PatchGrid grid;
  double sum, sum_of_squares;
  std::vector<Sample> samples;
};

// Every resize here is exact to the level, so only float32 rounding is left.
constexpr double kValueTolerance = 1e-6;

void expect_golden(const Golden& golden) {
  SCOPED_TRACE(::testing::Message() << golden.height << " x " << golden.width);
  const Patches patches = preprocess(synthetic_image(golden.height, golden.width), real_config());
  ASSERT_EQ(patches.grid.t, golden.grid.t);
  ASSERT_EQ(patches.grid.h, golden.grid.h);
  ASSERT_EQ(patches.grid.w, golden.grid.w);
  ASSERT_EQ(patches.grid.columns, golden.grid.columns);
  double sum = 0;
  double sum_of_squares = 0;
  for (const float value : patches.view()) {
    sum += value;
    sum_of_squares += static_cast<double>(value) * value;
  }
  // One value that is off by a level changes the sum by 0.0078.
  EXPECT_NEAR(sum, golden.sum, 2e-3);
  EXPECT_NEAR(sum_of_squares, golden.sum_of_squares, 2e-3);
  for (const Sample& sample : golden.samples) {
    const float value = patches.values[static_cast<std::size_t>(sample.row * golden.grid.columns + sample.column)];
    EXPECT_NEAR(value, sample.value, kValueTolerance) << "row " << sample.row << ", column " << sample.column;
  }
}

// Results of Transformers' Qwen2-VL image processor on torchvision, for the synthetic image.
TEST(PreprocessTest, AgreesWithTheReferenceOnASelection) {
  const std::vector<Golden> goldens{
      {17,
       31,
       {1, 12, 22, 1536},
       -5817.5687071625143,
       124785.08900400918,
       {{{172, 456, -0.474509805F},
         {181, 84, 0.505882382F},
         {151, 493, 0.498039216F},
         {122, 531, -0.717647076F},
         {43, 738, -0.733333349F},
         {3, 563, -0.568627477F}}}},
      {33,
       500,
       {1, 6, 64, 1536},
       986.33728177379817,
       179128.88389287141,
       {{{14, 1060, 0.819607854F},
         {300, 278, 0.97647059F},
         {173, 1440, 0.866666675F},
         {245, 1366, 0.184313729F},
         {360, 1252, 0.529411793F},
         {247, 945, 0.56078434F}}}},
      {256,
       256,
       {1, 16, 16, 1536},
       -77.019605274312198,
       132090.89845593541,
       {{{124, 1445, 0.75686276F},
         {210, 701, -0.796078444F},
         {0, 661, 0.529411793F},
         {90, 239, 0.0352941193F},
         {93, 831, 0.0117647061F},
         {18, 11, 0.411764711F}}}},
      {300,
       200,
       {1, 20, 14, 1536},
       52.470589739270508,
       129880.81346658936,
       {{{155, 756, -0.772549033F},
         {53, 1404, 0.0823529437F},
         {75, 1430, -0.631372571F},
         {156, 411, -0.129411772F},
         {82, 483, -0.301960796F},
         {210, 1307, -0.184313729F}}}},
  };
  for (const Golden& golden : goldens) {
    expect_golden(golden);
  }
}

TEST(PreprocessTest, AgreesWithTheReferenceOnAllOfItsCases) {
  const char* folder = std::getenv("PASCALINE_SHARED_FIXTURES");
  if (folder == nullptr) {
    GTEST_SKIP() << "PASCALINE_SHARED_FIXTURES is not set: the larger cases of preprocessing.json are not checked";
  }
  std::ifstream file(std::filesystem::path(folder) / "qwen3-vl" / "preprocessing.json");
  ASSERT_TRUE(file) << "no qwen3-vl/preprocessing.json in " << folder;
  const nlohmann::json document = nlohmann::json::parse(file);
  ASSERT_FALSE(document.at("cases").empty());
  for (const nlohmann::json& c : document.at("cases")) {
    const auto& thw = c.at("grid_thw");
    Golden golden{c.at("height"), c.at("width"),          {thw.at(0), thw.at(1), thw.at(2), c.at("cols")},
                  c.at("sum"),    c.at("sum_of_squares"), {}};
    ASSERT_EQ(golden.grid.rows(), c.at("rows").get<std::int64_t>());
    for (const nlohmann::json& sample : c.at("samples")) {
      golden.samples.push_back({sample.at(0), sample.at(1), sample.at(2)});
    }
    ASSERT_FALSE(golden.samples.empty());
    expect_golden(golden);
  }
}

// Where each value of the layout comes from, worked out from its definition.
TEST(PreprocessTest, EveryValueIsInItsPlace) {
  PreprocessorConfig config = real_config();
  config.patch_size = 2;
  config.merge_size = 3;
  config.temporal_patch_size = 3;
  config.shortest_edge = 1;
  config.image_mean = {0.1, 0.2, 0.3};
  config.image_std = {0.5, 0.6, 0.7};
  const Image image = synthetic_image(12, 18);
  const Patches patches = preprocess(image, config);
  ASSERT_EQ(patches.grid.h, 6);
  ASSERT_EQ(patches.grid.w, 9);
  ASSERT_EQ(patches.grid.columns, 36);
  std::size_t at = 0;
  for (std::int64_t block_row = 0; block_row < 2; ++block_row) {
    for (std::int64_t block = 0; block < 3; ++block) {
      for (std::int64_t place = 0; place < 9; ++place) {
        for (std::int64_t i = 0; i < 36; ++i) {
          const std::int64_t c = i / 12;
          const std::int64_t y = (block_row * 3 + place / 3) * 2 + i % 4 / 2;
          const std::int64_t x = (block * 3 + place % 3) * 2 + i % 2;
          const auto channel = static_cast<std::size_t>(c);
          const double wanted =
              (image.row(y)[x * 3 + c] / 255.0 - config.image_mean[channel]) / config.image_std[channel];
          ASSERT_NEAR(patches.values[at++], wanted, 1e-6) << block_row << ", " << block << ", " << place << ", " << i;
        }
      }
    }
  }
  EXPECT_EQ(at, patches.grid.values());
}

TEST(PreprocessTest, WritesIntoTheCallersMemory) {
  const PreprocessorConfig config = real_config();
  const Image image = synthetic_image(300, 200);
  const PatchGrid grid = patch_grid(300, 200, config);
  std::vector<float> values(grid.values() + 1, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(preprocess(image, config, std::span(values).first(grid.values())).rows(), grid.rows());
  const Patches patches = preprocess(image, config);
  EXPECT_TRUE(std::equal(patches.view().begin(), patches.view().end(), values.begin()));
  EXPECT_TRUE(std::isnan(values.back()));
  EXPECT_THROW(preprocess(image, config, values), Error);
  EXPECT_THROW(preprocess(image, config, {}), Error);
}

TEST(PreprocessTest, AImageThatFitsIsNotResized) {
  const Image image = synthetic_image(256, 256);
  const Patches patches = preprocess(image, real_config());
  EXPECT_FLOAT_EQ(patches.values[0], static_cast<float>((image.pixels[0] - 127.5) / 127.5));
  EXPECT_FLOAT_EQ(patches.values[15], static_cast<float>((image.pixels[45] - 127.5) / 127.5));
}

TEST(PreprocessTest, ImpossibleImagesAreRefused) {
  const PreprocessorConfig config = real_config();
  EXPECT_THROW((void)preprocess(Image{}, config), Error);
  EXPECT_THROW((void)preprocess(synthetic_image(2, 402), config), Error);
  Image wrong = synthetic_image(10, 10);
  wrong.pixels.pop_back();
  EXPECT_THROW((void)preprocess(wrong, config), Error);
}

}  // namespace
}  // namespace pascaline
