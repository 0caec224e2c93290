// Checks the workloads of Qwen3-VL-2B against the sums that follow from the model's sizes.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "core/workload.hpp"

namespace pascaline {
namespace {

// Two operations per weight of the decoder's layers for each token, and the head for the last one.
constexpr double kLayerFlops = 2818572288.0;
constexpr double kHeadFlops = 622329856.0;
constexpr double kPatches = 4096;      // of 1024 x 1024 pixels
constexpr double kImageTokens = 1025;  // the image's, with the one that ends it
constexpr double kChunk = 1024;        // tokens read at once: the last one is a decoding step
const std::vector<double> kPrompts{128, 512, 1024};

double product_flops(double tokens) { return kLayerFlops * tokens + kHeadFlops; }
double attention_flops(double tokens) { return 114688.0 * tokens * (tokens + 1); }  // causal: half of all pairs

/// A workload, by the type of its weights.
class WorkloadTotals : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] double flops(const std::vector<std::string>& kernels, const std::string& phase) const {
    double total = 0;
    for (const std::string& kernel : kernels) {
      const Space space = Space::load(data_folder("search_spaces") / (kernel + ".json"));
      for (const WorkloadProblem& problem : expand(workload_, space, {{phase}, false})) {
        total += problem.count * BoundSpace(space, problem.problem, *limits_of_architecture("sm_61")).flops();
      }
    }
    return total;
  }
  [[nodiscard]] double products(const std::string& phase) const {
    return flops({"matmul", "matvec", "matvec_normed", "mlp"}, phase);
  }

  Workload workload_ =
      Workload::load(data_folder("search_spaces") / "workloads" / ("qwen3-vl-2b-" + GetParam() + ".json"));
};

TEST_P(WorkloadTotals, PromptsAreThoseOfTheDecoder) {
  double wanted_products = 0;
  double wanted_attention = 0;
  for (const double tokens : kPrompts) {
    wanted_products += product_flops(tokens);
    wanted_attention += attention_flops(tokens);
  }
  EXPECT_DOUBLE_EQ(products("prompt"), wanted_products);
  EXPECT_DOUBLE_EQ(flops({"attention_prefill"}, "prompt"), wanted_attention);
}

TEST_P(WorkloadTotals, TokensAreThoseOfTheDecoder) {
  EXPECT_DOUBLE_EQ(products("token"), static_cast<double>(kPrompts.size()) * product_flops(1));
}

TEST_P(WorkloadTotals, ImagesAreThoseOfTheVisionTowerAndOfThePromptAroundThem) {
  constexpr double kPerPatch = 3145728.0 + 603979776.0 + 50331648.0;  // patches, blocks, mergers
  EXPECT_DOUBLE_EQ(products("image"), kPerPatch * kPatches + product_flops(kImageTokens));
  EXPECT_DOUBLE_EQ(flops({"attention_prefill"}, "image"), 98304.0 * kPatches * kPatches + attention_flops(kChunk));
}

INSTANTIATE_TEST_SUITE_P(Weights, WorkloadTotals, ::testing::Values("float32", "float16"));

}  // namespace
}  // namespace pascaline
