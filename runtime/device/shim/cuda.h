#pragma once

#include "cuda_runtime.h"

#define CUDA_VERSION CUDART_VERSION
