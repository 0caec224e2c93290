#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "runtime/device/recording_thread.hpp"

namespace pascaline {

/// What an emulated device and its memory both go by: whether a kernel failed, and whether launches are recorded. Any
/// thread may ask.
class EmulatedState {
 public:
  /// Keeps why a kernel failed.
  void fail(std::string why);
  void clear();
  [[nodiscard]] std::optional<std::string> failure() const;
  /// Throws EmulatorError saying that it cannot do `doing`, if a kernel failed.
  void check_usable(const char* doing) const;
  /// Throws EmulatorError if anyone is recording, or, with `this_thread_only`, the calling thread.
  void check_not_recording(const char* doing, bool this_thread_only = false) const;
  [[nodiscard]] RecordingThread& recorder() noexcept { return recorder_; }
  [[nodiscard]] const RecordingThread& recorder() const noexcept { return recorder_; }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> failure_;
  RecordingThread recorder_;
};

}  // namespace pascaline
