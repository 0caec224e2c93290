#pragma once

#include <cstdint>
#include <optional>

#include "runtime/device/device.hpp"
#include "runtime/model/model.hpp"

namespace pascaline::cli {

/// What a pass computes and moves at least; 0 where that says nothing about its time.
struct PassWork {
  double flops = 0;
  double bytes = 0;
};

/// Of a prompt of so many tokens, with the logits of its last one.
[[nodiscard]] PassWork prefill_work(const ModelConfig& config, std::int64_t tokens);
/// Of a token behind so many, for matrices and a cache of those types.
[[nodiscard]] PassWork decode_work(const ModelConfig& config, const ModelOptions& options, std::int64_t context);
/// Of an image of so many patches.
[[nodiscard]] PassWork image_work(const VisionConfig& config, std::int64_t patches);

/// Float32 operations a second that a GPU can do at its highest clock, a product and its sum being two. Nothing for
/// other devices, for architectures that are not known, and where the card does not tell its clock.
[[nodiscard]] std::optional<double> peak_flops(const DeviceInfo& device, const Sensors& sensors);

}  // namespace pascaline::cli
