#include "runtime/ops/sample.hpp"

#include "runtime/ops/checked.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {

bool checked_sample(const SampleArguments& given) {
  const Checks check("sample");
  const Extent vocabulary{"VOCABULARY", given.logits.shape[0]};
  check.dense({"logits", &given.logits}, {ElementType::float32}, {vocabulary});
  check.dense({"settings", &given.settings}, {ElementType::float32}, {{"4", 4}});
  check.dense({"top_k", &given.top_k}, {ElementType::int32}, {{"1", 1}});
  check.dense({"generator", &given.generator}, {ElementType::int64}, {{"2", 2}});
  check.dense({"seen", &given.seen}, {ElementType::int32}, {vocabulary});
  check.dense({"token", &given.token}, {ElementType::int32}, {{"1", 1}});
  check.dense({"probability", &given.probability}, {ElementType::float32}, {{"1", 1}});
  check.at_least_one(vocabulary);
  check.require(vocabulary.value <= kMaxVocabulary, "VOCABULARY is above 2^20; take fewer logits");
  const Operand logits{"logits", &given.logits};
  const Operand settings{"settings", &given.settings};
  const Operand top_k{"top_k", &given.top_k};
  const Operand generator{"generator", &given.generator};
  const Operand seen{"seen", &given.seen};
  const Operand token{"token", &given.token};
  const Operand probability{"probability", &given.probability};
  check.addresses({logits, settings, top_k, generator, seen, token, probability});
  check.require(reinterpret_cast<std::uintptr_t>(given.seen.data) % kAlignment == 0,
                "seen must be aligned to 16 bytes: its counts are read as vectors");
  check.apart(generator, {logits, settings, top_k, seen, token, probability});
  check.apart(seen, {logits, settings, top_k, token, probability});
  check.apart(token, {logits, settings, top_k, probability});
  check.apart(probability, {logits, settings, top_k});
  return true;
}

void sample(Dispatcher& dispatcher, const SampleArguments& given) {
  if (!checked_sample(given)) {
    return;
  }
  const NamedDimension dimensions[] = {{"VOCABULARY", given.logits.shape[0]}};
  void* const buffers[] = {given.logits.data, given.settings.data, given.top_k.data,      given.generator.data,
                           given.seen.data,   given.token.data,    given.probability.data};
  launch(dispatcher, "sample", dimensions, {}, buffers);
}

bool checked_advance(const TensorView& length, const TensorView& slots, const TensorView& positions) {
  const Checks check("advance");
  check.dense({"length", &length}, {ElementType::int32}, {{"1", 1}});
  check.dense({"slots", &slots}, {ElementType::int32}, {{"1", 1}});
  check.dense({"positions", &positions}, {ElementType::int32}, {{"3", 3}, {"1", 1}});
  check.addresses({{"length", &length}, {"slots", &slots}, {"positions", &positions}});
  check.apart({"length", &length}, {{"slots", &slots}, {"positions", &positions}});
  check.apart({"slots", &slots}, {{"positions", &positions}});
  return true;
}

void advance(Dispatcher& dispatcher, const TensorView& length, const TensorView& slots, const TensorView& positions) {
  if (!checked_advance(length, slots, positions)) {
    return;
  }
  void* const buffers[] = {length.data, slots.data, positions.data};
  launch(dispatcher, "advance", {}, {}, buffers);
}

}  // namespace pascaline::ops
