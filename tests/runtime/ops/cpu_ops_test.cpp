#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/rope.hpp"

namespace pascaline::testing {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

/// A dense float32 tensor of its own.
struct Floats {
  Floats(std::initializer_list<std::int64_t> extents, float step) : shape(extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) {
      count *= extent;
    }
    values.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i) * step);
    }
  }
  TensorView view() {
    TensorView tensor(values.data(), ElementType::float32, {});
    tensor.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.shape.begin());
    return tensor;
  }
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

TensorView integers(std::vector<std::int32_t>& values, std::initializer_list<std::int64_t> shape) {
  return {values.data(), ElementType::int32, shape};
}

TEST(CpuOpsTest, TheResidualMayReceiveTheResult) {
  for (const std::int64_t m : {4, 20}) {
    Floats a({m, 24}, 0.3F);
    Floats b({36, 24}, 0.7F);
    Floats residual({m, 36}, 0.1F);
    Floats apart({m, 36}, 0);
    Floats in_place({m, 36}, 0.1F);
    ops::compute(ops::Matmul{a.view(), b.view(), apart.view(), {}, residual.view(), ops::Epilogue::residual});
    ops::compute(ops::Matmul{a.view(), b.view(), in_place.view(), {}, in_place.view(), ops::Epilogue::residual});
    EXPECT_EQ(in_place.values, apart.values);
    EXPECT_NE(in_place.values, residual.values);
  }
}

TEST(CpuOpsTest, ElementwiseInPlace) {
  Floats x({3, 1001}, 0.01F);
  Floats y({3, 1001}, 0.02F);
  Floats apart({3, 1001}, 0);
  ops::compute(ops::GeluErf{x.view(), apart.view()});
  Floats in_place = x;
  ops::compute(ops::GeluErf{in_place.view(), in_place.view()});
  EXPECT_EQ(in_place.values, apart.values);
  ops::compute(ops::SiluMultiply{x.view(), y.view(), apart.view()});
  in_place = y;
  ops::compute(ops::SiluMultiply{x.view(), in_place.view(), in_place.view()});
  EXPECT_EQ(in_place.values, apart.values);
  in_place = x;
  ops::compute(ops::Add{in_place.view(), in_place.view(), in_place.view()});
  EXPECT_EQ(in_place.values[17], 2 * x.values[17]);
}

TEST(CpuOpsTest, PatchEmbedIsAProductWithABias) {
  Floats patches({10, 24}, 0.3F);
  Floats weight({36, 24}, 0.7F);
  Floats bias({36}, 0.9F);
  Floats y({10, 36}, 0);
  Floats expected({10, 36}, 0);
  ops::compute(ops::PatchEmbed{patches.view(), weight.view(), bias.view(), y.view()});
  ops::compute(ops::Matmul{patches.view(), weight.view(), expected.view(), bias.view(), {}, ops::Epilogue::bias});
  EXPECT_EQ(y.values, expected.values);
  Floats plain({10, 36}, 0);
  ops::compute(ops::Matmul{patches.view(), weight.view(), plain.view()});
  EXPECT_NEAR(y.values[40], plain.values[40] + bias.values[4], 1e-6);
}

TEST(CpuOpsTest, PartsOfAProjectionNeedNoCopy) {
  Floats qkv({6, 64}, 0.37F);
  const auto part = [&](std::int64_t heads, std::int64_t column) {
    return TensorView(qkv.values.data() + column, ElementType::float32, {6, heads, 16}).with_row_stride(64);
  };
  const auto copied = [&](std::int64_t heads, std::int64_t column) {
    Floats dense({6, heads, 16}, 0);
    for (std::int64_t i = 0; i < 6; ++i) {
      std::copy_n(qkv.values.begin() + i * 64 + column, heads * 16, dense.values.begin() + i * heads * 16);
    }
    return dense;
  };
  Floats out({6, 2, 16}, 0);
  Floats expected({6, 2, 16}, 0);
  ops::compute(ops::AttentionPrefill{part(2, 0), part(1, 32), part(1, 48), out.view(), {}, true});
  Floats q = copied(2, 0);
  Floats k = copied(1, 32);
  Floats v = copied(1, 48);
  ops::compute(ops::AttentionPrefill{q.view(), k.view(), v.view(), expected.view(), {}, true});
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    EXPECT_NEAR(out.values[i], expected.values[i], 1e-6);
  }
  EXPECT_EQ(out.values[3], v.values[3]) << "the first query sees one key";
}

// The newest query of a prefill, and a decode step, are the same thing.
TEST(CpuOpsTest, DecodeReadsTheLengthAndAgreesWithPrefill) {
  Floats q({1, 4, 32}, 0.3F);
  Floats k({300, 2, 32}, 0.7F);
  Floats v({300, 2, 32}, 1.1F);
  for (const std::int32_t length : {-5, 0, 1, 77, 256, 257, 300, 100'000}) {
    const std::int64_t keys = std::clamp(length, 0, 300);
    Floats out({4, 32}, 1);
    Floats expected({1, 4, 32}, 0);
    std::vector<std::int32_t> given{length};
    ops::compute(ops::AttentionDecode{
        {q.values.data(), ElementType::float32, {4, 32}}, k.view(), v.view(), integers(given, {1}), out.view()});
    if (keys > 0) {
      const TensorView k_part(k.values.data(), ElementType::float32, {keys, 2, 32});
      const TensorView v_part(v.values.data(), ElementType::float32, {keys, 2, 32});
      ops::compute(ops::AttentionPrefill{q.view(), k_part, v_part, expected.view(), {}, true});
    }
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      ASSERT_NEAR(out.values[i], expected.values[i], 2e-6) << length << ", element " << i;
    }
  }
}

TEST(CpuOpsTest, SegmentsMayBeEmptyAndSeeThemselvesOnly) {
  Floats x({6, 1, 16}, 0.3F);
  Floats out({6, 1, 16}, 1);
  std::vector<std::int32_t> starts{0, 1, 1, 6};
  ops::compute(ops::AttentionPrefill{x.view(), x.view(), x.view(), out.view(), integers(starts, {4}), false});
  EXPECT_TRUE(std::equal(x.values.begin(), x.values.begin() + 16, out.values.begin())) << "alone in its segment";
  Floats rest({5, 1, 16}, 0);
  const TensorView last(x.values.data() + 16, ElementType::float32, {5, 1, 16});
  ops::compute(ops::AttentionPrefill{last, last, last, rest.view(), {}, false});
  for (std::size_t i = 0; i < rest.values.size(); ++i) {
    EXPECT_NEAR(out.values[16 + i], rest.values[i], 1e-6);
  }
}

// What stands there is not checked, but never leads out of a tensor.
TEST(CpuOpsTest, SegmentsOfNonsenseStayWithinTheTensors) {
  Floats x({6, 1, 16}, 0.3F);
  for (std::vector<std::int32_t> starts :
       {std::vector<std::int32_t>{5, -3, 1'000'000}, {0, 2, 3}, {1'000'000, 1'000'000, 1'000'000}, {-9, -9, -9}}) {
    Floats out({6, 1, 16}, 1);
    ops::compute(ops::AttentionPrefill{x.view(), x.view(), x.view(), out.view(), integers(starts, {3}), false});
    for (const float value : out.values) {
      EXPECT_LE(std::abs(value), 1.0F) << "an average of values, or zero";
    }
  }
}

TEST(CpuOpsTest, NanStaysInItsRow) {
  Floats q({3, 1, 16}, 0.3F);
  Floats k({3, 1, 16}, 0.7F);
  Floats out({3, 1, 16}, 1);
  q.values[16 + 5] = kNotANumber;
  ops::compute(ops::AttentionPrefill{q.view(), k.view(), k.view(), out.view(), {}, false});
  Floats x({3, 9}, 0.3F);
  Floats y({3, 9}, 0);
  x.values[9] = kNotANumber;
  ops::compute(ops::Softmax{x.view(), y.view()});
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_EQ(std::isnan(out.values[row * 16 + i]), row == 1) << row;
      EXPECT_EQ(std::isnan(y.values[row * 9 + i]), row == 1) << row;
    }
  }
}

TEST(CpuOpsTest, LargeScoresDoNotOverflow) {
  Floats q({2, 1, 16}, 0);
  Floats k({300, 1, 16}, 0);
  Floats v({300, 1, 16}, 0.1F);
  std::fill(q.values.begin(), q.values.end(), 1000.0F);
  std::fill(k.values.begin() + 290 * 16, k.values.begin() + 291 * 16, 1000.0F);  // in the second block of keys
  Floats out({2, 1, 16}, 1);
  ops::compute(ops::AttentionPrefill{q.view(), k.view(), v.view(), out.view(), {}, false});
  std::vector<std::int32_t> length{300};
  Floats decoded({1, 16}, 1);
  ops::compute(ops::AttentionDecode{
      {q.values.data(), ElementType::float32, {1, 16}}, k.view(), v.view(), integers(length, {1}), decoded.view()});
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out.values[i], v.values[290 * 16 + i]);
    EXPECT_EQ(decoded.values[i], v.values[290 * 16 + i]);
  }
}

// Positions beyond the tables take the nearest row; a slot that is none is skipped.
TEST(CpuOpsTest, PositionsAndSlotsOutOfRange) {
  Floats qkv({3, 3, 4}, 0.3F);
  Floats weight({4}, 0);
  std::fill(weight.values.begin(), weight.values.end(), 1.0F);
  Floats cosine({5, 2}, 0.2F);
  Floats sine({5, 2}, 0.9F);
  const auto placed = [&](std::vector<std::int32_t> positions, std::vector<std::int32_t> slots) {
    std::array<Floats, 3> made{Floats({4, 1, 4}, 0), Floats({4, 1, 4}, 0), Floats({3, 1, 4}, 0)};
    ops::compute(ops::QkNormRope{{.q_weight = weight.view(),
                                  .k_weight = weight.view(),
                                  .cosine = cosine.view(),
                                  .sine = sine.view(),
                                  .positions = integers(positions, {3, 3}),
                                  .k_cache = made[0].view(),
                                  .v_cache = made[1].view(),
                                  .section_h = 1,
                                  .section_w = 1},
                                 qkv.view(),
                                 integers(slots, {3}),
                                 made[2].view()});
    return made;
  };
  const auto wild = placed({-7, 9, 2, 100, 0, 1, 3, -1, 4}, {2, -1, 4});
  const auto tame = placed({0, 4, 2, 4, 0, 1, 3, 0, 4}, {2, 0, 3});
  EXPECT_EQ(wild[2].values, tame[2].values) << "queries";
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(wild[0].values[i], i / 4 == 2 ? tame[0].values[i] : 0) << "keys";
    EXPECT_EQ(wild[1].values[i], i / 4 == 2 ? qkv.values[8 + i % 4] : 0) << "values";
  }
  Floats patches({2, 3, 1, 8}, 0.3F);
  Floats others = patches;
  std::vector<std::int32_t> beyond{-1, 2, 99, 4};
  std::vector<std::int32_t> within{0, 2, 4, 4};
  ops::compute(ops::RopeVision{patches.view(), cosine.view(), sine.view(), integers(beyond, {2, 2})});
  ops::compute(ops::RopeVision{others.view(), cosine.view(), sine.view(), integers(within, {2, 2})});
  EXPECT_EQ(patches.values, others.values);
}

TEST(CpuOpsTest, SeveralThreadsMayCallAtOnce) {
  worker_pool().resize(3);
  Floats a({40, 300}, 0.3F);
  Floats b({200, 300}, 0.7F);
  Floats expected({40, 200}, 0);
  ops::compute(ops::Matmul{a.view(), b.view(), expected.view()});
  std::vector<std::thread> callers;
  std::array<int, 4> wrong{};
  for (std::size_t caller = 0; caller < wrong.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 10; ++round) {
        Floats c({40, 200}, 0);
        ops::compute(ops::Matmul{a.view(), b.view(), c.view()});
        wrong[caller] += c.values == expected.values ? 0 : 1;
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
}

}  // namespace
}  // namespace pascaline::testing
