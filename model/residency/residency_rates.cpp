#include "model/residency/residency_rates.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {
namespace {

using RateClock = std::chrono::steady_clock;

constexpr std::size_t kCopiedBytes = std::size_t{16} << 20;
constexpr std::int64_t kColumns = 2048;
// As a layer of the decoder: some matrices, each handed out to the threads by itself.
constexpr std::size_t kMatrices = 8;
constexpr std::size_t kMatrixBytes = std::size_t{3} << 20;
constexpr std::int64_t kManyRows = 64;
constexpr std::int64_t kOutputsOfMany = 8192;  // at least, of matrices that are not all used, as many rows take longer
constexpr std::size_t kCacheLine = 64;
constexpr double kSecondsEach = 0.06;
// More than a tenth, for which a limit on processor time gives it out.
constexpr double kSecondsOfProcessor = 0.15;

double seconds_since(RateClock::time_point begin) {
  return std::chrono::duration<double>(RateClock::now() - begin).count();
}

// The mean of tries in seconds, for as long as there is time: what keeps some of them waiting will keep a model waiting
// as often. `prepare` is not timed; the first try is not counted.
template <typename Prepare, typename Work>
double mean_seconds(double time, const Prepare& prepare, const Work& work) {
  work();
  const auto begin = RateClock::now();
  double sum = 0;
  int tries = 0;
  do {
    prepare();
    const auto start = RateClock::now();
    work();
    sum += seconds_since(start);
    ++tries;
  } while (seconds_since(begin) < time);
  return std::max(sum / tries, 1e-9);
}

// Out of the processor's caches, so that it is read from memory as the weights of a whole model are.
void evict([[maybe_unused]] const RawBuffer& buffer) {
#if defined(__x86_64__)
  auto* const data = static_cast<std::byte*>(buffer.data());
  const auto lines = static_cast<std::int64_t>(buffer.bytes() / kCacheLine);
  worker_pool().run(lines, 4096, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t line = first; line < last; ++line) {
      __builtin_ia32_clflush(data + static_cast<std::size_t>(line) * kCacheLine);
    }
  });
#endif
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
  return static_cast<double>(bytes) / mean_seconds(
                                          kSecondsEach, [] {},
                                          [&] {
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
  return 2 * static_cast<double>(bytes) /
         mean_seconds(
             kSecondsEach, [] {},
             [&] {
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

void measure_processor(ElementType type, ResidencyRates& rates) {
  const std::unique_ptr<Device> host = open_device("emulator");
  const MatrixLayout layout = layout_of(type);
  const std::int64_t groups =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kMatrixBytes) / layout.group_bytes(kColumns));
  const std::int64_t outputs = groups * layout.group_rows;
  std::vector<RawBuffer> matrices;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kMatrices; ++i) {
    bytes += matrices.emplace_back(some_matrix(host->memory(), type, outputs)).bytes();
  }
  const RawBuffer rows = host->memory().allocate_raw(kManyRows * kColumns * sizeof(float));
  const RawBuffer sums = host->memory().allocate_raw(static_cast<std::size_t>(kManyRows * outputs) * sizeof(float));
  std::fill_n(static_cast<float*>(rows.data()), kManyRows * kColumns, 0.5F);
  const auto multiply = [&](std::int64_t count, std::size_t with) {
    for (std::size_t i = 0; i < with; ++i) {
      ops::compute(ops::Matmul{.a = {rows.data(), ElementType::float32, {count, kColumns}},
                               .b = {matrices[i].data(), type, {outputs, kColumns}},
                               .c = {sums.data(), ElementType::float32, {count, outputs}}});
    }
  };
  rates.processor_bytes = static_cast<double>(bytes) /
                          mean_seconds(
                              kSecondsOfProcessor, [&] { std::for_each(matrices.begin(), matrices.end(), evict); },
                              [&] { multiply(1, kMatrices); });
  const auto few = std::min(kMatrices, static_cast<std::size_t>((kOutputsOfMany + outputs - 1) / outputs));
  rates.processor_flops = 2.0 * static_cast<double>(few) * static_cast<double>(kManyRows * kColumns * outputs) /
                          mean_seconds(
                              kSecondsOfProcessor, [] {}, [&] { multiply(kManyRows, few); });
}

std::optional<double> peak_of(const DeviceInfo& device, const Sensors& sensors, std::optional<double> lanes,
                              double operations) {
  if (device.kind != DeviceKind::cuda || !lanes || !sensors.sm_clock_limit_mhz) {
    return std::nullopt;
  }
  return static_cast<double>(device.limits.sm_count) * *lanes * operations * *sensors.sm_clock_limit_mhz * 1e6;
}

}  // namespace

ResidencyRates measure_rates(Device& device, DeviceMemory& memory, ElementType weights) {
  ResidencyRates rates;
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
