#include "runtime/ops/gather.hpp"

namespace pascaline::ops {

void check_table(const Checks& check, const TensorView& table, const Extent& vocabulary, const Extent& width) {
  check.dense({"table", &table},
              {ElementType::float32, ElementType::float16, ElementType::bfloat16, ElementType::float16x,
               ElementType::q8_0, ElementType::q4_0, ElementType::q4_1, ElementType::q4_k, ElementType::q6_k,
               ElementType::int8_row, ElementType::int4_g128},
              {vocabulary, width});
}

bool Gather::check() const {
  const Checks check(kName);
  const Extent vocabulary{"VOCABULARY", table.shape[0]};
  const Extent width{"WIDTH", table.shape[1]};
  const Extent tokens{"TOKENS", indices.shape[0]};
  check_table(check, table, vocabulary, width);
  check.dense({"indices", &indices}, {ElementType::int32}, {tokens});
  check.dense({"y", &y}, {ElementType::float32, ElementType::float16}, {tokens, width});
  if (is_empty(y)) {
    return false;
  }
  check.at_least_one(vocabulary);
  return true;
}

KernelProblem Gather::problem() const {
  return {"gather",
          {{"TOKENS", y.shape[0]}, {"WIDTH", y.shape[1]}, {"VOCABULARY", table.shape[0]}},
          {{"STORAGE", y.type}, {"TABLE", table.type}}};
}

}  // namespace pascaline::ops
