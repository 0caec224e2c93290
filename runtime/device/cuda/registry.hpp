#pragma once

#include <cstdint>
#include <unordered_map>

namespace pascaline {

/// Buffers and kernels carry numbers, not the driver's handles: the driver gives addresses out again after a reset,
/// and what an old Buffer releases must not be a new one's memory.
template <typename Handle>
class Registry {
 public:
  void* add(Handle handle) {
    live_.emplace(++last_, handle);
    return reinterpret_cast<void*>(last_);
  }
  [[nodiscard]] const Handle* find(const void* number) const noexcept {
    const auto found = live_.find(reinterpret_cast<std::uintptr_t>(number));
    return found == live_.end() ? nullptr : &found->second;
  }
  void erase(const void* number) noexcept { live_.erase(reinterpret_cast<std::uintptr_t>(number)); }
  void clear() noexcept { live_.clear(); }
  [[nodiscard]] const std::unordered_map<std::uintptr_t, Handle>& live() const noexcept { return live_; }

 private:
  std::unordered_map<std::uintptr_t, Handle> live_;
  std::uintptr_t last_ = 0;
};

}  // namespace pascaline
