#include "runtime/ops/launch.hpp"

namespace pascaline::ops {

void launch(Dispatcher& dispatcher, const KernelProblem& problem, std::span<void* const> buffers) {
  const Prepared* prepared =
      dispatcher.find(dispatcher.kernel(problem.kernel()), problem.dimensions(), problem.types());
  if (prepared == nullptr) {
    prepared = &dispatcher.prepare(problem.named());
  }
  dispatcher.launch(*prepared, buffers);
}

}  // namespace pascaline::ops
