#include "runtime/ops/sample_next.hpp"

namespace pascaline::ops {

bool SampleNext::check() const {
  (void)sample().check();
  (void)advance().check();
  const Checks check(kName);
  const Extent vocabulary{"VOCABULARY", logits.shape[0]};
  const Extent width{"WIDTH", next.shape[1]};
  check.dense({"table", &table},
              {ElementType::float32, ElementType::float16, ElementType::bfloat16, ElementType::float16x,
               ElementType::q8_0, ElementType::q4_0, ElementType::q4_1, ElementType::q4_k, ElementType::q6_k,
               ElementType::int8_row, ElementType::int4_g128},
              {vocabulary, width});
  check.dense({"next", &next}, {ElementType::float32}, {{"1", 1}, width});
  check.at_least_one(width);
  return true;
}

KernelProblem SampleNext::problem() const {
  return {"sample_next", {{"VOCABULARY", logits.shape[0]}, {"WIDTH", next.shape[1]}}, {{"TABLE", table.type}}};
}

}  // namespace pascaline::ops
