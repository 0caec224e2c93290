// Float32 sums against the bounds that the search spaces of this tree have for them: what is right must be within, in
// whatever order it was added, and what is wrong beyond, at every length of the sums.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>

#include "core/error_bound.hpp"
#include "core/util/paths.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/runtime/ops/float_sums.hpp"
#include "tests/share.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"
#include "tuner/measure/problem_data.hpp"

namespace pascaline::testing {
namespace {

using Sizes = std::vector<std::pair<std::string, std::string>>;

// Of a kernel that takes plain and packed weights there are two cases, the second with a name of its own.
constexpr std::string_view kWithPacked = "_q";
constexpr std::array<std::string_view, 2> kTakingBoth{"attention_projected", "mlp"};

std::vector<std::string> cases() {
  std::vector<std::string> all = summing_kernels();
  for (const std::string_view kernel : kTakingBoth) {
    all.push_back(std::string(kernel) += kWithPacked);
  }
  return all;
}
bool is_packed_case(const std::string& name) {
  return std::ranges::any_of(kTakingBoth,
                             [&](std::string_view kernel) { return name == std::string(kernel).append(kWithPacked); });
}

// Recognises a token's attention with the projection after it.
bool is_projected_token(const std::string& kernel) {
  return kernel.starts_with("attention_projected") || kernel == "attention_layer_q";
}

// A problem whose sums have that many terms.
Sizes problem_of(const std::string& kernel, std::int64_t terms, std::int64_t epilogue) {
  const std::string length = std::to_string(terms);
  const std::string many = terms <= 1000 ? "16" : "2";
  const std::string width = std::to_string(std::clamp<std::int64_t>(terms, 16, 4096));
  if (kernel.starts_with("mat")) {
    return {{"M", kernel.starts_with("matvec") ? "1" : many},
            {"N", many == "16" ? "64" : "16"},
            {"K", length},
            {"EPILOGUE", std::to_string(epilogue)}};
  }
  if (kernel == "attention_decode") {
    return {{"HEADS", "1"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"KEYS", length}};
  }
  if (kernel == "attention_decode_qkv") {
    return {{"HEADS", "1"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"KEYS", length}, {"POSITIONS", "1"}};
  }
  if (is_projected_token(kernel)) {
    return {{"HEADS", "1"},   {"KV_HEADS", "1"},  {"HEAD_DIM", "16"},
            {"KEYS", length}, {"POSITIONS", "1"}, {"HIDDEN", kernel == "attention_layer_q" ? width : "16"}};
  }
  if (kernel == "attention_prefill") {
    return {{"HEADS", "1"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"QUERIES", "2"}, {"KEYS", length}, {"CAUSAL", "0"}};
  }
  if (kernel.starts_with("attention_sparse")) {  // of all keys
    Sizes sizes{{"HEADS", "2"},   {"KV_HEADS", "1"},  {"HEAD_DIM", "16"},
                {"KEYS", length}, {"WINDOW", length}, {"SINKS", "0"}};
    if (kernel == "attention_sparse_prefill") {
      sizes.emplace_back("QUERIES", "1");
    }
    return sizes;
  }
  if (kernel.starts_with("mlp")) {
    return {{"M", "1"}, {"HIDDEN", "32"}, {"INTERMEDIATE", length}};
  }
  if (kernel == "qk_norm_rope") {
    return {{"TOKENS", "1"}, {"HEADS", "15"}, {"KV_HEADS", "1"}, {"HEAD_DIM", length}, {"POSITIONS", "1"}};
  }
  return {{"ROWS", "16"}, {"WIDTH", length}};
}

std::vector<std::int64_t> lengths_of(const std::string& kernel) {
  if (kernel == "qk_norm_rope") {
    return {2, 4, 18, 64, 128, 256, 512};
  }
  if (kernel == "matmul_q") {  // of whole blocks
    return {64, 256, 1024, 4096, 12'288, 32'768, 65'536};
  }
  if (kernel == "mlp_q") {  // an integer of a few that is rounded the other way is much of a sum
    return {64, 257, 1000, 4096, 12'288, 32'768, 65'536};
  }
  // The score of a single key does not count; the only product of a feed-forward block may be of a closed gate.
  if (kernel == "attention_decode_qkv" || kernel == "mlp" || is_projected_token(kernel)) {
    return {2, 7, 16, 64, 257, 1000, 4096, 12'288, 32'768, 65'536};
  }
  return {1, 2, 7, 16, 64, 257, 1000, 4096, 12'288, 32'768, 65'536};
}

// The fewest terms that a mistake in the loop over a sum leaves out: one of a product or a key, or a vector of a row.
// Of a feed-forward block one may be of a gate that is closed, of a normalised row one that is nearly 0.
std::size_t least_slice(const std::string& kernel) {
  if (kernel.starts_with("mlp") || kernel == "matvec_normed") {
    return 2;
  }
  return kernel == "softmax" || kernel == "rmsnorm" || kernel == "layernorm" ? 4 : 1;
}

// Whether one term with the wrong sign changes the result: those of the others are added as squares or exponentials.
bool has_signs(const std::string& kernel) { return kernel.starts_with("m") || kernel.starts_with("attention"); }

/// The largest ratio of an error to what is allowed, over all outputs.
using Excess = double;

/// A problem with drawn inputs and what it must give.
class DrawnSums {
 public:
  DrawnSums(const BoundSpace& space, std::uint64_t seed) : space_(&space) {
    ProblemData data(shared_emulator(), space, load_reference(shared_emulator(), space));
    data.draw(seed);
    expected_ = data.expected();
    bounds_ = data.bounds();
    const Config config = space.default_config();
    auto buffer = data.buffers().begin();
    for (const Argument& argument : space.space().arguments) {
      if (argument.kind != ArgumentKind::buffer || argument.access == Access::scratch) {
        continue;
      }
      const auto* const memory = static_cast<const std::byte*>((buffer++)->data);  // of the host
      if (is_input(argument)) {
        const std::int64_t columns = space.columns(argument, config);
        inputs_.push_back(widen_matrix(space.type_of(argument), {memory, space.buffer_bytes(argument, config)},
                                       space.value(argument, config) / columns, columns));
      }
    }
  }

  [[nodiscard]] std::vector<Values> compute(FloatAdder adder) const {
    std::vector<Values> outputs;
    for (const Values& expected : expected_) {
      outputs.emplace_back(expected.size(), std::nan(""));
    }
    compute_in_float(*space_, inputs_, adder, outputs);
    return outputs;
  }

  [[nodiscard]] Excess excess(const std::vector<Values>& outputs) const {
    Excess worst = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Excess here = 0;
      for (std::size_t j = 0; j < outputs[i].size(); ++j) {
        const double error = bounds_[i].error(outputs[i][j], expected_[i][j]);
        here = error > 0 ? std::max(here, error / bounds_[i].tolerance(outputs[i][j], expected_[i][j], j)) : here;
      }
      EXPECT_EQ(bounds_[i].compare(outputs[i], expected_[i]).within, here <= 1) << "output " << i;
      worst = std::max(worst, here);
    }
    return worst;
  }

  /// Place of the largest element of an output.
  [[nodiscard]] std::size_t largest(std::size_t output) const {
    const Values& values = expected_[output];
    const auto at =
        std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    return static_cast<std::size_t>(at - values.begin());
  }

 private:
  const BoundSpace* space_;
  std::vector<Values> inputs_;
  std::vector<Values> expected_;
  std::vector<ErrorBound> bounds_;
};

// Place of the kernel's main output among the outputs.
std::size_t main_output(const std::string& kernel) {
  return kernel == "qk_norm_rope" || kernel == "attention_decode_qkv" || is_projected_token(kernel) ? 4 : 0;
}

/// A kernel and the type its first type variable stands for.
class SumBoundsTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void check(std::int64_t terms, std::int64_t epilogue) {
    const auto& [kernel, storage] = GetParam();
    const bool packed = is_packed_case(kernel);
    const std::string stem = kernel.substr(0, kernel.size() - (packed ? kWithPacked.size() : 0));
    const Space space = Space::load(data_folder("search_spaces") / (stem + ".json"));
    Sizes sizes = problem_of(kernel, terms, epilogue);
    if (packed) {
      sizes.emplace_back("WEIGHT", "q8_0");
    }
    sizes.emplace_back(space.types[0].name, storage);
    const BoundSpace bound(space, space.problem(sizes), DeviceLimits{});
    SCOPED_TRACE(bound.problem().text());
    const DrawnSums sums(bound, static_cast<std::uint64_t>(100 * terms + epilogue));

    Excess right = 0;
    for (const Order order : kOrders) {
      right = std::max(right, sums.excess(sums.compute(FloatAdder(order))));
    }
    EXPECT_LE(right, 1) << "refuses what is right";

    FloatAdder forgetful(Order::lanes);
    forgetful.leave_out(least_slice(kernel));
    const Excess sliced = sums.excess(sums.compute(forgetful));
    EXPECT_GT(sliced, 1) << "does not see that a slice is missing";
    Excess negated = std::numeric_limits<double>::infinity();
    if (has_signs(kernel)) {
      FloatAdder wrong(Order::lanes);
      // Of SwiGLU's two sums, the factor of a gate that is open: nothing shows behind one that is not. Nor do sums that
      // GELU makes zero.
      const bool is_gelu = epilogue == 2 || epilogue == 3;
      wrong.negate_one(epilogue == 5 ? 2 * sums.largest(0) + 1 : is_gelu ? sums.largest(0) : 0);
      negated = sums.excess(sums.compute(wrong));
      EXPECT_GT(negated, 1) << "does not see a single wrong term";
    }
    const Excess swapped = check_places(sums, main_output(kernel));
    std::printf("| %s %s | %lld | %lld | %.2f | %.3g | %.3g | %.3g |\n", kernel.c_str(), storage.c_str(),
                static_cast<long long>(epilogue), static_cast<long long>(terms), right, sliced, negated, swapped);
  }

 private:
  // The excess where two elements are swapped; the last left out must be seen too.
  static Excess check_places(const DrawnSums& sums, std::size_t output) {
    const std::vector<Values> right = sums.compute(FloatAdder(Order::lanes));
    std::vector<Values> damaged = right;
    Values& elements = damaged[output];
    elements.back() = std::nan("");
    EXPECT_EQ(sums.excess(damaged), std::numeric_limits<double>::infinity());
    elements = right[output];
    // With SwiGLU many are zero but for rounding.
    const double apart = std::abs(elements[sums.largest(output)]) / 100;
    const auto other = std::find_if(elements.begin(), elements.end(),
                                    [&](double value) { return std::abs(value - elements.front()) > apart; });
    if (other == elements.end()) {
      return std::numeric_limits<double>::infinity();  // all are equal
    }
    std::iter_swap(elements.begin(), other);
    const Excess swapped = sums.excess(damaged);
    EXPECT_GT(swapped, 1) << "does not see two elements swapped";
    return swapped;
  }
};

TEST_P(SumBoundsTest, RightResultsAreWithinAndWrongOnesBeyond) {
  const std::string& kernel = std::get<0>(GetParam());
  std::printf("| kernel | epilogue | terms | right | slice missing | wrong term | swapped |\n");
  for (const std::int64_t terms : lengths_of(kernel)) {
    check(terms, 0);
    for (const std::int64_t epilogue : share_of<std::int64_t>({5, 2, 3, 6}, "epilogues")) {
      if (kernel.starts_with("mat") && (terms <= 64 || epilogue >= 5)) {
        check(terms, epilogue);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SumBoundsTest,
                         ::testing::Combine(::testing::ValuesIn(cases()), ::testing::Values("float32", "float16")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                         });

// One term after the other: a bound of 1e-5 for sums of any length would refuse some of these.
TEST(SumBounds, TheLargestOfManyRoundingErrorsIsWithin) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const BoundSpace bound(space, space.problem({{"M", "32"}, {"N", "64"}, {"K", "65536"}}), DeviceLimits{});
  const DrawnSums sums(bound, 1);
  const Excess right = sums.excess(sums.compute(FloatAdder(Order::sequential)));
  EXPECT_LE(right, 1);
  EXPECT_GT(right * bound.tolerance(ElementType::float32), 1e-5);
}

TEST(SumBounds, EveryShippedSpaceThatTellsOfSumsIsLookedAt) {
  std::vector<std::string> summing;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("search_spaces"))) {
    // Statistics are looked at with the norms that consist of them.
    if (entry.path().extension() == ".json" && entry.path().stem() != "row_statistics" &&
        Space::load(entry.path()).summation) {
      summing.push_back(entry.path().stem().string());
    }
  }
  std::sort(summing.begin(), summing.end());
  EXPECT_EQ(summing_kernels(), summing);
}

}  // namespace
}  // namespace pascaline::testing
