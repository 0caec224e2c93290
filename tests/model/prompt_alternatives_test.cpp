// What prompts and images may be computed by, against the single operations, on the emulated device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model/fusion/fusion.hpp"
#include "model/fusion/site_list.hpp"
#include "model/model.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/model/golden_run.hpp"
#include "tests/runtime/ops/op_bench.hpp"

namespace pascaline::testing {
namespace {

class PromptAlternativesTest : public ::testing::Test {
 protected:
  PromptAlternativesTest() : executor_(bench_.dispatcher()), linear_(executor_) {}

  LinearWeights layer(std::int64_t rows, std::int64_t columns) {
    return {bench_.input(kFloat, {rows, columns}, -0.2, 0.2), bench_.input(kFloat, {rows})};
  }
  NormWeights norm(std::int64_t width) {
    return {bench_.input(kFloat, {width}, 0.5, 1.5), bench_.input(kFloat, {width})};
  }
  TensorView scratch(std::initializer_list<std::int64_t> shape) { return bench_.output(kFloat, shape); }

  // Runs every alternative of a site that is drawn again with the same numbers for each; `result` must be the same.
  // Returns the names of those that fit.
  template <typename Site>
  std::vector<std::string> expect_alike(const Site& site, const TensorView& result, double tolerance) {
    const std::size_t count = span_of(result).bytes / sizeof(float);
    std::vector<float> before(count);
    std::vector<float> expected(count);
    std::vector<float> values(count);
    download(before, result);
    std::vector<std::string> names;
    const SiteKey key = site.key();
    for (const auto& alternative : site.list().alternatives) {
      if (!alternative.fits(key)) {
        continue;
      }
      names.emplace_back(alternative.name);
      SCOPED_TRACE(key.named().text() + " by " + alternative.name);
      executor_.memory().upload({}, span_of(result), std::as_bytes(std::span(before)));
      executor_.memory().synchronize(StreamId{});
      alternative.run(linear_, site);
      download(names.size() == 1 ? expected : values, result);
      for (std::size_t i = 0; i < count && names.size() > 1; ++i) {
        EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
      }
    }
    EXPECT_FALSE(executor_.fell_back());
    return names;
  }

  void download(std::vector<float>& to, const TensorView& from) {
    executor_.device().synchronize();
    executor_.memory().download({}, std::as_writable_bytes(std::span(to)), span_of(from));
    executor_.memory().synchronize(StreamId{});
  }

  OpBench bench_;
  Executor executor_;
  LinearLayers linear_;
};

using Names = std::vector<std::string>;

TEST_F(PromptAlternativesTest, MlpOfAPrompt) {
  for (const std::int64_t rows : {2, 8, 21}) {
    const MlpSite site{.hidden = bench_.input(kFloat, {rows, 48}),
                       .post_norm = bench_.input(kFloat, {48}, 0.5, 1.5),
                       .gate_up = bench_.input(kFloat, {144, 48}, -0.2, 0.2),
                       .down = bench_.input(kFloat, {48, 72}, -0.2, 0.2),
                       .input = scratch({rows, 48}),
                       .gated = scratch({rows, 72})};
    EXPECT_EQ(expect_alike(site, site.hidden, 1e-5),
              rows <= 8 ? Names({"single", "normed", "whole"}) : Names({"single", "normed"}));
  }
}

TEST_F(PromptAlternativesTest, AttentionOfAnImage) {
  const std::int64_t rows = 30;
  const VisionAttentionSite site{.hidden = bench_.input(kFloat, {rows, 40}),
                                 .norm = norm(40),
                                 .qkv_weight = layer(3 * 2 * 16, 40),
                                 .projection = layer(40, 2 * 16),
                                 .cosine = bench_.input(kFloat, {6, 4}),
                                 .sine = bench_.input(kFloat, {6, 4}),
                                 .positions = bench_.input(kInt, {2, rows}, 0, 6),
                                 .segment_starts = bench_.given(kInt, {3}, {0, 13, 30}),
                                 .normed = scratch({rows, 40}),
                                 .qkv = scratch({rows, 3, 2, 16}),
                                 .attended = scratch({rows, 2, 16})};
  EXPECT_EQ(expect_alike(site, site.hidden, 2e-5), Names({"single", "turned", "normed", "normed_turned"}));
}

TEST_F(PromptAlternativesTest, MlpOfAnImage) {
  const VisionMlpSite site{.hidden = bench_.input(kFloat, {30, 40}),
                           .norm = norm(40),
                           .fc1 = layer(56, 40),
                           .fc2 = layer(40, 56),
                           .input = scratch({30, 40}),
                           .wide = scratch({30, 56})};
  EXPECT_EQ(expect_alike(site, site.hidden, 1e-5), Names({"single", "normed"}));
}

TEST_F(PromptAlternativesTest, MergerOfPatches) {
  for (const std::int64_t width : {20, 64}) {
    for (const bool merged_first : {false, true}) {
      const std::int64_t merged = 4 * width;
      const MergerSite site{.hidden = bench_.input(kFloat, {4 * 11, width}),
                            .norm = norm(merged_first ? merged : width),
                            .fc1 = layer(merged, merged),
                            .fc2 = layer(36, merged),
                            .out = bench_.output(kFloat, {11, 36}),
                            .merged_first = merged_first,
                            .input = scratch({4 * 11, width}),
                            .wide = scratch({11, merged})};
      // A slice of the product's lies in one patch.
      EXPECT_EQ(expect_alike(site, site.out, 1e-5),
                merged_first || width == 64 ? Names({"single", "normed"}) : Names({"single"}));
    }
  }
}

// A site of a model, by what it may be computed, and by what it is.
struct Decided {
  Problem site;
  std::vector<std::string> alternatives;
  std::string chosen;
};

// Of a prompt with an image, with a plan if one is given.
std::vector<Decided> decide(Executor& executor, const GoldenModel& golden, const FusionFile& plan) {
  ModelOptions options;
  options.weights = ElementType::float32;
  options.cache = ElementType::float32;
  options.context = 64;
  options.fusion_file = plan;
  WeightSource weights = hash_weights(golden.config);
  Model model(executor, golden.config, weights, options);
  const auto values = static_cast<std::size_t>(4 * 6 * golden.config.vision.value().patch_values());
  const std::vector<float> pixels(values, 0.5F);
  const std::vector<PatchView> images{{4, 6, pixels}};
  model.append({golden.image.tokens, images});
  std::vector<Decided> all;
  for (const FusionDecisions::Decision* decision : model.fusion().decisions()) {
    Decided& one = all.emplace_back();
    one.site = decision->key.named();
    for (const SiteCandidate& candidate : decision->candidates) {
      one.alternatives.emplace_back(candidate.name);
    }
    one.chosen = one.alternatives.at(decision->choice.candidate);
  }
  return all;
}

// Logits are those of float64 where the alternative of that name computes these sites, and others that have it.
void check_golden_by(const std::string& name, std::initializer_list<std::string> sites) {
  const GoldenModel golden = golden_model_a();
  OpBench bench;
  Executor executor(bench.dispatcher());
  FusionFile plan;
  plan.name = "a plan of this test";
  plan.device = device_row(executor.device().info());
  for (const Decided& decided : decide(executor, golden, {})) {
    if (std::ranges::find(decided.alternatives, name) != decided.alternatives.end()) {
      plan.sites.push_back({decided.site, name});
    }
  }
  std::vector<std::string> computed;
  for (const Decided& decided : decide(executor, golden, plan)) {
    if (decided.chosen == name) {
      computed.push_back(decided.site.kernel);
    }
  }
  for (const std::string& site : sites) {
    EXPECT_NE(std::ranges::find(computed, site), computed.end()) << site;
  }
  GoldenTolerance tolerance;
  tolerance.fusion_file = plan;
  check_golden(executor, golden, tolerance);
  EXPECT_FALSE(executor.fell_back());
}

TEST(GoldenAlternativesTest, NormsByTheProductsAfterThem) {
  check_golden_by("normed", {"site_prompt_attention", "site_prompt_mlp", "site_vision_attention", "site_vision_mlp"});
}

TEST(GoldenAlternativesTest, HeadsTurnedByTheirProjection) { check_golden_by("turned", {"site_vision_attention"}); }

TEST(GoldenAlternativesTest, HeadsNormalisedAndTurned) { check_golden_by("normed_turned", {"site_vision_attention"}); }

}  // namespace
}  // namespace pascaline::testing
