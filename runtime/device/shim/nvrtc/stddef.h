#pragma once

// NVRTC knows size_t and ptrdiff_t.
namespace std {
using ::ptrdiff_t;
using ::size_t;
using nullptr_t = decltype(nullptr);
}  // namespace std

using max_align_t = long double;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) (reinterpret_cast<size_t>(&static_cast<type*>(nullptr)->member))
#endif
