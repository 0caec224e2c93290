#include "tuner/measure/problem_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/measure/member_numbers.hpp"
#include "tuner/measure/problem_memory.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

// Of a device's memory, what stays free for scratch buffers and code when expected outputs are kept there.
constexpr std::uint64_t kPartLeftFree = 4;

// The number that an element is whose bytes all are poison; of a structure those that its members are.
std::vector<double> poisoned_values(const Argument& argument, ElementType type, std::uint8_t poison) {
  const std::size_t bytes = is_mixed(argument) ? argument.composite->bytes() : size_of(type);
  return widen(argument, type, std::vector<std::byte>(bytes, std::byte{poison}));
}

bool is_poisoned(double value, double poison) { return value == poison || (std::isnan(value) && std::isnan(poison)); }

// Whether an element may be poison, or computed from poison.
bool has_poison(const std::vector<double>& values, const std::vector<double>& poisons) {
  std::size_t at = 0;
  return std::any_of(values.begin(), values.end(), [&](double value) {
    const double poison = poisons[at];
    at = at + 1 < poisons.size() ? at + 1 : 0;
    return std::isnan(value) || is_poisoned(value, poison);
  });
}

bool has_random_fill(const Argument& argument) {
  return argument.fill == Fill::uniform || argument.fill == Fill::normal || argument.fill == Fill::sorted ||
         argument.fill == Fill::permutation;
}

// Elements are compared where they lie, with those of the reference at the same places.
bool is_compared_in_place(const Argument& output) { return output.compare == Comparison::each && output.mask.empty(); }

std::string text_of_element(const Argument& output, std::size_t at) {
  return output.compare == Comparison::sum         ? fmt::format("the sum of {}", output.name)
         : output.compare == Comparison::any_order ? fmt::format("{} in ascending order [{}]", output.name, at)
                                                   : name_of_number(output, at);
}

// As messages name it.
std::string text_of_reference(const Space& space, const Config& baseline) {
  return space.reference.kernel ? fmt::format("the reference kernel '{}'", space.reference.kernel->function)
                                : fmt::format("the reference, the kernel with {},", baseline.text());
}

}  // namespace

void require_reference_fits(const BoundSpace& space, const ReferenceRun& reference) {
  const auto& [binary, baseline] = reference;
  std::optional<std::string> why;
  try {
    why = exceeds_limits(space, reference_launches(space.space()), baseline, binary);
  } catch (const Error& error) {  // more blocks than a grid may have
    why = error.what();
  }
  if (why) {
    throw ReferenceError(fmt::format("{} cannot be launched: {}", text_of_reference(space.space(), baseline), *why));
  }
}

ProblemData::ProblemData(Device& device, const BoundSpace& space, std::vector<Kernel> reference, Config baseline,
                         const std::optional<Binary>& drawing, GivenData given)
    : device_(&device),
      space_(&space),
      reference_(std::move(reference)),
      baseline_(std::move(baseline)),
      drawing_(device, drawing),
      given_(std::move(given)),
      readback_(device) {
  require_problem_memory(device, space);
  for (const Argument& argument : space.space().arguments) {
    if (argument.kind != ArgumentKind::buffer || argument.access == Access::scratch) {
      continue;
    }
    Slot slot;
    slot.argument = &argument;
    slot.type = space.type_of(argument);
    slot.count = static_cast<std::size_t>(space.value(argument, baseline_));
    slot.columns = space.columns(argument, baseline_);
    slot.buffer = device.allocate(space.buffer_bytes(argument, baseline_));
    slot.given = given_.input(argument.name);
    slot.answer = given_.answer(argument.name);
    named_.push_back({argument.name, slot.buffer.data()});
    slots_.push_back(std::move(slot));
  }
}

ProblemData::ProblemData(Device& device, const BoundSpace& space, Kernel reference)
    : ProblemData(device, space, std::vector<Kernel>(), untuned_config(space)) {
  reference_.push_back(std::move(reference));
}

void ProblemData::draw(std::uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  for (Slot& slot : slots_) {
    if (is_input(*slot.argument)) {
      seed += 0x1000003;  // every buffer its own stream
      const auto [low, high] = space_->fill_range(*slot.argument);
      const auto rows = static_cast<std::int64_t>(slot.count) / slot.columns;
      slot.drawn = {slot.type, rows, slot.columns, slot.argument->fill, low, high, seed};
      slot.initial.clear();
      if (is_mixed(*slot.argument) && slot.given.empty()) {
        slot.initial = draw_members(*space_, *slot.argument, slot.drawn);
      }
      refill(slot);
      if (slot.argument->access == Access::inout && slot.given.empty() && slot.initial.empty() &&
          !drawing_.on_device()) {
        slot.initial = contents(slot);
      }
    }
  }
  use_inputs();
  draw_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

bool ProblemData::draws() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) {
    return is_input(*slot.argument) && slot.given.empty() &&
           (has_random_fill(*slot.argument) || is_matrix_format(slot.type) ||
            std::ranges::any_of(slot.argument->members, has_random_fill));
  });
}

void ProblemData::set_inputs(std::vector<std::vector<std::byte>> inputs) {
  std::size_t next = 0;
  for (Slot& slot : slots_) {
    if (is_input(*slot.argument)) {
      slot.initial = std::move(inputs.at(next++));
      device_->upload(slot.buffer, slot.initial);
    }
  }
  use_inputs();
}

void ProblemData::refill(const Slot& slot) {
  if (!slot.given.empty()) {
    device_->upload(slot.buffer, slot.given);
  } else if (slot.initial.empty()) {
    drawing_.draw(slot.buffer.span(), slot.drawn);
  } else {
    device_->upload(slot.buffer, slot.initial);
  }
}

std::vector<std::byte> ProblemData::contents(const Slot& slot) {
  std::vector<std::byte> bytes(slot.buffer.bytes());
  device_->download(bytes, slot.buffer);
  return bytes;
}

void ProblemData::use_inputs() {
  for (Slot& slot : slots_) {
    if (is_input(*slot.argument)) {
      slot.checksum = device_->checksum(slot.buffer);
    }
  }
  read_masks();
  const bool all_answered =
      std::ranges::all_of(slots_, [](const Slot& slot) { return !is_output(*slot.argument) || !slot.answer.empty(); });
  if (!all_answered) {
    compute_reference();
  }
  take_answers();
  poison_may_pass_ = false;
  for (Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      slot.bound.emplace(*space_, number_types(*slot.argument, slot.type), slot.expected, std::move(slot.slack));
      keep_expected(slot, !reference_is_itself() && slot.answer.empty());
      poison_may_pass_ = poison_may_pass_ || is_mixed(*slot.argument) || !is_compared_in_place(*slot.argument) ||
                         accepts(slot, poisoned_values(*slot.argument, slot.type, kPoisons.front()).front());
    }
  }
}

void ProblemData::read_masks() {
  for (Slot& slot : slots_) {
    const auto mask =
        std::ranges::find_if(slots_, [&](const Slot& other) { return other.argument->name == slot.argument->mask; });
    if (mask != slots_.end()) {
      const std::vector<double> values = widen(mask->type, contents(*mask));
      slot.mask.clear();
      for (const double value : values) {
        slot.mask.push_back(value != 0);
      }
    }
  }
}

void ProblemData::leave_out_masked(const Slot& slot, std::vector<double>& values) {
  for (std::size_t i = 0; i < slot.mask.size(); ++i) {
    values[i] = slot.mask[i] ? values[i] : 0;
  }
}

// Elements that do not count are 0 on both sides.
std::vector<double> ProblemData::compared(const Slot& slot, std::vector<double> values) {
  leave_out_masked(slot, values);
  if (slot.argument->compare == Comparison::any_order) {
    std::ranges::sort(values, [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  } else if (slot.argument->compare == Comparison::sum) {
    return {std::accumulate(values.begin(), values.end(), 0.0)};
  }
  return values;
}

void ProblemData::take_answers() {
  for (Slot& slot : slots_) {
    if (!slot.answer.empty()) {
      slot.expected = compared(slot, widen(*slot.argument, slot.type, slot.answer));
      slot.slack.clear();
    }
  }
}

bool ProblemData::accepts(const Slot& slot, double value) {
  if (std::isnan(value)) {
    return std::any_of(slot.expected.begin(), slot.expected.end(),
                       [](double expected) { return std::isnan(expected); });
  }
  std::size_t at = 0;
  return std::any_of(slot.expected.begin(), slot.expected.end(), [&](double expected) {
    const double error = slot.bound->error(value, expected, at);
    return error <= slot.bound->tolerance(value, expected, at++);
  });
}

bool ProblemData::accepts_everywhere(const Slot& slot, double value) {
  std::size_t at = 0;
  return std::all_of(slot.expected.begin(), slot.expected.end(), [&](double expected) {
    const double error = slot.bound->error(value, expected, at);
    return error <= slot.bound->tolerance(value, expected, at++);
  });
}

std::vector<std::string> ProblemData::weak_checks() const {
  constexpr std::size_t kFew = 8;  // so few elements may be the same by chance
  std::vector<std::string> found;
  for (const Slot& slot : slots_) {
    const std::vector<double>& expected = slot.expected;
    if (!is_output(*slot.argument) || expected.empty()) {
      continue;
    }
    const std::string& name = slot.argument->name;
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
    if (std::all_of(expected.begin(), expected.end(), [](double value) { return value == 0; })) {
      found.push_back(fmt::format(
          "the reference's output '{}' is 0 everywhere, so a kernel that writes only zeros passes; do its inputs have "
          "the right fill?",
          name));
    } else if (accepts_everywhere(slot, 0)) {
      found.push_back(fmt::format(
          "the tolerance of output '{}' is so large that a kernel that writes only zeros passes; make it smaller",
          name));
    } else if (expected.size() >= kFew && accepts_everywhere(slot, *low + (*high - *low) / 2)) {
      found.push_back(fmt::format(
          "the reference's output '{}' is the same everywhere within its tolerance, so a kernel that writes only this "
          "value passes; do its inputs have the right fill?",
          name));
    }
  }
  return found;
}

// The naive kernel has its outputs, and what it adds to, in float64. The kernel itself, where it is the reference, has
// them as they are.
std::size_t ProblemData::result_bytes(const Slot& slot) const {
  return reference_is_itself() ? slot.buffer.bytes() : slot.count * sizeof(double);
}

std::vector<double> ProblemData::result_values(const Slot& slot, std::span<const std::byte> bytes) const {
  return reference_is_itself() ? widen(*slot.argument, slot.type, bytes) : widen(ElementType::float64, bytes);
}

std::vector<double> ProblemData::poisoned_result(const Slot& slot, std::uint8_t poison) const {
  return reference_is_itself() ? poisoned_values(*slot.argument, slot.type, poison)
                               : poisoned_values({}, ElementType::float64, poison);
}

// Holds what a naive kernel gets after the arguments of the kernel: where it works, and where it writes slack.
struct ProblemData::MoreBuffers {
  std::vector<Buffer> buffers{};
  std::vector<void*> addresses{};
  Slot* slack = nullptr;  ///< of which the last one is

  MoreBuffers(Device& device, const BoundSpace& space, const Config& baseline, std::vector<Slot>& slots) {
    const Reference& reference = space.space().reference;
    const auto add = [&](std::size_t count) {
      addresses.push_back(buffers.emplace_back(device.allocate(count * sizeof(double))).data());
    };
    if (reference.workspace) {
      add(static_cast<std::size_t>(space.value(*reference.workspace, baseline)));
    }
    for (Slot& slot : slots) {
      if (slot.argument->name == reference.slack) {
        add(slot.count);
        slack = &slot;
      }
    }
  }
};

ProblemData::Results ProblemData::launch_reference(LaunchArguments& arguments, std::vector<Buffer>& results,
                                                   MoreBuffers& more, std::uint8_t poison) {
  std::size_t next = 0;
  for (const Slot& slot : slots_) {
    if (!is_output(*slot.argument)) {
      continue;
    }
    const Buffer& result = results[next++];
    if (!is_input(*slot.argument)) {
      device_->fill(result, poison);
    } else if (reference_is_itself()) {
      device_->upload(result, contents(slot));
    } else {
      const std::vector<double> initial = widen(*slot.argument, slot.type, contents(slot));
      device_->upload(result, std::as_bytes(std::span(initial)));
    }
  }
  arguments.refill_scratch(*device_, poison);
  for (std::size_t i = 0; i < more.buffers.size(); ++i) {
    device_->fill(more.buffers[i], poison);
  }
  if (const std::string missing = arguments.copy_variables(*device_, reference_); !missing.empty()) {
    throw ReferenceError(
        fmt::format("the code of {} has no variable '{}' that is as large as its buffer; declare it __constant__ or "
                    "__device__, neither static nor in a namespace without a name, and read it",
                    reference_text(), missing));
  }
  const std::span<const Launch> launches = reference_launches(space_->space());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    std::vector<void*> pointers(arguments.pointers(i).begin(), arguments.pointers(i).end());
    for (void*& address : more.addresses) {
      pointers.push_back(&address);
    }
    device_->launch(reference_[i], space_->geometry(launches[i], baseline_), pointers);
  }
  device_->synchronize();
  if (more.slack != nullptr) {
    more.slack->slack.resize(more.slack->count);
    device_->download(std::as_writable_bytes(std::span(more.slack->slack)), more.buffers.back());
  }
  Results found;
  for (const Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      std::vector<std::byte> bytes(result_bytes(slot));
      device_->download(bytes, results[found.size()]);
      leave_out_masked(slot, found.emplace_back(result_values(slot, bytes)));
    }
  }
  return found;
}

void ProblemData::compute_reference() {
  std::vector<Buffer> results;
  std::vector<NamedPointer> named;
  for (Slot& slot : slots_) {
    void* data = slot.buffer.data();
    slot.expected = {};  // those of earlier inputs, before there are others beside them
    if (is_output(*slot.argument)) {
      if (slot.expected_there && !reference_is_itself()) {
        results.push_back(std::move(*slot.expected_there));
        slot.expected_there.reset();
      } else {
        results.push_back(device_->allocate(result_bytes(slot)));
      }
      data = results.back().data();
    }
    named.push_back({slot.argument->name, data});
  }
  LaunchArguments arguments(*device_, *space_, baseline_, named, reference_launches(space_->space()));
  MoreBuffers more(*device_, *space_, baseline_, slots_);
  Results found = launch_reference(arguments, results, more, kPoisons.front());
  std::size_t next = 0;
  const bool suspicious = std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    const bool output = is_output(*slot.argument);
    return output && has_poison(found[next++], poisoned_result(slot, kPoisons.front())) && slot.answer.empty();
  });
  if (suspicious) {
    Results again = launch_reference(arguments, results, more, kPoisons.back());
    require_written(found, again);
    found = std::move(again);
  }
  next = 0;
  for (Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      slot.expected = compared(slot, std::move(found[next]));
      if (!reference_is_itself()) {
        slot.expected_there = std::move(results[next]);
      }
      ++next;
    }
  }
  if (reference_is_itself() && std::ranges::all_of(slots_, [](const Slot& slot) { return slot.answer.empty(); })) {
    require_changes();
  }
}

void ProblemData::require_written(const Results& first, const Results& second) const {
  std::size_t next = 0;
  for (const Slot& slot : slots_) {
    if (!is_output(*slot.argument)) {
      continue;
    }
    const std::vector<double> poison = poisoned_result(slot, kPoisons.front());
    const std::vector<double> other_poison = poisoned_result(slot, kPoisons.back());
    const std::vector<double>& before = first[next];
    const std::vector<double>& after = second[next++];
    if (!slot.answer.empty()) {
      continue;
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t kind = i % poison.size();
      const bool unwritten =
          !is_input(*slot.argument) && is_poisoned(before[i], poison[kind]) && after[i] == other_poison[kind];
      if (unwritten) {
        throw ReferenceError(fmt::format(
            "{} does not write {}, so that nothing can be compared with it; make it write every element, or give "
            "the buffer access inout",
            reference_text(), name_of_number(*slot.argument, i)));
      }
      if (std::isnan(before[i]) && !std::isnan(after[i])) {
        throw ReferenceError(
            fmt::format("{} computes {} from memory that nothing has written, so that nothing can "
                        "be compared with it",
                        reference_text(), name_of_number(*slot.argument, i)));
      }
    }
  }
}

// Where all outputs are also inputs, a kernel that does nothing would agree with a reference that does nothing.
void ProblemData::require_changes() {
  bool any = false;
  for (const Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      if (!is_input(*slot.argument) ||
          slot.expected != compared(slot, widen(*slot.argument, slot.type, contents(slot)))) {
        return;
      }
      any = any || slot.count > 0;
    }
  }
  if (any) {
    throw ReferenceError(
        fmt::format("{} leaves every output as it was, so that nothing can be compared with it; is an input filled "
                    "with values that "
                    "change nothing?",
                    reference_text()));
  }
}

std::string ProblemData::reference_text() const { return text_of_reference(space_->space(), baseline_); }

void ProblemData::poison_outputs(std::uint8_t poison) {
  for (const Slot& slot : slots_) {
    if (slot.argument->access == Access::inout) {
      refill(slot);
    } else if (is_output(*slot.argument)) {
      device_->fill(slot.buffer, poison);
    }
  }
}

void ProblemData::restore_inputs() {
  for (const Slot& slot : slots_) {
    if (is_input(*slot.argument) && device_->checksum(slot.buffer) != slot.checksum) {
      refill(slot);
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
      check.where = fmt::format("{}: {} instead of {}", text_of_element(*slot.argument, found.at), found.value,
                                slot.expected[found.at]);
    }
  }
  return check;
}

ProblemData::Results ProblemData::outputs() {
  Results found;
  for (const Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      found.push_back(compared(slot, widen(*slot.argument, slot.type, contents(slot))));
    }
  }
  return found;
}

ProblemData::Results ProblemData::expected() const {
  Results found;
  for (const Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      found.push_back(slot.expected);
    }
  }
  return found;
}

std::vector<ErrorBound> ProblemData::bounds() const {
  std::vector<ErrorBound> found;
  for (const Slot& slot : slots_) {
    if (is_output(*slot.argument)) {
      found.push_back(slot.bound.value());
    }
  }
  return found;
}

bool ProblemData::agrees_with(const Results& others) {
  const Results own = outputs();
  std::size_t next = 0;
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    if (!is_output(*slot.argument)) {
      return true;
    }
    const std::vector<double>& other = others[next];
    return ErrorBound(*space_, number_types(*slot.argument, slot.type), other).compare(own[next++], other).within;
  });
}

ErrorBound::Verdict ProblemData::compare(const Slot& slot) {
  if (!is_compared_in_place(*slot.argument)) {
    return slot.bound->compare(compared(slot, widen(slot.type, contents(slot))), slot.expected);
  }
  ErrorBound::Verdict found;
  if (slot.expected_there) {
    found.error = device_->largest_error(slot.buffer, slot.type, *slot.expected_there, *slot.bound->limits());
    if (std::isfinite(found.error)) {
      return found;
    }
    found = {};
  }
  if (is_mixed(*slot.argument)) {
    return slot.bound->compare(widen(*slot.argument, slot.type, contents(slot)), slot.expected);
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
  if (!keeps_expected_ || !is_compared_in_place(*slot.argument) || !device_->compares(slot.type) ||
      !slot.bound->limits() || !has_room()) {
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
