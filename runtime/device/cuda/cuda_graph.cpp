#include "runtime/device/cuda/cuda_graph.hpp"

namespace pascaline {

CapturedGraph::CapturedGraph(CudaContext& context, const std::function<void()>& work) : driver_(context.driver()) {
  context.make_current();
  driver_(driver_.capture_begin, context.stream(), kCuCaptureThreadLocal);
  try {
    work();
  } catch (...) {
    // The stream must not go on capturing, and what was captured is of no use.
    driver_.capture_end.address(context.stream(), &graph_);
    if (graph_ != nullptr) {
      driver_.graph_destroy.address(graph_);
    }
    throw;
  }
  driver_(driver_.capture_end, context.stream(), &graph_);
}

CapturedGraph::~CapturedGraph() { driver_.graph_destroy.address(graph_); }

CuGraphExec CapturedGraph::instantiate() const {
  CuGraphExec ready = nullptr;
  driver_(driver_.graph_instantiate, &ready, graph_, nullptr, nullptr, std::size_t{0});
  return ready;
}

bool CapturedGraph::update(CuGraphExec ready) const {
  CuGraphNode culprit = nullptr;
  int reason = 0;
  const CuResult result = driver_.graph_update.address(ready, graph_, &culprit, &reason);
  if (result == kCuGraphUpdateFailure) {
    return false;
  }
  driver_.check(driver_.graph_update.symbol, result);
  return true;
}

}  // namespace pascaline
