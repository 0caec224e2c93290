#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline::testing {

/// Tokens chosen on the emulated device from logits that lie there.
class SampleBench {
 public:
  explicit SampleBench(std::size_t vocabulary);

  void set_logits(const std::vector<float>& logits);
  void set(const ops::SamplingSettings& settings);
  void set_step(std::uint64_t step);
  void set_seen(const std::vector<std::int32_t>& seen);

  /// Chooses a token, waits for it, and fails the test if a byte outside of a buffer has changed.
  ops::SampledToken choose();
  /// What the device holds.
  ops::SampledToken chosen();
  std::uint64_t step();
  std::vector<std::int32_t> seen();

  [[nodiscard]] Device& device() noexcept { return *device_; }
  /// Launches without waiting.
  void launch();

 private:
  [[nodiscard]] TensorView view(const Buffer& buffer, ElementType type, std::int64_t count) const {
    return {buffer.data(), type, {count}};
  }

  std::unique_ptr<Device> device_;
  Dispatcher dispatcher_;
  std::size_t vocabulary_;
  Buffer logits_;
  Buffer settings_;
  Buffer top_k_;
  Buffer generator_;
  Buffer seen_;
  Buffer token_;
  Buffer probability_;
};

}  // namespace pascaline::testing
