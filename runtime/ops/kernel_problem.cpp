#include "runtime/ops/kernel_problem.hpp"

namespace pascaline::ops {

Problem KernelProblem::named() const {
  Problem problem;
  problem.kernel = kernel_.text();
  for (std::size_t i = 0; i < dimensions_; ++i) {
    problem.dimensions.emplace_back(dimension_names_[i], values_[i]);
  }
  for (std::size_t i = 0; i < types_count_; ++i) {
    problem.types.emplace_back(type_names_[i], types_[i]);
  }
  return problem;
}

}  // namespace pascaline::ops
