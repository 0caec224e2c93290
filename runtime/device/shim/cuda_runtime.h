#pragma once

// What NVCC and NVRTC make available before a kernel's first line, for the emulated device.

// Each includes what it needs of the others: their order here means nothing.
#include "assert.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "pascaline/atomics.h"
#include "pascaline/integer.h"
#include "pascaline/language.h"
#include "pascaline/math.h"
#include "pascaline/sync.h"
#include "pascaline/textures.h"
#include "pascaline/vectors.h"

// The newest that compiles for sm_61 without a warning.
#define CUDART_VERSION 11080
