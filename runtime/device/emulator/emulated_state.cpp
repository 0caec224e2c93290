#include "runtime/device/emulator/emulated_state.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"

namespace pascaline {

void EmulatedState::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(why);
}

void EmulatedState::clear() {
  const std::lock_guard lock(mutex_);
  failure_.reset();
}

std::optional<std::string> EmulatedState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void EmulatedState::check_usable(const char* doing) const {
  if (const auto why = failure()) {
    throw EmulatorError(
        fmt::format("cannot {}: the emulated device needs a reset after this failure: {}", doing, *why));
  }
}

void EmulatedState::check_not_recording(const char* doing, bool this_thread_only) const {
  if (this_thread_only ? recorder_.is_this_one() : recorder_.any()) {
    throw EmulatorError(refused_in_recording(doing));
  }
}

}  // namespace pascaline
