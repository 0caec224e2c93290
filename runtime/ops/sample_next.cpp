#include "runtime/ops/sample_next.hpp"

namespace pascaline::ops {

bool SampleNext::check() const {
  (void)sample.check();
  (void)advance.check();
  const Checks check(kName);
  const Extent width{"WIDTH", next.shape[1]};
  check_table(check, table, {"VOCABULARY", sample.logits.shape[0]}, width);
  check.dense({"next", &next}, {ElementType::float32}, {{"1", 1}, width});
  check.at_least_one(width);
  return true;
}

KernelProblem SampleNext::problem() const {
  return {"sample_next", {{"VOCABULARY", sample.logits.shape[0]}, {"WIDTH", next.shape[1]}}, {{"TABLE", table.type}}};
}

}  // namespace pascaline::ops
