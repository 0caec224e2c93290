#pragma once

namespace pascaline {

/// Whether this code is compiled with AddressSanitizer, which reserves more address space than any cap leaves and
/// answers a wrong access itself. GCC tells by a macro, Clang by a feature.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace pascaline
