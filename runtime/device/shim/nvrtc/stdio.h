#pragma once

// NVRTC knows printf.
