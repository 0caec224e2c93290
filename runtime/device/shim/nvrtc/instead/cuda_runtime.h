#pragma once

// NVRTC knows what of it a kernel needs.
#include "cuda_runtime_api.h"
