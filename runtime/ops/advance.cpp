#include "runtime/ops/advance.hpp"

namespace pascaline::ops {

bool Advance::check() const {
  const Checks check(kName);
  check.dense({"length", &length}, {ElementType::int32}, {{"1", 1}});
  check.dense({"slots", &slots}, {ElementType::int32}, {{"1", 1}});
  check.dense({"positions", &positions}, {ElementType::int32}, {{"3", 3}, {"1", 1}});
  return true;
}

KernelProblem Advance::problem() const { return KernelProblem("advance"); }

}  // namespace pascaline::ops
