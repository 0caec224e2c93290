#pragma once

__device__ inline int helper_value() { return 42; }
