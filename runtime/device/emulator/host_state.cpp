#include "runtime/device/emulator/host_state.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"

namespace pascaline {

void HostState::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(why);
}

void HostState::clear() {
  const std::lock_guard lock(mutex_);
  failure_.reset();
}

std::optional<std::string> HostState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void HostState::check_usable(const char* doing) const {
  if (const auto why = failure()) {
    throw HostDeviceError(fmt::format("cannot {}: the host device needs a reset after this failure: {}", doing, *why));
  }
}

void HostState::check_not_recording(const char* doing, bool this_thread_only) const {
  if (this_thread_only ? recorder_.is_this_one() : recorder_.any()) {
    throw HostDeviceError(refused_in_recording(doing));
  }
}

}  // namespace pascaline
