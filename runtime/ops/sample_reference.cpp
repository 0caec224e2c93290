#include "runtime/ops/reference.hpp"
#include "runtime/ops/sample_host.hpp"

namespace pascaline {

// The next token from logits: `ops::sample_on_host`, so what a kernel gives must equal it to the bit. In float64 the
// same choice would differ wherever rounding moves a boundary between tokens across the drawn number, which among
// many tokens of like probability happens too often to tell it from a mistake. Inputs logits, settings, top_k,
// generator, seen; dimension VOCABULARY.
void reference_sample(const Problem& /*problem*/, std::span<const std::vector<double>> inputs,
                      std::span<std::vector<double>> outputs) {
  const std::vector<float> logits(inputs[0].begin(), inputs[0].end());
  ops::SamplingSettings settings;
  settings.temperature = static_cast<float>(inputs[1][0]);
  settings.top_p = static_cast<float>(inputs[1][1]);
  settings.repetition = static_cast<float>(inputs[1][2]);
  settings.presence = static_cast<float>(inputs[1][3]);
  settings.min_p = static_cast<float>(inputs[1][4]);
  settings.top_k = static_cast<std::int32_t>(inputs[2][0]);
  settings.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(inputs[3][0]));
  auto step = static_cast<std::uint64_t>(static_cast<std::int64_t>(inputs[3][1]));
  std::vector<std::int32_t> seen(inputs[4].begin(), inputs[4].end());
  const ops::SampledToken chosen = ops::sample_on_host(logits, settings, seen, step);
  outputs[0] = {inputs[3][0], static_cast<double>(step)};
  outputs[1].assign(seen.begin(), seen.end());
  outputs[2] = {static_cast<double>(chosen.token)};
  outputs[3] = {static_cast<double>(chosen.probability)};
}

}  // namespace pascaline
