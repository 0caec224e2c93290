#pragma once

#include <cstddef>

namespace pascaline {

/// AddressSanitizer's interface where its runtime is in this process, linked or preloaded; otherwise null functions.
struct SanitizerHooks {
  void (*poison)(const volatile void* start, std::size_t bytes) = nullptr;
  void (*unpoison)(const volatile void* start, std::size_t bytes) = nullptr;
  void (*start_switch)(void** fake_stack, const void* stack, std::size_t bytes) = nullptr;
  void (*finish_switch)(void* fake_stack, const void** old_stack, std::size_t* old_bytes) = nullptr;

  [[nodiscard]] bool present() const noexcept { return poison != nullptr; }
};

[[nodiscard]] const SanitizerHooks& sanitizer_hooks() noexcept;

}  // namespace pascaline
