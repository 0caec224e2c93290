#include "tests/runtime/dispatch/matmul_check.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "runtime/ops/matmul.hpp"
#include "runtime/reference/reference.hpp"

namespace pascaline::testing {
namespace {

// Exact for the eighths from -1 to 1 that the inputs are made of.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value == 0) {
    return 0;
  }
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | (((bits >> 23 & 0xFFU) - 112U) << 10) |
                                    (bits >> 13 & 0x3FFU));
}

double from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  }
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

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
      halves.push_back(to_half(static_cast<float>(value)));
    }
    device.upload(buffer, std::as_bytes(std::span(halves)));
  } else {
    const std::vector<float> floats(values.begin(), values.end());
    device.upload(buffer, std::as_bytes(std::span(floats)));
  }
  return buffer;
}

std::vector<double> download(Device& device, const Buffer& buffer, ElementType type) {
  std::vector<double> values;
  if (type == ElementType::float16) {
    std::vector<std::uint16_t> halves(buffer.bytes() / 2);
    device.download(std::as_writable_bytes(std::span(halves)), buffer);
    for (const std::uint16_t half : halves) {
      values.push_back(from_half(half));
    }
  } else {
    std::vector<float> floats(buffer.bytes() / 4);
    device.download(std::as_writable_bytes(std::span(floats)), buffer);
    values.assign(floats.begin(), floats.end());
  }
  return values;
}

}  // namespace

void check_matmul(Dispatcher& dispatcher, std::int64_t m, std::int64_t n, std::int64_t k, ElementType type) {
  SCOPED_TRACE(::testing::Message() << "M=" << m << " N=" << n << " K=" << k << " " << name_of(type));
  Device& device = dispatcher.device();
  const std::vector<std::vector<double>> inputs{random_eighths(m * k, 1), random_eighths(n * k, 2)};
  const Buffer a = upload(device, inputs[0], type);
  const Buffer b = upload(device, inputs[1], type);
  const Buffer c = device.allocate(static_cast<std::size_t>(m * n) * size_of(type));
  device.fill(c, 0xFF);
  ops::matmul(dispatcher, {a.data(), type, {m, k}}, {b.data(), type, {n, k}}, {c.data(), type, {m, n}});
  device.synchronize();
  const std::vector<double> result = download(device, c, type);
  EXPECT_TRUE(device.guards_intact(a) && device.guards_intact(b) && device.guards_intact(c));

  std::vector<std::vector<double>> expected{std::vector<double>(static_cast<std::size_t>(m * n))};
  const Problem problem{"matmul", {{"M", m}, {"N", n}, {"K", k}}, {{"STORAGE", type}}};
  reference_matmul_nt(problem, inputs, expected);
  const double tolerance = type == ElementType::float16 ? 1e-3 : 1e-5;
  int wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    wrong += std::abs(result[i] - expected[0][i]) <= tolerance * (1 + std::abs(expected[0][i])) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0) << "of " << result.size() << " elements";
}

}  // namespace pascaline::testing
