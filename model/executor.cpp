#include "model/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/device_failure.hpp"

namespace pascaline {

Executor::Executor(Dispatcher& dispatcher, std::FILE* warnings)
    : device_(&dispatcher.device()), memory_(&dispatcher.memory()), dispatcher_(&dispatcher), warnings_(warnings) {}

Executor::Executor(Device& host, DeviceMemory* memory)
    : device_(&host), memory_(memory != nullptr ? memory : &host.memory()) {
  if (host.info().kind != DeviceKind::emulator) {
    throw Error(fmt::format("operations on the processor need memory of the host, not of {}", host.info().id));
  }
}

Executor::Executor(ObserveOnly /*mode*/, Device& device, DeviceMemory& memory)
    : device_(&device), memory_(&memory), observes_only_(true) {}

bool Executor::fell_back(std::string_view operation) const noexcept {
  return std::find(fallen_back_.begin(), fallen_back_.end(), operation) != fallen_back_.end();
}

// Called where a launch failed: throws on what the processor could not do better.
void Executor::require_replaceable(const Error& error) const {
  if (is_device_failure(error) || device_->recording()) {
    throw;
  }
}

// What was started before must have ended well: if it did not, this operation is not at fault.
void Executor::wait_for_device(const char* operation) const {
  if (device_->recording()) {
    throw Error(fmt::format("{} runs on the processor, which cannot be recorded", operation));
  }
  device_->synchronize();
}

// A bundle that was made for other weights lacks many operations: that is one warning.
void Executor::fall_back(const char* operation, const std::string& reason, bool lacks_code) {
  fallen_back_.emplace_back(operation);
  if (lacks_code) {
    if (!std::exchange(told_of_lacking_, true)) {
      warn(
          fmt::format("{} runs on the processor from now on, as does all else that the bundle lacks; was it made for "
                      "other weights or sizes? {}",
                      operation, clean_line(reason)));
    }
    return;
  }
  warn(fmt::format("{} cannot run on {} and runs on the processor from now on: {}", operation, device_->info().id,
                   clean_line(reason)));
}

void Executor::warn(const std::string& text) const {
  if (warnings_ != nullptr) {
    fmt::print(warnings_, "pascaline: warning: {}\n", text);
  }
}

void Executor::warn_once(std::string_view about, const std::string& text) {
  if (std::find(told_of_.begin(), told_of_.end(), about) == told_of_.end()) {
    told_of_.emplace_back(about);
    warn(text);
  }
}

}  // namespace pascaline
