#pragma once

#include "stddef.h"

// NVRTC knows malloc, free and abs.
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
