#include <span>

#include "runtime/ops/sample.hpp"

namespace pascaline::ops {
namespace {

template <typename T>
std::span<T> values_of(const TensorView& tensor) {
  return {static_cast<T*>(tensor.data), static_cast<std::size_t>(tensor.shape[0])};
}

}  // namespace

void Sample::compute() const {
  const auto numbers = values_of<const float>(settings);
  const auto state = values_of<std::uint64_t>(generator);
  SamplingSettings given;
  given.temperature = numbers[0];
  given.top_p = numbers[1];
  given.repetition = numbers[2];
  given.presence = numbers[3];
  given.min_p = numbers[4];
  given.top_k = values_of<const std::int32_t>(top_k)[0];
  given.seed = state[0];
  const SampledToken chosen =
      sample_on_host(values_of<const float>(logits), given, values_of<std::int32_t>(seen), state[1]);
  values_of<std::int32_t>(token)[0] = chosen.token;
  values_of<float>(probability)[0] = chosen.probability;
}

}  // namespace pascaline::ops
