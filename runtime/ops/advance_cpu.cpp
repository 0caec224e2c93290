#include <algorithm>

#include "runtime/ops/advance.hpp"

namespace pascaline::ops {

void Advance::compute() const {
  for (const TensorView* tensor : {&length, &slots, &positions}) {
    auto* values = static_cast<std::int32_t*>(tensor->data);
    std::for_each_n(values, tensor->shape[0], [](std::int32_t& value) { ++value; });
  }
}

}  // namespace pascaline::ops
