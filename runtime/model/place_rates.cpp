#include "runtime/model/place_rates.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/error.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {
namespace {

using RateClock = std::chrono::steady_clock;

constexpr std::size_t kCopiedBytes = std::size_t{16} << 20;
constexpr std::int64_t kColumns = 2048;
constexpr std::size_t kWeightBytes = std::size_t{24} << 20;  // more than caches of processors hold
constexpr std::int64_t kManyRows = 64;
constexpr std::int64_t kOutputsOfMany = 1024;  // fewer, as many rows take longer
constexpr double kSecondsEach = 0.06;
constexpr int kMostTries = 20;

// The fastest of some tries, in seconds; those after the first are made as long as there is time.
template <typename Work>
double fastest(const Work& work) {
  double best = 0;
  double total = 0;
  for (int i = 0; i < kMostTries && (i < 2 || total < kSecondsEach); ++i) {
    const auto begin = RateClock::now();
    work();
    const double seconds = std::chrono::duration<double>(RateClock::now() - begin).count();
    best = i == 0 ? seconds : std::min(best, seconds);
    total += seconds;
  }
  return std::max(best, 1e-9);
}

// Page-locked, or plain where the system refuses that.
double copy_rate(DeviceMemory& memory) {
  const std::uint64_t free = memory.state().free_bytes;
  const std::size_t bytes = std::min<std::size_t>(kCopiedBytes, free / 2);
  if (bytes == 0) {
    return 0;
  }
  const RawBuffer there = memory.allocate_raw(bytes);
  PinnedBuffer pinned;
  std::vector<std::byte> plain;
  try {
    pinned = memory.allocate_pinned(bytes);
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error&) {
    plain.resize(bytes);
  }
  const std::span<std::byte> here = pinned ? pinned.bytes() : std::span(plain);
  std::fill(here.begin(), here.end(), std::byte{1});
  return static_cast<double>(bytes) / fastest([&] {
           memory.upload({}, there.span(), here);
           memory.synchronize(StreamId{});
         });
}

// Bytes read and written.
double memory_rate(DeviceMemory& memory) {
  const std::size_t bytes = std::min<std::size_t>(2 * kCopiedBytes, memory.state().free_bytes / 4);
  if (bytes == 0) {
    return 0;
  }
  const RawBuffer from = memory.allocate_raw(bytes);
  const RawBuffer to = memory.allocate_raw(bytes);
  memory.fill({}, from.span(), 1);
  memory.fill({}, to.span(), 1);
  return 2 * static_cast<double>(bytes) / fastest([&] {
           memory.copy({}, to.span(), from.span());
           memory.synchronize(StreamId{});
         });
}

// A matrix of so many rows of any values, in groups that are alike.
RawBuffer some_matrix(DeviceMemory& host, ElementType type, std::int64_t rows) {
  const MatrixLayout layout = layout_of(type);
  const std::vector<std::byte> group = draw_matrix(type, layout.group_rows, kColumns, Fill::uniform, -1, 1, 1);
  RawBuffer matrix = host.allocate_raw(static_cast<std::size_t>(layout.bytes(rows, kColumns)));
  for (std::size_t at = 0; at < matrix.bytes(); at += group.size()) {
    std::memcpy(static_cast<std::byte*>(matrix.data()) + at, group.data(), std::min(group.size(), matrix.bytes() - at));
  }
  return matrix;
}

void measure_processor(ElementType type, PlaceRates& rates) {
  const std::unique_ptr<Device> host = open_device("emulator");
  const MatrixLayout layout = layout_of(type);
  const std::int64_t groups =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kWeightBytes) / layout.group_bytes(kColumns));
  const std::int64_t outputs = std::max(groups * layout.group_rows, kOutputsOfMany);
  const RawBuffer weights = some_matrix(host->memory(), type, outputs);
  const RawBuffer rows = host->memory().allocate_raw(kManyRows * kColumns * sizeof(float));
  const RawBuffer sums = host->memory().allocate_raw(std::max(kManyRows * kOutputsOfMany, outputs) * sizeof(float));
  std::fill_n(static_cast<float*>(rows.data()), kManyRows * kColumns, 0.5F);
  const auto multiply = [&](std::int64_t count, std::int64_t of) {
    ops::compute(ops::Matmul{.a = {rows.data(), ElementType::float32, {count, kColumns}},
                             .b = {weights.data(), type, {of, kColumns}},
                             .c = {sums.data(), ElementType::float32, {count, of}}});
  };
  rates.processor_bytes = static_cast<double>(weights.bytes()) / fastest([&] { multiply(1, outputs); });
  rates.processor_flops = 2.0 * static_cast<double>(kManyRows * kColumns * kOutputsOfMany) /
                          fastest([&] { multiply(kManyRows, kOutputsOfMany); });
}

std::optional<double> peak_of(const DeviceInfo& device, const Sensors& sensors, std::optional<double> lanes,
                              double operations) {
  if (device.kind != DeviceKind::cuda || !lanes || !sensors.sm_clock_limit_mhz) {
    return std::nullopt;
  }
  return static_cast<double>(device.limits.sm_count) * *lanes * operations * *sensors.sm_clock_limit_mhz * 1e6;
}

}  // namespace

PlaceRates measure_rates(Device& device, DeviceMemory& memory, ElementType weights) {
  PlaceRates rates;
  try {
    rates.copy = copy_rate(memory);
    rates.device_bytes = memory_rate(memory);
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
  }
  rates.device_flops = peak_flops(device.info(), device.read_sensors()).value_or(0);
  measure_processor(weights, rates);
  return rates;
}

std::optional<double> peak_flops(const DeviceInfo& device, const Sensors& sensors) {
  return peak_of(device, sensors, fp32_lanes_of(device.architecture), 2);
}

std::optional<double> peak_int8_ops(const DeviceInfo& device, const Sensors& sensors) {
  return peak_of(device, sensors, dp4a_lanes_of(device.architecture), 8);
}

}  // namespace pascaline
