#pragma once

// <cmath> without the special functions that C++17 added to it, which no kernel calls: reading them takes longer than
// reading all other headers together.

#include <cstddef>  // how libstdc++ is set up

#ifdef _GLIBCXX_USE_STD_SPEC_FUNCS
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#define _GLIBCXX_USE_STD_SPEC_FUNCS 0
#endif

#include <math.h>

#include <cmath>
