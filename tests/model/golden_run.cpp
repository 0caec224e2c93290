#include "tests/model/golden_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/model.hpp"

namespace pascaline::testing {
namespace {

constexpr std::int64_t kGridRows = 4;
constexpr std::int64_t kGridColumns = 6;

std::vector<float> hashed_pixels(const ModelConfig& config) {
  std::vector<float> pixels(static_cast<std::size_t>(kGridRows * kGridColumns * config.vision.value().patch_values()));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = hash_pixel(i);
  }
  return pixels;
}

void expect_begins(std::span<const float> logits, const std::vector<float>& expected, float tolerance,
                   const std::string& what) {
  ASSERT_GE(logits.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits[i], expected[i], tolerance) << what << ", logit " << i;
  }
}

void check_run(Model& model, const GoldenRun& run, const GoldenTolerance& tolerance, const std::string& what) {
  const std::vector<float> pixels = hashed_pixels(model.config());
  const std::vector<PatchView> images{{kGridRows, kGridColumns, pixels}};
  model.clear();
  std::vector<float> first;
  model.append({run.tokens, run.with_image ? images : std::span<const PatchView>{}},
               [&](std::int64_t row, std::span<const float> logits) {
                 if (row == 0) {
                   first.assign(logits.begin(), logits.begin() + 8);
                 }
               });
  expect_begins(first, run.first, tolerance.logits, what + ", first token");
  const std::vector<float> last = model.logits();
  expect_begins(last, run.last, tolerance.logits, what + ", last token");
  EXPECT_EQ(std::max_element(last.begin(), last.end()) - last.begin(), run.best) << what;
  double squares = 0;
  for (const float logit : last) {
    squares += static_cast<double>(logit) * logit;
  }
  EXPECT_NEAR(std::sqrt(squares), run.norm, 20 * tolerance.logits) << what;
  EXPECT_EQ(model.position_delta(), run.with_image ? -3 : 0) << what;
  for (std::size_t i = 0; i < run.decoded.size(); ++i) {
    const std::int32_t token = 100 * (static_cast<std::int32_t>(i) + 1);
    model.append({std::span(&token, 1), {}});
    expect_begins(model.logits(), run.decoded[i], tolerance.logits, what + ", after " + std::to_string(token));
  }
  // As an answer is made.
  model.clear();
  model.append({run.tokens, run.with_image ? images : std::span<const PatchView>{}});
  for (std::size_t i = 0; i < run.decoded.size(); ++i) {
    model.choose(100 * (static_cast<std::int32_t>(i) + 1));
    (void)model.step();
    expect_begins(model.logits(), run.decoded[i], tolerance.logits, what + ", step " + std::to_string(i + 1));
  }
}

}  // namespace

void check_golden(Executor& executor, const GoldenModel& golden, const GoldenTolerance& tolerance) {
  check_golden(executor, golden, tolerance, [&] { return hash_weights(golden.config); });
}

void check_golden(Executor& executor, const GoldenModel& golden, const GoldenTolerance& tolerance,
                  const std::function<WeightSource()>& open) {
  for (const std::int64_t chunk : {64, 4, 1}) {
    WeightSource source = open();
    ModelOptions options;
    options.weights = tolerance.weights;
    options.cache = tolerance.cache;
    options.residency = tolerance.residency;
    options.fusion_file = tolerance.fusion_file;
    options.context = 64;
    options.chunk = chunk;
    Model model(executor, golden.config, source, options);
    const std::string what = std::string(golden.name) + " in passes of " + std::to_string(chunk);
    check_run(model, golden.text, tolerance, what + ", text");
    check_run(model, golden.image, tolerance, what + ", image");
  }
}

}  // namespace pascaline::testing
