#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "pascaline/language.h"

// Calls a kernel with the arguments of a launch.
namespace pascaline_host {

/// One kernel's signature: its parameters' number and sizes, and a call that reads each from where it points.
template <typename Function>
struct Signature;

template <typename... Parameters>
struct Signature<void (*)(Parameters...)> {
  static constexpr unsigned kCount = sizeof...(Parameters);
  static constexpr unsigned kBytes[kCount + 1] = {sizeof(Parameters)..., 0};

  static void call(void (*kernel)(Parameters...), void* const* arguments) {
    spread(kernel, arguments, std::index_sequence_for<Parameters...>());
  }

 private:
  template <std::size_t... I>
  static void spread(void (*kernel)(Parameters...), [[maybe_unused]] void* const* arguments,
                     std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<Parameters>*>(arguments[I])...);
  }
};

/// The type of a function without its default arguments, which another declaration must not repeat.
template <typename Function>
struct Undefaulted;

template <typename Result, typename... Parameters>
struct Undefaulted<Result(Parameters...)> {
  using Type = Result(Parameters...);
};

inline ThreadView** current_slot() { return &current; }

}  // namespace pascaline_host

#ifdef PASCALINE_ADDRESS_SANITIZER
#define PASCALINE_SANITIZED true
#else
#define PASCALINE_SANITIZED false
#endif

template <typename... Rest>
constexpr int pascaline_first_bound(int threads, Rest...) {
  return threads;
}

/// Does not compile where the launch bounds of a kernel are less than the threads of its launches, which the unit
/// defines as PASCALINE_BLOCK_THREADS.
template <int Bounds, int Threads>
struct PascalineLaunchBounds {
  static_assert(Threads <= Bounds, "the block is larger than the launch bounds");
  static constexpr bool pascaline_allow = true;
};

#define PASCALINE_LAUNCH_BOUNDS(...) \
  static_assert(                     \
      ::PascalineLaunchBounds<::pascaline_first_bound(__VA_ARGS__), PASCALINE_BLOCK_THREADS>::pascaline_allow, "");

/// Exports the kernel `function` of this translation unit.
#define PASCALINE_HOST_KERNEL(function)                                                           \
  using PascalineSignature = ::pascaline_host::Signature<decltype(&function)>;                    \
  static void pascaline_run(void* const* pascaline_arguments) {                                   \
    PascalineSignature::call(&function, pascaline_arguments);                                     \
  }                                                                                               \
  extern "C" __attribute__((visibility("default"), used))                                         \
  const ::pascaline_host::KernelEntry pascaline_host_kernel = {                                   \
      ::pascaline_host::kAbiVersion, PascalineSignature::kCount,      PascalineSignature::kBytes, \
      PASCALINE_SANITIZED,           &::pascaline_host::current_slot, &pascaline_run};
