#include <span>

#include "runtime/cpu/ops.hpp"
#include "runtime/ops/checked.hpp"
#include "runtime/ops/sample_host.hpp"

namespace pascaline::cpu {
namespace {

template <typename T>
std::span<T> values_of(const TensorView& tensor) {
  return {static_cast<T*>(tensor.data), static_cast<std::size_t>(tensor.shape[0])};
}

}  // namespace

void sample(const ops::SampleArguments& given) {
  if (!ops::checked_sample(given)) {
    return;
  }
  const auto numbers = values_of<const float>(given.settings);
  const auto generator = values_of<std::uint64_t>(given.generator);
  ops::SamplingSettings settings;
  settings.temperature = numbers[0];
  settings.top_p = numbers[1];
  settings.repetition = numbers[2];
  settings.presence = numbers[3];
  settings.top_k = values_of<const std::int32_t>(given.top_k)[0];
  settings.seed = generator[0];
  const ops::SampledToken chosen = ops::sample_on_host(values_of<const float>(given.logits), settings,
                                                       values_of<std::int32_t>(given.seen), generator[1]);
  values_of<std::int32_t>(given.token)[0] = chosen.token;
  values_of<float>(given.probability)[0] = chosen.probability;
}

void advance(const TensorView& length, const TensorView& slots, const TensorView& positions) {
  if (!ops::checked_advance(length, slots, positions)) {
    return;
  }
  for (const TensorView* tensor : {&length, &slots, &positions}) {
    for (std::int32_t& value : values_of<std::int32_t>(*tensor)) {
      ++value;
    }
  }
}

}  // namespace pascaline::cpu
