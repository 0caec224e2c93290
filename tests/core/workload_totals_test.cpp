// Holds the workloads of Qwen3-VL-2B against the sums that the model's sizes give (docs/workloads.md).

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "core/workload.hpp"

namespace pascaline {
namespace {

// The kernels whose work counts: products of matrices and attention.
const std::vector<std::string> kProductKernels{"matmul", "matvec"};
const std::vector<std::string> kAttentionKernels{"attention_prefill", "attention_decode"};

std::int64_t dimension_of(const Problem& problem, std::string_view name) {
  for (const auto& [known, value] : problem.dimensions) {
    if (known == name) {
      return value;
    }
  }
  ADD_FAILURE() << problem.text() << " has no " << name;
  return 0;
}

class WorkloadTotals : public ::testing::Test {
 protected:
  using Part = std::function<double(const WorkloadProblem& problem, const BoundSpace& bound)>;

  // Sums a quantity over the problems of these kernels in a phase, at one value of its symbol if it has one, with
  // float16 wherever the workload leaves the type open.
  [[nodiscard]] double sum(const std::vector<std::string>& kernels, const std::string& phase,
                           std::optional<std::int64_t> symbol, const Part& part) const {
    double total = 0;
    for (const std::string& kernel : kernels) {
      const Space space = Space::load(data_folder("search_spaces") / (kernel + ".json"));
      for (const WorkloadProblem& problem : expand(workload_, space, {{phase}, false})) {
        if (symbol && problem.symbols.front().second != *symbol) {
          continue;
        }
        if (!workload_.types.empty() && problem.problem.types.front().second != ElementType::float16) {
          continue;
        }
        const BoundSpace bound(space, problem.problem, *limits_of_architecture("sm_61"));
        total += problem.count * part(problem, bound);
      }
    }
    return total;
  }
  [[nodiscard]] double flops(const std::vector<std::string>& kernels, const std::string& phase,
                             std::optional<std::int64_t> symbol) const {
    return sum(kernels, phase, symbol, [](const auto&, const BoundSpace& bound) { return bound.flops(); });
  }
  // One that the program comes with.
  void load(const std::string& name) {
    workload_ = Workload::load(data_folder("search_spaces") / "workloads" / (name + ".json"));
  }
  // The model's operations one by one, for every size: what the sums are about.
  void load_operations() {
    workload_ = Workload::load(data_folder("search_spaces").parent_path() / "tests/report/qwen3-vl-2b.json");
  }
  [[nodiscard]] std::vector<std::int64_t> values(const std::string& phase) const {
    for (const WorkloadPhase& known : workload_.phases) {
      if (known.name == phase) {
        return known.symbols.front().second;
      }
    }
    ADD_FAILURE() << "no phase " << phase;
    return {};
  }
  Workload workload_;
};

double matrix_elements(const WorkloadProblem& problem, const BoundSpace& /*bound*/) {
  return static_cast<double>(dimension_of(problem.problem, "N") * dimension_of(problem.problem, "K"));
}

TEST_F(WorkloadTotals, PromptsAreThoseOfTheDecoder) {
  load_operations();
  for (const std::int64_t tokens : values("prefill")) {
    const auto s = static_cast<double>(tokens);
    EXPECT_DOUBLE_EQ(flops(kProductKernels, "prefill", tokens), 2818572288.0 * s + 622329856.0);
    EXPECT_DOUBLE_EQ(flops(kAttentionKernels, "prefill", tokens), 114688.0 * s * (s + 1))
        << "half of all pairs: it is causal";
    EXPECT_DOUBLE_EQ(2 * sum(kProductKernels, "prefill", tokens, matrix_elements), 3440902144.0)
        << "bytes of the matrices";
  }
}

TEST_F(WorkloadTotals, TokensAreThoseOfTheDecoder) {
  load_operations();
  for (const std::int64_t length : values("decode")) {
    const auto l = static_cast<double>(length);
    EXPECT_DOUBLE_EQ(flops(kProductKernels, "decode", length) + flops(kAttentionKernels, "decode", length),
                     3440902144.0 + 229376.0 * l);
    EXPECT_DOUBLE_EQ(2 * sum(kProductKernels, "decode", length, matrix_elements), 3440902144.0)
        << "bytes of the matrices";
    const double cache = sum({"attention_decode"}, "decode", length, [](const auto& problem, const BoundSpace&) {
      const Problem& shape = problem.problem;
      return static_cast<double>(4 * dimension_of(shape, "KV_HEADS") * dimension_of(shape, "HEAD_DIM") *
                                 dimension_of(shape, "KEYS"));
    });
    EXPECT_DOUBLE_EQ(cache, 114688.0 * l) << "bytes read of the cache";
    const double norms = sum({"rmsnorm"}, "decode", length,
                             [](const auto& problem, const BoundSpace&) {
                               return static_cast<double>(dimension_of(problem.problem, "WIDTH"));
                             }) +
                         sum({"qk_norm_rope"}, "decode", length, [](const auto& problem, const BoundSpace&) {
                           return static_cast<double>(2 * dimension_of(problem.problem, "HEAD_DIM"));
                         });
    EXPECT_DOUBLE_EQ(3440902144.0 + 2 * norms, 3441149952.0) << "bytes of the text model";
  }
}

TEST_F(WorkloadTotals, ImagesAreThoseOfTheVisionTower) {
  load_operations();
  for (const std::int64_t patches : values("image")) {
    const auto n = static_cast<double>(patches);
    EXPECT_DOUBLE_EQ(flops(kProductKernels, "image", patches), (3145728.0 + 603979776.0 + 50331648.0) * n)
        << "patches, blocks, mergers";
    EXPECT_DOUBLE_EQ(flops(kAttentionKernels, "image", patches), 98304.0 * n * n);
    const double weights = sum(kProductKernels, "image", patches, [](const auto& problem, const BoundSpace&) {
      return static_cast<double>(dimension_of(problem.problem, "N") * (dimension_of(problem.problem, "K") + 1));
    });
    const double norms = sum({"layernorm"}, "image", patches, [](const auto& problem, const BoundSpace&) {
      return static_cast<double>(2 * dimension_of(problem.problem, "WIDTH"));
    });
    constexpr double kPositions = 2304.0 * 1024;
    EXPECT_DOUBLE_EQ(2 * (weights + norms + kPositions), 813914112.0) << "bytes of the vision tower";
  }
}

// Prompts of 128, 512 and 1,024 tokens, a token after each, and a prompt of 1,025 tokens that is an image of 4,096
// patches.
TEST_F(WorkloadTotals, WhatTheRuntimeLaunchesIsTheSameWork) {
  const auto products_of = [](double tokens) { return 2818572288.0 * tokens + 622329856.0; };
  for (const char* name : {"qwen3-vl-2b-float16", "qwen3-vl-2b-float32"}) {
    load(name);
    EXPECT_DOUBLE_EQ(flops(kProductKernels, "prompt", {}), products_of(128) + products_of(512) + products_of(1024))
        << name;
    EXPECT_DOUBLE_EQ(flops(kAttentionKernels, "prompt", {}), 114688.0 * (128.0 * 129 + 512.0 * 513 + 1024.0 * 1025))
        << name;
    EXPECT_DOUBLE_EQ(flops(kProductKernels, "token", {}), 3 * 3440902144.0) << name;
    EXPECT_DOUBLE_EQ(flops(kProductKernels, "image", {}),
                     products_of(1025) + (3145728.0 + 603979776.0 + 50331648.0) * 4096)
        << name;
  }
}

}  // namespace
}  // namespace pascaline
