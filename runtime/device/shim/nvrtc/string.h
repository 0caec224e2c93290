#pragma once

// NVRTC knows memcpy and memset.
