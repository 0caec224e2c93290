#include "runtime/ops/gather.hpp"

#include "runtime/ops/weight_checks.hpp"

namespace pascaline::ops {

void check_table(const Checks& check, const TensorView& table, const Extent& vocabulary, const Extent& width) {
  check.dense({"table", &table}, kTableTypes, {vocabulary, width});
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
