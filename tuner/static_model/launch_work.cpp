#include "tuner/static_model/launch_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/error.hpp"

namespace pascaline {
namespace {

double product(const std::array<std::uint32_t, 3>& sizes) {
  return static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * static_cast<double>(sizes[2]);
}

}  // namespace

LaunchWork launch_work(const BoundSpace& space, const Config& config) {
  std::vector<std::int64_t> slots = space.base_slots();
  const std::vector<std::uint16_t> indices = space.space().indices_of(config);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    slots[i] = space.integer_values()[i][indices[i]];
  }
  const auto take = [&](const std::optional<Expression>& expression) -> std::optional<double> {
    if (!expression) {
      return std::nullopt;
    }
    const auto value = expression->try_evaluate(slots);
    if (!value || *value < 0) {
      throw Error(fmt::format("cannot estimate {} of {}: an expression of the section 'model' has no value there",
                              config.text(), space.problem().text()));
    }
    return static_cast<double>(*value);
  };
  const PerformanceModel model = space.space().model.value_or(PerformanceModel{});
  const Geometry geometry = space.geometry(space.space().launches.front(), config);
  constexpr double kWarpThreads = 32;
  LaunchWork work;
  work.flops = take(model.flops).value_or(space.flops());
  work.compulsory_bytes = space.bytes();
  work.global_bytes = take(model.global_bytes).value_or(work.compulsory_bytes);
  for (const Argument& argument : space.space().arguments) {
    work.output_bytes += is_output(argument) ? static_cast<double>(space.buffer_bytes(argument, config)) : 0;
  }
  work.shared_bytes = take(model.shared_bytes);
  work.blocks = std::clamp(take(model.blocks).value_or(product(geometry.grid)), 1.0, product(geometry.grid));
  work.imbalance = std::max(1.0, take(model.imbalance).value_or(100) / 100);
  work.threads = static_cast<int>(geometry.threads());
  work.grid_threads = work.blocks * std::ceil(work.threads / kWarpThreads) * kWarpThreads;
  work.dynamic_shared_bytes = static_cast<int>(geometry.shared_bytes);
  return work;
}

}  // namespace pascaline
