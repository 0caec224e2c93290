#include "model/memory_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "model/memory_refusal.hpp"
#include "model/residency/device_weights.hpp"
#include "model/residency/residency_rates.hpp"

namespace pascaline {
namespace {

// Of the choices; throws OutOfMemoryError if none does.
void keep_what_fits_host(MemoryLayout& plan, const ModelOptions& options) {
  if (plan.choices.front().residency.all_on_device()) {
    return;
  }
  const std::uint64_t free = open_device("emulator")->memory().state().free_bytes;
  const ResidencyChoice first = plan.choices.front();
  std::erase_if(plan.choices, [&](const ResidencyChoice& choice) {
    return host_bytes(plan.sizes, choice.residency, choice.filled_device) > free;
  });
  if (plan.choices.empty()) {
    const std::uint64_t needed = host_bytes(plan.sizes, first.residency, first.filled_device);
    throw OutOfMemoryError(
        fmt::format("what does not fit the device needs {:.1f} MiB of the host's memory, which has {:.1f} MiB free; "
                    "weights in {} could be smaller (--weights q4_k), or the context (--context), or the model",
                    static_cast<double>(needed) / (1 << 20), static_cast<double>(free) / (1 << 20),
                    options.weights.name()),
        needed, free);
  }
}

}  // namespace

MemoryLayout lay_out_model(const ModelHome& home, const ModelConfig& config, const ModelOptions& options,
                           Measure measure) {
  DeviceMemory& memory = *home.memory;
  MemoryLayout plan;
  plan.on_processor = home.on_processor;
  plan.sizes = residency_sizes(memory, config, options);
  plan.device_free = memory.state().free_bytes;
  plan.residency = ModelResidency::on_device(plan.sizes.layers.size());
  if (home.on_processor) {
    plan.device = memory_parts(memory, config, options);
    plan.device_bytes = total_of(plan.device);
    if (plan.device_bytes > plan.device_free) {
      refuse_model(home, config, options, plan.device);
    }
    return plan;
  }
  plan.choices = residency_choices(plan.sizes, options.residency, {}, plan.device_free);
  if (!plan.choices.empty() && (measure == Measure::always || !plan.choices.front().residency.all_on_device())) {
    plan.rates = measure_rates(*home.device, memory, layer_type(config, options.weights));
    plan.choices = residency_choices(plan.sizes, options.residency, *plan.rates, plan.device_free);
  }
  if (plan.choices.empty()) {
    const ModelResidency smallest = smallest_residency(config, options);
    refuse_model(home, config, options, device_parts(config, options, plan.sizes, smallest, false));
  }
  keep_what_fits_host(plan, options);
  plan.residency = plan.choices.front().residency;
  plan.filled_device = plan.choices.front().filled_device;
  plan.device = device_parts(config, options, plan.sizes, plan.residency, plan.filled_device);
  plan.device_bytes = total_of(plan.device);
  plan.host = host_parts(config, options, plan.sizes, plan.residency, plan.filled_device);
  plan.host_bytes = total_of(plan.host);
  return plan;
}

}  // namespace pascaline
