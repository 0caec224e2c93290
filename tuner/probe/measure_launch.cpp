#include <array>
#include <chrono>

#include "tuner/probe/probe_bench.hpp"

namespace pascaline {
namespace {

using LaunchClock = std::chrono::steady_clock;

constexpr int kQueuedLaunches = 500;
constexpr int kGraphLaunches = 200;

// Microseconds from the first launch until the device has done all, of each.
template <typename Work>
double host_us_each(Device& device, int launches, const Work& work) {
  const auto begin = LaunchClock::now();
  work();
  device.synchronize();
  return std::chrono::duration<double, std::micro>(LaunchClock::now() - begin).count() / launches;
}

}  // namespace

void measure_launch(ProbeBench& bench) {
  Device& device = bench.device;
  const Kernel nothing = device.load(bench.kernels.compile("nothing", "nothing"));
  Geometry geometry;
  geometry.block[0] = 32;
  constexpr std::array kSingle{ProbeQuantity::launch_us};
  constexpr std::array kQueued{ProbeQuantity::queued_launch_us};
  constexpr std::array kGraph{ProbeQuantity::graph_launch_us};
  bench.add(bench.sampler.take(
      kSingle, [&]() -> std::vector<double> { return {device.time_launch_us(nothing, geometry, {}, false)}; }));
  const auto launch = [&](int count) {
    for (int i = 0; i < count; ++i) {
      device.launch(nothing, geometry, {});
    }
  };
  bench.add(bench.sampler.take(kQueued, [&]() -> std::vector<double> {
    return {host_us_each(device, kQueuedLaunches, [&] { launch(kQueuedLaunches); })};
  }));
  const Graph graph = device.record([&] { launch(kGraphLaunches); });
  bench.add(bench.sampler.take(kGraph, [&]() -> std::vector<double> {
    return {host_us_each(device, kGraphLaunches, [&] { device.launch(graph); })};
  }));
}

}  // namespace pascaline
