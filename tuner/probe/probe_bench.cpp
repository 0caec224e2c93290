#include "tuner/probe/probe_bench.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace pascaline {

ClockedKernel::ClockedKernel(Device& device, const Binary& binary, std::uint32_t blocks, std::uint32_t threads)
    : device_(device),
      kernel_(device.load(binary)),
      spans_buffer_(device.allocate(2 * blocks * sizeof(std::int64_t))),
      places_buffer_(device.allocate(blocks * sizeof(std::int32_t))) {
  geometry_.grid[0] = blocks;
  geometry_.block[0] = threads;
  spans = spans_buffer_.data();
  places = places_buffer_.data();
}

ClockedLaunch ClockedKernel::run(const std::vector<void*>& arguments, bool cold_cache) {
  // What a block does not write makes no sense then, and is found.
  device_.fill(spans_buffer_, 0);
  device_.fill(places_buffer_, 0xff);
  ClockedLaunch launch;
  launch.us = device_.time_launch_us(kernel_, geometry_, arguments, cold_cache);
  std::vector<std::int64_t> spans_here(2 * std::size_t{geometry_.grid[0]});
  std::vector<std::int32_t> places_here(geometry_.grid[0]);
  device_.download(std::as_writable_bytes(std::span(spans_here)), spans_buffer_);
  device_.download(std::as_writable_bytes(std::span(places_here)), places_buffer_);
  launch.clocks = launch_clocks(spans_here, places_here);
  return launch;
}

int rounds_for(double wanted_us, const std::function<double(int rounds)>& run) {
  constexpr int kMost = 1 << 22;
  int rounds = 8;
  double us = run(rounds);
  while (us < wanted_us / 8 && rounds < kMost) {
    rounds *= 4;
    us = run(rounds);
  }
  return std::clamp(static_cast<int>(std::lround(rounds * wanted_us / std::max(us, 1e-3))), 1, kMost);
}

Buffer zeros(Device& device, std::size_t bytes) {
  Buffer buffer = device.allocate(bytes);
  device.fill(buffer, 0);
  return buffer;
}

}  // namespace pascaline
