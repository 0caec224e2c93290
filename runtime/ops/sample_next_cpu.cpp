#include "runtime/ops/sample_next.hpp"

namespace pascaline::ops {

void SampleNext::compute() const {
  sample.compute();
  advance.compute();
  gather().compute();
}

}  // namespace pascaline::ops
