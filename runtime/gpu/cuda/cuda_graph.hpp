#pragma once

#include <functional>

#include "runtime/gpu/cuda/cuda_context.hpp"

namespace pascaline {

/// What `work` queues on the context's stream, captured instead of run and made ready to launch; the caller destroys
/// it. Throws what `work` throws, and CudaError.
[[nodiscard]] CuGraphExec capture_graph(CudaContext& context, const std::function<void()>& work);

}  // namespace pascaline
