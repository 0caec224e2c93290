#include "tests/runtime/dispatch/matmul_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/elements.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

std::vector<double> random_eighths(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> eighths(-8, 8);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    value = eighths(generator) / 8.0;
  }
  return values;
}

Buffer upload(Device& device, const std::vector<double>& values, ElementType type) {
  Buffer buffer = device.allocate(values.size() * size_of(type));
  if (type == ElementType::float16) {
    std::vector<std::uint16_t> halves;
    for (const double value : values) {
      halves.push_back(half_from_float(static_cast<float>(value)));
    }
    device.upload(buffer, std::as_bytes(std::span(halves)));
  } else {
    const std::vector<float> floats(values.begin(), values.end());
    device.upload(buffer, std::as_bytes(std::span(floats)));
  }
  return buffer;
}

std::vector<double> download(Device& device, const Buffer& buffer, ElementType type) {
  std::vector<std::byte> bytes(buffer.bytes());
  device.download(bytes, buffer);
  return widen(type, bytes);
}

}  // namespace

void check_matmul(Dispatcher& dispatcher, std::int64_t m, std::int64_t n, std::int64_t k, ElementType type) {
  SCOPED_TRACE(::testing::Message() << "M=" << m << " N=" << n << " K=" << k << " " << name_of(type));
  Device& device = dispatcher.device();
  const std::vector<std::vector<double>> inputs{random_eighths(m * k, 1), random_eighths(n * k, 2), {}, {}};
  const Buffer a = upload(device, inputs[0], type);
  const Buffer b = upload(device, inputs[1], type);
  const Buffer c = device.allocate(static_cast<std::size_t>(m * n) * size_of(type));
  device.fill(c, 0xFF);
  ops::run(dispatcher,
           ops::Matmul{{a.data(), type, {m, k}}, TensorView(b.data(), type, {n, k}), {c.data(), type, {m, n}}});
  device.synchronize();
  const std::vector<double> result = download(device, c, type);
  EXPECT_TRUE(device.guards_intact(a) && device.guards_intact(b) && device.guards_intact(c));

  const Problem problem{"matmul", {{"M", m}, {"N", n}, {"K", k}, {"EPILOGUE", 0}}, {{"STORAGE", type}}};
  const std::vector<std::vector<double>> expected = reference_results(problem, inputs);
  const double tolerance = type == ElementType::float16 ? 1e-3 : 1e-5;
  int wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    wrong += std::abs(result[i] - expected[0][i]) <= tolerance * (1 + std::abs(expected[0][i])) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0) << "of " << result.size() << " elements";
}

}  // namespace pascaline::testing
