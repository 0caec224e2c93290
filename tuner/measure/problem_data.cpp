#include "tuner/measure/problem_data.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

constexpr std::uint8_t kPoison = 0xFF;  // NaN in float16, bfloat16, float32 and float64; -1 in integers

// Of a device's memory, what stays free for scratch buffers and code when expected outputs are kept there.
constexpr std::uint64_t kPartLeftFree = 4;

// A reference takes its buffers by their order, so that a space of another version may have too few for it.
void check_host_reference(const Space& space) {
  const std::string& name = space.reference.host;
  const std::optional<ReferenceBuffers> needs = host_reference_buffers(name);
  if (!needs) {
    throw SpaceError(space.file, "/reference/host", fmt::format("there is no host reference named '{}'", name));
  }
  ReferenceBuffers has;
  for (const Argument& argument : space.arguments) {
    const bool counts = argument.kind == ArgumentKind::buffer && argument.access != Access::scratch;
    has.inputs += counts && is_input(argument) ? 1 : 0;
    has.outputs += counts && is_output(argument) ? 1 : 0;
  }
  if (has.inputs < needs->inputs || has.outputs < needs->outputs) {
    throw SpaceError(
        space.file, "/reference/host",
        fmt::format("'{}' reads {} buffers and writes {}; the arguments here are {} to read and {} to write", name,
                    needs->inputs, needs->outputs, has.inputs, has.outputs));
  }
}

}  // namespace

ProblemData::ProblemData(Device& device, const BoundSpace& space, Kernel reference)
    : device_(&device), space_(&space), reference_(std::move(reference)), readback_(device) {
  if (!reference_) {
    check_host_reference(space.space());
  }
  const Config config = space.default_config();
  for (const Argument& argument : space.space().arguments) {
    if (argument.kind != ArgumentKind::buffer || argument.access == Access::scratch) {
      continue;
    }
    Slot slot;
    slot.argument = &argument;
    slot.type = space.type_of(argument);
    slot.count = static_cast<std::size_t>(space.value(argument, config));
    slot.columns = space.columns(argument, config);
    slot.buffer = device.allocate(space.buffer_bytes(argument, config));
    named_.push_back({argument.name, slot.buffer.data()});
    slots_.push_back(std::move(slot));
  }
}

void ProblemData::draw(std::uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  for (Slot& slot : slots_) {
    if (is_input(*slot.argument)) {
      seed += 0x1000003;  // every buffer its own stream
      const auto [low, high] = space_->fill_range(*slot.argument);
      const auto rows = static_cast<std::int64_t>(slot.count) / slot.columns;
      slot.initial = draw_matrix(slot.type, rows, slot.columns, slot.argument->fill, low, high, seed);
      device_->upload(slot.buffer, slot.initial);
      slot.checksum = device_->checksum(slot.buffer);
    }
  }
  if (reference_) {
    reference_on_device();
  } else {
    reference_on_host();
  }
  for (Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      slot.bound.emplace(*space_, slot.type, slot.expected, std::move(slot.slack));
      keep_expected(slot, reference_ && !space_->space().reference.by_default);
    }
  }
  draw_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The naive kernel takes the same arguments, with its outputs, and what it adds to, in float64. The kernel itself,
// where its default configuration is the reference, takes them as they are.
void ProblemData::reference_on_device() {
  const bool itself = space_->space().reference.by_default;
  const Config config = space_->default_config();
  std::vector<Buffer> results;
  std::vector<NamedPointer> named;
  for (Slot& slot : slots_) {
    void* data = slot.buffer.data();
    if (is_output(*slot.argument)) {
      if (slot.expected_there && !itself) {
        results.push_back(std::move(*slot.expected_there));
        slot.expected_there.reset();
      } else {
        results.push_back(device_->allocate(slot.count * (itself ? size_of(slot.type) : sizeof(double))));
      }
      if (is_input(*slot.argument) && itself) {
        device_->upload(results.back(), slot.initial);
      } else if (is_input(*slot.argument)) {
        const std::vector<double> initial = widen(slot.type, slot.initial);
        device_->upload(results.back(), std::as_bytes(std::span(initial)));
      } else {
        device_->fill(results.back(), kPoison);
      }
      data = results.back().data();
    }
    named.push_back({slot.argument->name, data});
  }
  LaunchArguments arguments(*device_, *space_, config, named);
  const Launch& launch = itself ? space_->space().launch : *space_->space().reference.kernel;
  device_->launch(reference_, space_->geometry(launch, config), arguments.pointers());
  device_->synchronize();
  std::size_t next = 0;
  for (Slot& slot : slots_) {
    if (is_output(*slot.argument) && itself) {
      std::vector<std::byte> bytes(bytes_of(slot.type, slot.count));
      device_->download(bytes, results[next++]);
      slot.expected = widen(slot.type, bytes);
    } else if (is_output(*slot.argument)) {
      slot.expected.resize(slot.count);
      device_->download(std::as_writable_bytes(std::span(slot.expected)), results[next]);
      slot.expected_there = std::move(results[next++]);
    }
  }
}

void ProblemData::reference_on_host() {
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> outputs;
  for (const Slot& slot : slots_) {
    if (is_input(*slot.argument)) {
      const auto rows = static_cast<std::int64_t>(slot.count) / slot.columns;
      inputs.push_back(widen_matrix(slot.type, slot.initial, rows, slot.columns));
    }
    if (is_output(*slot.argument)) {
      outputs.emplace_back(slot.count);
    }
  }
  const std::string& name = space_->space().reference.host;
  std::vector<std::vector<double>> slacks = reference_slacks(name, space_->problem(), inputs, outputs);
  find_host_reference(name)(space_->problem(), inputs, outputs);
  std::size_t next = 0;
  for (Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      slot.expected = std::move(outputs[next]);
      slot.slack = std::move(slacks[next++]);
    }
  }
}

void ProblemData::poison_outputs() {
  for (const Slot& slot : slots_) {
    if (slot.argument->access == Access::inout) {
      device_->upload(slot.buffer, slot.initial);
    } else if (is_output(*slot.argument)) {
      device_->fill(slot.buffer, kPoison);
    }
  }
}

void ProblemData::restore_inputs() {
  for (const Slot& slot : slots_) {
    if (is_input(*slot.argument)) {
      device_->upload(slot.buffer, slot.initial);
    }
  }
}

ProblemData::Check ProblemData::check_outputs() {
  Check check;
  ErrorBound::Verdict worst;
  for (const Slot& slot : slots_) {
    if (!is_output(*slot.argument)) {
      continue;
    }
    const ErrorBound::Verdict found = compare(slot);
    if (!found.worse_than(worst)) {
      continue;
    }
    worst = found;
    check.max_error = found.error;
    if (!found.within) {
      check.within = false;
      check.tolerance = found.tolerance;
      check.where =
          fmt::format("{}[{}]: {} instead of {}", slot.argument->name, found.at, found.value, slot.expected[found.at]);
    }
  }
  return check;
}

ErrorBound::Verdict ProblemData::compare(const Slot& slot) {
  ErrorBound::Verdict found;
  if (slot.expected_there) {
    found.error = device_->largest_error(slot.buffer, slot.type, *slot.expected_there, *slot.bound->limits());
    if (std::isfinite(found.error)) {
      return found;
    }
    found = {};
  }
  readback_.read(slot.buffer, [&](std::span<const std::byte> piece, std::size_t offset) {
    found.keep_worse(slot.bound->compare(slot.type, piece, slot.expected, offset / size_of(slot.type)));
  });
  return found;
}

// Not where it would leave little memory for what configurations need.
void ProblemData::keep_expected(Slot& slot, bool is_there) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(slot.expected));
  const auto has_room = [&] {
    const MemoryState memory = device_->memory().state();
    return memory.free_bytes >= (slot.expected_there ? 0 : bytes.size()) + memory.total_bytes / kPartLeftFree;
  };
  if (!keeps_expected_ || !device_->compares(slot.type) || !slot.bound->limits() || !has_room()) {
    slot.expected_there.reset();
    return;
  }
  if (!slot.expected_there) {
    try {
      slot.expected_there = device_->allocate(bytes.size());
    } catch (const Error& error) {
      if (!is_out_of_memory(error)) {
        throw;
      }
      return;  // free, but not in one piece
    }
  }
  if (!is_there) {
    device_->upload(*slot.expected_there, bytes);
  }
  slot.expected_checksum = device_->checksum(*slot.expected_there);
}

bool ProblemData::free_expected() {
  keeps_expected_ = false;
  bool any = false;
  for (Slot& slot : slots_) {
    any = any || slot.expected_there;
    slot.expected_there.reset();
  }
  return any;
}

std::string ProblemData::damaged_guard() {
  for (const Slot& slot : slots_) {
    if (!device_->guards_intact(slot.buffer)) {
      return slot.argument->name;
    }
    if (slot.expected_there && device_->checksum(*slot.expected_there) != slot.expected_checksum) {
      device_->upload(*slot.expected_there, std::as_bytes(std::span(slot.expected)));
      return slot.argument->name;
    }
  }
  return {};
}

std::string ProblemData::changed_input() {
  for (const Slot& slot : slots_) {
    if (slot.argument->access == Access::in && device_->checksum(slot.buffer) != slot.checksum) {
      return slot.argument->name;
    }
  }
  return {};
}

}  // namespace pascaline
