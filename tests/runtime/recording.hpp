#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::testing {

/// Expects that the device, while it records, refuses all but launching kernels and filling, and goes on recording.
inline void expect_records_only_launches_and_fills(Device& device, const Kernel& kernel) {
  std::vector<std::byte> bytes(64);
  const Buffer buffer = device.allocate(bytes.size());
  Graph earlier = device.record([&] { device.fill(buffer, 2); });
  DeviceMemory& memory = device.memory();
  const Event event = memory.make_event();
  const Stream stream = memory.make_stream();
  const std::pair<const char*, std::function<void()>> refused[] = {
      {"allocate memory", [&] { (void)device.allocate(4); }},
      {"upload", [&] { device.upload(buffer, bytes); }},
      {"download", [&] { device.download(bytes, buffer); }},
      {"check guards", [&] { (void)device.guards_intact(buffer); }},
      {"sum up a buffer", [&] { (void)device.checksum(buffer); }},
      {"load a kernel", [&] { (void)device.load(Binary()); }},
      {"record", [&] { (void)device.record([] {}); }},
      {"update a graph", [&] { (void)device.update(earlier, [] {}); }},
      {"allocate memory", [&] { (void)memory.allocate_raw(4); }},
      {"reserve addresses", [&] { (void)memory.reserve(4); }},
      {"upload", [&] { memory.upload(stream.id(), buffer.span(), bytes); }},
      {"copy", [&] { memory.copy({}, buffer.span(), buffer.span()); }},
      {"record an event", [&] { memory.record(event, {}); }},
      {"wait for an event", [&] { memory.synchronize(event); }},
      {"launch a graph", [&] { device.launch(earlier); }},
      {"wait", [&] { device.synchronize(); }},
      {"time a launch", [&] { (void)device.time_launch_us(kernel, {}, {}, true); }},
      {"time the canary", [&] { (void)device.time_canary_us(); }},
      {"reset", [&] { device.reset(); }},
  };
  device.fill(buffer, 1);
  const Graph graph = device.record([&] {
    EXPECT_TRUE(device.recording());
    device.fill(buffer, 3);
    for (const auto& [doing, action] : refused) {
      try {
        action();
        ADD_FAILURE() << "taken: " << doing;
      } catch (const Error& error) {
        const std::string expected = std::string("cannot ") + doing + " while launches are recorded";
        EXPECT_TRUE(std::string(error.what()).starts_with(expected)) << doing << ": " << error.what();
      }
    }
  });
  EXPECT_FALSE(device.recording());
  const auto holds = [&](int value) {
    device.download(bytes, buffer);
    return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == std::byte(value); });
  };
  EXPECT_TRUE(holds(1)) << "nothing ran while it recorded";
  device.launch(graph);
  EXPECT_TRUE(holds(3)) << "what was recorded before the refusals is in the graph, and nothing of what was refused";
}

}  // namespace pascaline::testing
