#include "cli/model/model_work.hpp"

#include <utility>

#include "core/device/device_rates.hpp"
#include "core/problem.hpp"

namespace pascaline::cli {
namespace {

// Matrices of the decoder that every token is multiplied by, without the head; and those of the head.
std::pair<double, double> decoder_elements(const TextConfig& text) {
  const auto hidden = static_cast<double>(text.hidden);
  const auto heads = static_cast<double>(text.heads * text.head_dim);
  const auto kv_heads = static_cast<double>(text.kv_heads * text.head_dim);
  const double layer = hidden * (2 * heads + 2 * kv_heads + 3 * static_cast<double>(text.intermediate));
  return {static_cast<double>(text.layers) * layer, hidden * static_cast<double>(text.vocab)};
}

}  // namespace

PassWork prefill_work(const ModelConfig& config, std::int64_t tokens) {
  const auto [layers, head] = decoder_elements(config.text);
  const auto s = static_cast<double>(tokens);
  const auto width = static_cast<double>(config.text.layers * config.text.heads * config.text.head_dim);
  return {2 * (layers * s + head) + 2 * width * s * (s + 1), 0};
}

PassWork decode_work(const ModelConfig& config, const ModelOptions& options, std::int64_t context) {
  const TextConfig& text = config.text;
  const auto [layers, head] = decoder_elements(text);
  const auto length = static_cast<double>(context + 1);
  const auto cached = static_cast<double>(text.layers * 2 * text.kv_heads * text.head_dim) * length;
  return {2 * (layers + head) + 4 * static_cast<double>(text.layers * text.heads * text.head_dim) * length,
          (static_cast<double>(bits_of(options.weights)) * (layers + head) +
           static_cast<double>(bits_of(options.cache)) * cached) /
              8};
}

PassWork image_work(const VisionConfig& config, std::int64_t patches) {
  const auto n = static_cast<double>(patches);
  const auto hidden = static_cast<double>(config.hidden);
  const auto depth = static_cast<double>(config.depth);
  const auto merged = static_cast<double>(config.merged());
  const double embedding = 2 * static_cast<double>(config.patch_values()) * hidden * n;
  const double blocks = 2 * depth * hidden * (4 * hidden + 2 * static_cast<double>(config.intermediate)) * n;
  const double attention = 4 * depth * hidden * n * n;
  const auto mergers = static_cast<double>(1 + config.deepstack_indexes.size());
  const double tokens = n / static_cast<double>(config.merge * config.merge);
  const double merging = 2 * mergers * merged * (merged + static_cast<double>(config.out_hidden)) * tokens;
  return {embedding + blocks + attention + merging, 0};
}

std::optional<double> peak_flops(const DeviceInfo& device, const Sensors& sensors) {
  const std::optional<double> lanes = fp32_lanes_of(device.architecture);
  if (device.kind != DeviceKind::cuda || !lanes || !sensors.sm_clock_limit_mhz) {
    return std::nullopt;
  }
  return static_cast<double>(device.limits.sm_count) * *lanes * 2 * *sensors.sm_clock_limit_mhz * 1e6;
}

}  // namespace pascaline::cli
