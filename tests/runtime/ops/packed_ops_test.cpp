#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/formats/all_formats.hpp"
#include "tests/runtime/ops/checks_test.hpp"
#include "tests/runtime/ops/host_buffer.hpp"

namespace pascaline::testing {
namespace {

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  std::generate(result.begin(), result.end(), [&] { return values(generator); });
  return result;
}

template <typename T>
HostBuffer host_copy(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return HostBuffer({bytes.begin(), bytes.end()});
}

// The floats as a product with such a weight takes them, by the definition of docs/formats.md.
std::vector<double> rounded_floats(const std::vector<float>& floats, std::int64_t width, ElementType weight) {
  std::vector<double> result;
  const std::int64_t block = weight == ElementType::int8_row ? width : kActivationBlock;
  for (auto row = floats.begin(); row != floats.end(); row += width) {
    for (std::int64_t first = 0; first < width; first += block) {
      const std::span<const float> part(&row[first], static_cast<std::size_t>(std::min(block, width - first)));
      const Int8Scale scale = int8_scale(part);
      std::vector<std::int8_t> integers(part.size());
      round_to_int8(part, scale.inverse, integers.data());
      for (const std::int8_t integer : integers) {
        result.push_back(double{scale.scale} * integer);
      }
    }
  }
  return result;
}

class PackedOpsTest : public ::testing::TestWithParam<ElementType> {
 protected:
  void TearDown() override { worker_pool().resize(2); }

  // c = a · bᵀ + bias of m rows, on the processor.
  [[nodiscard]] std::vector<float> product(const std::vector<float>& a, std::int64_t m) const {
    const std::vector<float> bias = random_floats(n_, 5);
    const HostBuffer a_memory = host_copy(a);
    const HostBuffer b_memory(packed_);
    const HostBuffer bias_memory = host_copy(bias);
    const HostBuffer c_memory = host_copy(std::vector<float>(static_cast<std::size_t>(m * n_), std::nanf("")));
    ops::compute(ops::Matmul{.a = TensorView(a_memory.data(), ElementType::float32, {m, k_}),
                             .b = TensorView(b_memory.data(), format_, {n_, k_}),
                             .c = TensorView(c_memory.data(), ElementType::float32, {m, n_}),
                             .bias = TensorView(bias_memory.data(), ElementType::float32, {n_}),
                             .epilogue = ops::Epilogue::bias});
    EXPECT_TRUE(c_memory.intact() && a_memory.intact() && b_memory.intact());
    const auto* c = static_cast<const float*>(c_memory.data());
    return {c, c + m * n_};
  }

  // The same in two steps, as a device takes more than a few rows.
  [[nodiscard]] std::vector<float> product_in_steps(const std::vector<float>& a, std::int64_t m) const {
    const std::vector<float> bias = random_floats(n_, 5);
    const std::int64_t columns = ops::filled_columns(format_, k_);
    const std::int64_t blocks = ops::scale_rows(format_, k_);
    const HostBuffer a_memory = host_copy(a);
    const HostBuffer b_memory(packed_);
    const HostBuffer bias_memory = host_copy(bias);
    const HostBuffer values = host_copy(std::vector<std::int8_t>(static_cast<std::size_t>(m * columns), 99));
    const HostBuffer scales = host_copy(std::vector<float>(static_cast<std::size_t>(blocks * m), std::nanf("")));
    const HostBuffer c_memory = host_copy(std::vector<float>(static_cast<std::size_t>(m * n_), std::nanf("")));
    const ops::QuantizedRows rounded{TensorView(values.data(), ElementType::int8, {m, columns}),
                                     TensorView(scales.data(), ElementType::float32, {blocks, m})};
    ops::compute(ops::Quantize{
        .x = TensorView(a_memory.data(), ElementType::float32, {m, k_}), .y = rounded, .for_weight = format_});
    ops::compute(ops::QuantizedMatmul{.a = rounded,
                                      .b = TensorView(b_memory.data(), format_, {n_, k_}),
                                      .c = TensorView(c_memory.data(), ElementType::float32, {m, n_}),
                                      .bias = TensorView(bias_memory.data(), ElementType::float32, {n_}),
                                      .epilogue = ops::Epilogue::bias});
    EXPECT_TRUE(c_memory.intact() && values.intact() && scales.intact());
    const auto* c = static_cast<const float*>(c_memory.data());
    return {c, c + m * n_};
  }

  void use(std::int64_t n, std::int64_t k) {
    n_ = n;
    k_ = k;
    packed_ = draw_matrix(format_, n, k, Fill::uniform, -1, 1, 3);
  }

  ElementType format_ = GetParam();
  std::int64_t n_ = 0;
  std::int64_t k_ = 0;
  std::vector<std::byte> packed_;
};

// A sum in float32 of k terms, block by block; the formats' largest value is below 3, also before a minimum is taken
// off.
TEST_P(PackedOpsTest, ProductsAreThoseOfTheRoundedOperands) {
  for (const std::int64_t k : {1, 33, 700}) {
    use(90, k);
    const std::vector<double> weight = widen_matrix(format_, packed_, n_, k);
    const std::vector<float> bias = random_floats(n_, 5);
    for (const std::int64_t m : {1, 3, 8, 9, 70}) {
      const std::vector<float> a = random_floats(m * k, 4);
      const std::vector<double> rounded = rounded_floats(a, k, format_);
      const std::vector<float> c = product(a, m);
      for (std::int64_t i = 0; i < m * n_; ++i) {
        double expected = double{bias[static_cast<std::size_t>(i % n_)]};
        double magnitude = std::fabs(expected);
        for (std::int64_t j = 0; j < k; ++j) {
          const double with = rounded[static_cast<std::size_t>(i / n_ * k + j)];
          expected += with * weight[static_cast<std::size_t>(i % n_ * k + j)];
          magnitude += 3 * std::fabs(with);
        }
        ASSERT_NEAR(double{c[static_cast<std::size_t>(i)]}, expected, 1e-6 * magnitude) << m << " rows: " << i;
      }
    }
  }
}

TEST_P(PackedOpsTest, RowsThreadsAndStepsDoNotChangeAResult) {
  use(333, 520);
  constexpr std::int64_t kRows = 41;
  const std::vector<float> a = random_floats(kRows * k_, 8);
  worker_pool().resize(1);
  const std::vector<float> alone = product(a, kRows);
  worker_pool().resize(3);
  EXPECT_EQ(product(a, kRows), alone);
  EXPECT_EQ(product_in_steps(a, kRows), alone);
  for (const std::int64_t row : {0, 17, 40}) {
    const std::vector<float> one(a.begin() + row * k_, a.begin() + (row + 1) * k_);
    EXPECT_EQ(product(one, 1), std::vector<float>(alone.begin() + row * n_, alone.begin() + (row + 1) * n_));
  }
}

// What SwiGLU rounds is what it gives, rounded by the definition of docs/formats.md.
TEST_P(PackedOpsTest, RoundedResultsAreThoseOfTheFloats) {
  use(128, 256);
  for (const std::int64_t m : {1, 8, 11}) {
    const HostBuffer a = host_copy(random_floats(m * k_, 8));
    const std::int64_t blocks = ops::scale_rows(format_, k_);
    const HostBuffer values = host_copy(std::vector<std::int8_t>(static_cast<std::size_t>(m * k_)));
    const HostBuffer scales = host_copy(std::vector<float>(static_cast<std::size_t>(blocks * m)));
    const HostBuffer c = host_copy(std::vector<float>(static_cast<std::size_t>(m * 64), std::nanf("")));
    const HostBuffer q = host_copy(std::vector<std::int8_t>(static_cast<std::size_t>(m * 64), 99));
    const HostBuffer q_scales = host_copy(std::vector<float>(static_cast<std::size_t>(2 * m), std::nanf("")));
    const HostBuffer b(packed_);
    const ops::QuantizedRows rounded{TensorView(values.data(), ElementType::int8, {m, k_}),
                                     TensorView(scales.data(), ElementType::float32, {blocks, m})};
    const TensorView weight(b.data(), format_, {n_, k_});
    ops::compute(
        ops::Quantize{.x = TensorView(a.data(), ElementType::float32, {m, k_}), .y = rounded, .for_weight = format_});
    ops::compute(ops::QuantizedMatmul{.a = rounded,
                                      .b = weight,
                                      .c = TensorView(c.data(), ElementType::float32, {m, 64}),
                                      .epilogue = ops::Epilogue::swiglu});
    ops::compute(ops::QuantizedMatmul{.a = rounded,
                                      .b = weight,
                                      .rounded = {TensorView(q.data(), ElementType::int8, {m, 64}),
                                                  TensorView(q_scales.data(), ElementType::float32, {2, m})},
                                      .epilogue = ops::Epilogue::swiglu_int8});
    EXPECT_TRUE(q.intact() && q_scales.intact());
    const std::span floats(static_cast<const float*>(c.data()), static_cast<std::size_t>(m * 64));
    for (std::int64_t block = 0; block < 2 * m; ++block) {
      const std::span<const float> part = floats.subspan(static_cast<std::size_t>(32 * block), 32);
      const Int8Scale scale = int8_scale(part);
      std::vector<std::int8_t> expected(32);
      round_to_int8(part, scale.inverse, expected.data());
      const auto* const got = static_cast<const std::int8_t*>(q.data()) + 32 * block;
      EXPECT_EQ(std::vector<std::int8_t>(got, got + 32), expected) << block;
      EXPECT_EQ(static_cast<const float*>(q_scales.data())[block % 2 * m + block / 2], scale.scale) << block;
    }
  }
}

TEST_P(PackedOpsTest, RowsOfATableAreGathered) {
  use(50, 300);
  const std::vector<double> table = widen_matrix(format_, packed_, n_, k_);
  const HostBuffer table_memory(packed_);
  const HostBuffer indices = host_copy(std::vector<std::int32_t>{49, 0, -1, 31, 50, 32});
  const HostBuffer y = host_copy(std::vector<float>(static_cast<std::size_t>(6 * k_), std::nanf("")));
  ops::compute(ops::Gather{TensorView(table_memory.data(), format_, {n_, k_}),
                           TensorView(indices.data(), ElementType::int32, {6}),
                           TensorView(y.data(), ElementType::float32, {6, k_})});
  EXPECT_TRUE(y.intact());
  const std::int64_t rows[] = {49, 0, -1, 31, -1, 32};
  for (std::int64_t i = 0; i < 6 * k_; ++i) {
    const std::int64_t row = rows[i / k_];
    EXPECT_EQ(double{static_cast<const float*>(y.data())[i]},
              row < 0 ? 0.0 : table[static_cast<std::size_t>(row * k_ + i % k_)]);
  }
}

TEST_P(PackedOpsTest, NanStaysInItsRow) {
  use(40, 100);
  for (const std::int64_t m : {3, 12}) {
    std::vector<float> a = random_floats(m * k_, 8);
    a[static_cast<std::size_t>(k_ + 70)] = std::nanf("");
    const std::vector<float> c = product(a, m);
    for (std::int64_t i = 0; i < m * n_; ++i) {
      EXPECT_EQ(std::isnan(c[static_cast<std::size_t>(i)]), i / n_ == 1) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedOpsTest, ::testing::ValuesIn(kPackedTypes),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

class PackedChecksTest : public ChecksTest {
 protected:
  [[nodiscard]] ops::QuantizedRows rows(std::int64_t m, std::int64_t columns, std::int64_t blocks) {
    return {tensor(ElementType::int8, {m, columns}), tensor(ElementType::float32, {blocks, m})};
  }
};

TEST_F(PackedChecksTest, Matmul) {
  const auto good = [&] {
    return ops::Matmul{.a = tensor(ElementType::float32, {3, 100}),
                       .b = tensor(ElementType::q4_k, {6, 100}),
                       .c = tensor(ElementType::float32, {3, 6})};
  };
  EXPECT_EQ(refusal(good()), "taken");
  auto op = good();
  op.b.shape[1] = 256;
  expect_refusal(op, "B is [6,256]; it must be [N,K] = [6,100]");
  op = good();
  op.b.type = ElementType::int8;
  expect_refusal(op, "B is int8");
  op = good();
  op.b.row_stride = 256;
  expect_refusal(op, "rows of B are 256 elements apart");
  op = good();
  op.a.type = ElementType::q4_k;
  expect_refusal(op, "A is q4_k");
  op = good();
  op.c.type = ElementType::q8_0;
  expect_refusal(op, "C is q8_0");
  op = good();
  op.a.shape[1] = op.b.shape[1] = 0;
  expect_refusal(op, "K is 0");
  op = good();
  op.a.shape[0] = op.c.shape[0] = 9;
  EXPECT_EQ(refusal(op), "taken");
  EXPECT_THROW(static_cast<void>(op.problem()), Error) << "a device takes 8 rows";
  EXPECT_EQ(op.observed().named().text(), "matmul_q M=9 N=6 K=256 EPILOGUE=0 STORAGE=float32 WEIGHT=q4_k");
}

TEST_F(PackedChecksTest, Quantize) {
  const auto good = [&] {
    return ops::Quantize{
        .x = tensor(ElementType::float32, {3, 100}), .y = rows(3, 128, 4), .for_weight = ElementType::q8_0};
  };
  EXPECT_EQ(refusal(good()), "taken");
  auto op = good();
  op.for_weight = ElementType::q4_k;
  expect_refusal(op, "y is [3,128]; it must be [M,columns] = [3,256]");
  op = good();
  op.for_weight = ElementType::float16;
  expect_refusal(op, "no packed format");
  op = good();
  op.for_weight = ElementType::int8_row;
  expect_refusal(op, "scales is [4,3]; it must be [blocks,M] = [1,3]");
  op = good();
  op.y.values.type = ElementType::uint8;
  expect_refusal(op, "y is uint8");
  op = good();
  op.x.type = ElementType::bfloat16;
  expect_refusal(op, "x is bfloat16");
  op = good();
  op.x.shape[0] = op.y.values.shape[0] = op.y.scales.shape[1] = 0;
  EXPECT_EQ(refusal(op), "nothing to do");
}

TEST_F(PackedChecksTest, QuantizedMatmul) {
  const auto good = [&] {
    return ops::QuantizedMatmul{
        .a = rows(3, 256, 8), .b = tensor(ElementType::q6_k, {6, 100}), .c = tensor(ElementType::float16, {3, 6})};
  };
  EXPECT_EQ(refusal(good()), "taken");
  auto op = good();
  op.b.type = ElementType::float16;
  expect_refusal(op, "B is float16");
  op = good();
  op.b.type = ElementType::q8_0;
  expect_refusal(op, "A is [3,256]; it must be [M,columns] = [3,128]");
  op = good();
  op.a.scales.shape[0] = 4;
  expect_refusal(op, "scales is [4,3]");
  op = good();
  op.a.values.type = ElementType::float16;
  expect_refusal(op, "A is float16");
  op = good();
  op.c.shape[0] = 4;
  expect_refusal(op, "C is [4,6]");
  op = good();
  op.epilogue = ops::Epilogue::bias;
  expect_refusal(op, "bias has 0 dimensions");
  op = good();
  EXPECT_EQ(op.problem().named().text(),
            "matvec_q M=3 N=6 K=256 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float16 INPUT=int8 WEIGHT=q6_k");
  op.a = rows(9, 256, 8);
  EXPECT_EQ(op.problem().named().text(), "matmul_q M=9 N=6 K=256 EPILOGUE=0 STORAGE=float16 WEIGHT=q6_k");
  op = good();
  op.b.shape[0] = op.c.shape[1] = 0;
  EXPECT_EQ(refusal(op), "nothing to do");
}

TEST_F(PackedChecksTest, NormedMatmul) {
  const auto good = [&] {
    return ops::NormedMatmul{.a = tensor(ElementType::float32, {3, 256}),
                             .norm = tensor(ElementType::float32, {256}),
                             .b = tensor(ElementType::q6_k, {6, 256}),
                             .c = tensor(ElementType::float32, {3, 6})};
  };
  EXPECT_EQ(refusal(good()), "taken");
  EXPECT_EQ(good().problem().named().text(),
            "matvec_q M=3 N=6 K=256 EPILOGUE=0 NORM=1 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q6_k");
  auto op = good();
  op.b.type = ElementType::int8_row;
  expect_refusal(op, "B's scales are by row");
  op = good();
  op.norm.shape[0] = 255;
  expect_refusal(op, "norm is [255]; it must be [K] = [256]");
  op = good();
  op.a.shape[0] = op.c.shape[0] = 9;
  expect_refusal(op, "more than 8 rows of A");
  op = good();
  op.a.shape[1] = op.b.shape[1] = op.norm.shape[0] = 128;
  expect_refusal(op, "K is no multiple of the columns");
  op = good();
  op.epilogue = ops::Epilogue::swiglu_int8;
  expect_refusal(op, "N is no multiple of 64");
  op = good();
  op.b.type = ElementType::float16;
  EXPECT_EQ(refusal(op), "taken");
  EXPECT_EQ(op.problem().named().text(),
            "matvec_normed M=3 N=6 K=256 EPILOGUE=0 EPSILON=1000 STORAGE=float32 WEIGHT=float16");
  op.epilogue = ops::Epilogue::swiglu_int8;
  expect_refusal(op, "the epilogue is none of ops::Epilogue");
  op.epilogue = ops::Epilogue::none;
  op.rounded = rows(3, 64, 2);
  expect_refusal(op, "rounded is given, but B is of floats");
  op = good();
  op.a.shape[0] = op.c.shape[0] = 0;
  EXPECT_EQ(refusal(op), "nothing to do");
}

}  // namespace
}  // namespace pascaline::testing
