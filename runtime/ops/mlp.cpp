#include "runtime/ops/mlp.hpp"

#include "runtime/ops/matmul.hpp"
#include "runtime/ops/weight_checks.hpp"

namespace pascaline::ops {

bool Mlp::takes(ElementType gate_up, ElementType down) noexcept {
  return is_packed_format(gate_up) ? is_packed_format(down)
                                   : !is_packed_format(down) && size_of(gate_up) == size_of(down);
}

bool Mlp::check() const {
  const Checks check(kName);
  const Extent m{"M", x.shape[0]};
  const Extent hidden{"HIDDEN", x.shape[1]};
  const Extent intermediate{"INTERMEDIATE", down.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {m, hidden});
  static_assert(kFewRows == 8);
  check.require(m.value <= kFewRows, "there are more than 8 rows of x");
  check.dense({"norm", &norm}, {ElementType::float32}, {hidden});
  check_epsilon(check, epsilon);
  check_weight(check, {"gate_up", &gate_up}, {"2*INTERMEDIATE", 2 * intermediate.value}, hidden);
  check_weight(check, {"down", &down}, hidden, intermediate);
  check.require(
      takes(gate_up.type, down.type),
      "gate_up and down have neither elements of the same size nor packed formats both; run them one after the other");
  check.dense({"C", &c}, {x.type}, {m, hidden});
  if (is_empty(c)) {
    return false;
  }
  check.at_least_one(intermediate);
  return true;
}

KernelProblem Mlp::problem() const {
  return {"mlp",
          {{"M", x.shape[0]}, {"HIDDEN", x.shape[1]}, {"INTERMEDIATE", down.shape[1]}, {"EPSILON", epsilon.nano}},
          {{"STORAGE", x.type}, {"WEIGHT", gate_up.type}, {"DOWN", down.type}}};
}

}  // namespace pascaline::ops
