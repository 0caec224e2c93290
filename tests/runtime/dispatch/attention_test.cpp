#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/dispatch/test_cache.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

constexpr ElementType kFloat = ElementType::float32;

std::vector<double> random_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> eighths(-16, 16);
  std::vector<double> values(count);
  for (double& value : values) {
    value = eighths(generator) / 8.0;
  }
  return values;
}

template <typename T>
Buffer upload(Device& device, const std::vector<double>& values) {
  const std::vector<T> elements(values.begin(), values.end());
  Buffer buffer = device.allocate(elements.size() * sizeof(T));
  device.upload(buffer, std::as_bytes(std::span(elements)));
  return buffer;
}

/// Heads of 16 columns, rows of k and v one element apart from packed.
Problem prefill_problem(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t segments) {
  return {"attention_prefill",
          {{"HEADS", 2},
           {"KV_HEADS", 1},
           {"HEAD_DIM", 16},
           {"QUERIES", queries},
           {"KEYS", keys},
           {"CAUSAL", causal ? 1 : 0},
           {"SEGMENTS", segments},
           {"Q_STRIDE", 32},
           {"KV_STRIDE", 17}},
          {{"STORAGE", kFloat}, {"CACHE", kFloat}}};
}

Problem decode_problem(std::int64_t keys) {
  return {"attention_decode",
          {{"HEADS", 2}, {"KV_HEADS", 1}, {"HEAD_DIM", 16}, {"KEYS", keys}, {"KV_STRIDE", 17}},
          {{"STORAGE", kFloat}, {"CACHE", kFloat}, {"OUTPUT", kFloat}}};
}

/// q, k, v of a problem, no scales, and `last`: what its integer buffer holds.
std::vector<std::vector<double>> inputs_of(std::int64_t queries, std::int64_t keys, std::vector<double> last) {
  return {random_values(static_cast<std::size_t>(queries * 32), 1),
          random_values(static_cast<std::size_t>(keys * 17), 2),
          random_values(static_cast<std::size_t>(keys * 17), 3),
          {},
          {},
          std::move(last)};
}

/// Launches the problem's default configuration over a poisoned output and compares with the reference.
void check(Dispatcher& dispatcher, const Problem& problem, const std::vector<std::vector<double>>& inputs) {
  Device& device = dispatcher.device();
  const Buffer q = upload<float>(device, inputs[0]);
  const Buffer k = upload<float>(device, inputs[1]);
  const Buffer v = upload<float>(device, inputs[2]);
  const Buffer integers = upload<int>(device, inputs[5]);
  const Buffer out = device.allocate(inputs[0].size() * sizeof(float));
  device.fill(out, 0xFF);
  std::vector<void*> buffers{q.data(), k.data(), v.data(), nullptr, nullptr, integers.data(), out.data()};
  if (problem.kernel == "attention_decode") {
    buffers.push_back(nullptr);  // scales of a result in int8
  }
  dispatcher.launch(dispatcher.prepare(problem), buffers);
  device.synchronize();
  std::vector<float> result(inputs[0].size());
  device.download(std::as_writable_bytes(std::span(result)), out);
  const std::vector<double> wanted = reference_results(problem, inputs)[0];
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_LE(std::abs(result[i] - wanted[i]), 1e-5) << "element " << i;
  }
}

TEST(AttentionReferenceTest, OneKeyGivesItsValueAndEqualKeysTheirMean) {
  auto inputs = inputs_of(3, 3, {0, 3});
  const std::vector<double>& v = inputs[2];
  std::vector<double> out = reference_results(prefill_problem(3, 3, true, 1), inputs)[0];
  EXPECT_DOUBLE_EQ(out[5], v[5]);       // the first query sees the first key only
  EXPECT_DOUBLE_EQ(out[16 + 5], v[5]);  // and so does its second head
  inputs[1].assign(inputs[1].size(), 0.25);
  out = reference_results(prefill_problem(3, 3, true, 1), inputs)[0];
  EXPECT_NEAR(out[2 * 32 + 5], (v[5] + v[17 + 5] + v[34 + 5]) / 3, 1e-12);
  out = reference_results(decode_problem(3), {inputs[0], inputs[1], inputs[2], {}, {}, {2}})[0];
  EXPECT_NEAR(out[5], (v[5] + v[17 + 5]) / 2, 1e-12);
}

TEST(AttentionReferenceTest, WeightsAreExponentialsOfScaledScores) {
  auto inputs = inputs_of(1, 2, {2});
  inputs[0].assign(32, 0.5);
  inputs[1].assign(34, 0.0);
  std::fill_n(inputs[1].begin(), 16, 1.0);  // score 16 · 0.5 / sqrt(16) = 2 against 0
  const double weight = std::exp(2.0) / (std::exp(2.0) + 1);
  const std::vector<double> out = reference_results(decode_problem(2), inputs)[0];
  EXPECT_NEAR(out[3], weight * inputs[2][3] + (1 - weight) * inputs[2][17 + 3], 1e-12);
}

TEST(AttentionReferenceTest, QueriesThatSeeNothingGiveZeros) {
  const std::vector<double> out = reference_results(prefill_problem(3, 1, true, 1), inputs_of(3, 1, {0, 3}))[0];
  EXPECT_EQ(out[5], 0);
  EXPECT_EQ(out[32 + 5], 0);
  EXPECT_NE(out[64 + 5], 0);
}

TEST(AttentionHostTest, SegmentsMayHaveAnyLengths) {
  const auto device = open_device("emulator");
  Dispatcher dispatcher(*device, with_test_cache());
  check(dispatcher, prefill_problem(150, 150, false, 5), inputs_of(150, 150, {0, 0, 1, 130, 130, 150}));
  check(dispatcher, prefill_problem(150, 150, false, 5), inputs_of(150, 150, {0, 150, 150, 150, 150, 150}));
  // More segments than a warp has lanes, the last of them the longest.
  std::vector<double> starts(41);
  for (std::size_t i = 0; i < 40; ++i) {
    starts[i] = static_cast<double>(i / 2);
  }
  starts[40] = 150;
  check(dispatcher, prefill_problem(150, 150, false, 40), inputs_of(150, 150, starts));
}

TEST(AttentionHostTest, AChunkOfAPromptSeesWhatIsInTheCache) {
  const auto device = open_device("emulator");
  Dispatcher dispatcher(*device, with_test_cache());
  check(dispatcher, prefill_problem(7, 140, true, 1), inputs_of(7, 140, {0, 7}));
  check(dispatcher, prefill_problem(130, 66, true, 1), inputs_of(130, 66, {0, 130}));
}

TEST(AttentionHostTest, BlocksThatShareManyKeysLeaveTheirCountersAtZero) {
  const auto device = open_device("emulator");
  Dispatcher dispatcher(*device, with_test_cache());
  for (const std::int64_t queries : {1, 70}) {
    for (int launch = 0; launch < 2; ++launch) {
      check(dispatcher, prefill_problem(queries, 600, true, 1),
            inputs_of(queries, 600, {0, static_cast<double>(queries)}));
    }
  }
  check(dispatcher, prefill_problem(600, 600, false, 3), inputs_of(600, 600, {0, 30, 590, 600}));
}

TEST(AttentionHostTest, DecodeReadsTheLengthAndLeavesItsCountersAtZero) {
  const auto device = open_device("emulator");
  Dispatcher dispatcher(*device, with_test_cache());
  for (const double length : {0.0, 1.0, 17.0, 600.0, 599.0, 1e6, -3.0, 64.0}) {
    SCOPED_TRACE(length);
    check(dispatcher, decode_problem(600), inputs_of(1, 600, {length}));
  }
}

}  // namespace
}  // namespace pascaline::testing
