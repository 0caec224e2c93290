#include "runtime/gpu/cuda/cuda_graph.hpp"

namespace pascaline {

CuGraphExec capture_graph(CudaContext& context, const std::function<void()>& work) {
  const DriverApi& driver = context.driver();
  context.make_current();
  driver(driver.capture_begin, context.stream(), kCuCaptureThreadLocal);
  CuGraph graph = nullptr;
  try {
    work();
  } catch (...) {
    // The stream must not go on capturing, and what was captured is of no use.
    driver.capture_end.address(context.stream(), &graph);
    if (graph != nullptr) {
      driver.graph_destroy.address(graph);
    }
    throw;
  }
  driver(driver.capture_end, context.stream(), &graph);
  CuGraphExec ready = nullptr;
  const CuResult result = driver.graph_instantiate.address(&ready, graph, nullptr, nullptr, 0);
  driver.graph_destroy.address(graph);
  driver.check(driver.graph_instantiate.symbol, result);
  return ready;
}

}  // namespace pascaline
