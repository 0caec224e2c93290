// Without #pragma once: like the C header, it defines assert again at every inclusion.
#include "pascaline/language.h"

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define PASCALINE_TEXT_(text) #text
#define PASCALINE_TEXT(text) PASCALINE_TEXT_(text)
#define assert(condition) \
  ((condition) ? (void)0 : ::pascaline_fail(__FILE__ ":" PASCALINE_TEXT(__LINE__) ": assertion failed: " #condition))
#endif
