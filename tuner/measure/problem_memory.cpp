#include "tuner/measure/problem_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/util/available_memory.hpp"
#include "core/util/byte_size.hpp"
#include "runtime/dispatch/planner.hpp"

namespace pascaline {
namespace {

constexpr double kGuards = 2.0 * Device::kGuardBytes;

// What stays free for code, stacks and whatever else runs on the machine.
constexpr double kUsablePart = 15.0 / 16;

// As a double, as extents of hostile shapes are beyond the integers that count bytes.
double bytes_of_buffer(const BoundSpace& space, const Argument& argument, const Config& config, double count) {
  const ElementType type = space.type_of(argument);
  return is_matrix_format(type) || argument.composite ? static_cast<double>(space.buffer_bytes(argument, config))
                                                      : count * static_cast<double>(size_of(type));
}

std::string shown(double bytes) {
  constexpr double kMost = 0x1p63;
  return shown_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, kMost)));
}

void require(double needed, std::uint64_t available, const std::string& where, const std::string& parts) {
  if (needed > static_cast<double>(available) * kUsablePart) {
    throw OutOfMemoryError(fmt::format("this shape needs {} of memory{} ({}), {} are available; use a smaller shape",
                                       shown(needed), where, parts, shown(static_cast<double>(available))),
                           static_cast<std::uint64_t>(std::min(needed, 0x1p63)), available);
  }
}

}  // namespace

ProblemMemory problem_memory(const BoundSpace& space) {
  const Config config = untuned_config(space);
  ProblemMemory memory;
  for (const Argument& argument : space.space().arguments) {
    if (argument.kind != ArgumentKind::buffer || argument.access == Access::scratch) {
      continue;
    }
    const auto count = static_cast<double>(space.value(argument, config));
    const double bytes = bytes_of_buffer(space, argument, config, count);
    const double wide = count * sizeof(double);
    memory.buffers += bytes + kGuards;
    if (argument.access == Access::inout || (is_input(argument) && is_mixed(argument))) {
      memory.copies += bytes;
    }
    if (is_output(argument)) {
      const double parts = argument.name == space.space().reference.slack ? 2 : 1;
      memory.copies += parts * wide;
      memory.references += parts * (wide + kGuards);
    }
  }
  if (const auto& workspace = space.space().reference.workspace) {
    memory.references += static_cast<double>(space.value(*workspace, config)) * sizeof(double) + kGuards;
  }
  return memory;
}

void require_problem_memory(Device& device, const BoundSpace& space) {
  const ProblemMemory memory = problem_memory(space);
  const std::uint64_t on_host = available_memory_bytes();
  const std::uint64_t on_card = device.memory().state().free_bytes;
  const std::string buffers =
      fmt::format("buffers {}, references on the device {}", shown(memory.buffers), shown(memory.references));
  if (device.info().kind == DeviceKind::emulator) {
    require(memory.buffers + memory.references + memory.copies, std::min(on_host, on_card), "",
            fmt::format("{}, what outputs begin with and are compared with {}", buffers, shown(memory.copies)));
    return;
  }
  require(memory.buffers + memory.references, on_card, " on the device", buffers);
  require(memory.copies, on_host, " on the host",
          fmt::format("what outputs begin with and are compared with {}", shown(memory.copies)));
}

}  // namespace pascaline
