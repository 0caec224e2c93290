#pragma once

// NVRTC knows what of it a kernel needs.
