#pragma once

// CUDA's own is for the host and needs the host's headers.
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
