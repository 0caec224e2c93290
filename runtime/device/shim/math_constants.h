#pragma once

#include "pascaline/integer.h"

#define CUDART_INF_F (__builtin_inff())
#define CUDART_NAN_F (__int_as_float(0x7fffffff))
#define CUDART_MAX_NORMAL_F 3.402823466e+38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_PI_F 3.141592654f
#define CUDART_LOG2E_F 1.442695041f
#define CUDART_LN2_F 0.693147181f
#define CUDART_SQRT_2_F 1.414213562f
#define CUDART_INF (__builtin_inf())
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_LOG2E 1.4426950408889634e+0
#define CUDART_LN2 6.9314718055994529e-1
