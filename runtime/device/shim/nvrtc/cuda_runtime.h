#pragma once

// Where CUDA's own headers are not here: NVRTC knows what of them a kernel needs.
