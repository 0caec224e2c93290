#pragma once

#include <functional>

#include "runtime/device/cuda/cuda_context.hpp"

namespace pascaline {

/// What some work queues on a context's stream, captured instead of run.
class CapturedGraph {
 public:
  /// Throws what `work` throws, and CudaError.
  CapturedGraph(CudaContext& context, const std::function<void()>& work);
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph();

  /// Makes it ready to launch; the caller destroys that. Throws CudaError.
  [[nodiscard]] CuGraphExec instantiate() const;
  /// Lets `ready` do what was captured, from its next launch on; false, with `ready` as it was, if the two have not the
  /// same form. Throws CudaError.
  [[nodiscard]] bool update(CuGraphExec ready) const;

 private:
  const DriverApi& driver_;
  CuGraph graph_ = nullptr;
};

}  // namespace pascaline
