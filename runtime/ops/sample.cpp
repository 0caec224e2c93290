#include "runtime/ops/sample.hpp"

namespace pascaline::ops {

bool Sample::check() const {
  const Checks check(kName);
  const Extent vocabulary{"VOCABULARY", logits.shape[0]};
  check.dense({"logits", &logits}, {ElementType::float32}, {vocabulary});
  check.dense({"settings", &settings}, {ElementType::float32}, {{"5", 5}});
  check.dense({"top_k", &top_k}, {ElementType::int32}, {{"1", 1}});
  check.dense({"generator", &generator}, {ElementType::int64}, {{"2", 2}});
  check.dense({"seen", &seen}, {ElementType::int32}, {vocabulary});
  check.dense({"token", &token}, {ElementType::int32}, {{"1", 1}});
  check.dense({"probability", &probability}, {ElementType::float32}, {{"1", 1}});
  check.at_least_one(vocabulary);
  check.require(vocabulary.value <= kMaxVocabulary, "VOCABULARY is above 2^20; take fewer logits");
  check.require(reinterpret_cast<std::uintptr_t>(seen.data) % kAlignment == 0,
                "seen must be aligned to 16 bytes: its counts are read as vectors");
  return true;
}

KernelProblem Sample::problem() const { return {"sample", {{"VOCABULARY", logits.shape[0]}}}; }

}  // namespace pascaline::ops
