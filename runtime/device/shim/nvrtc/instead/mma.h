#pragma once

#if __CUDA_ARCH__ >= 700
#include_next <mma.h>
#else
#include "../../mma.h"
#endif
