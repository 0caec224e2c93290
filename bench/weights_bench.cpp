#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "runtime/checkpoint/convert.hpp"
#include "runtime/checkpoint/weight_source.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kWeights = 1 << 24;

// One thread converting weights, by the bytes that it reads.
void convert(benchmark::State& state, StoredType from, ElementType to, HalfPath path) {
  std::vector<std::byte> in(kWeights * size_of(from), std::byte{0x3C});
  std::vector<std::byte> out(kWeights * size_of(to));
  for ([[maybe_unused]] auto pass : state) {
    benchmark::DoNotOptimize(convert_weights(from, in, to, out, path));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(in.size()));
}

// All threads generating weights, by the bytes that they write.
void generate(benchmark::State& state, ElementType to) {
  ModelConfig config;
  config.text = {.hidden = 1 << 12,
                 .heads = 1,
                 .kv_heads = 1,
                 .head_dim = 2,
                 .intermediate = 1,
                 .vocab = kWeights >> 12,
                 .max_positions = 1,
                 .rope_theta = 1e4,
                 .mrope_section = {1, 0, 0},
                 .tied = true};
  config.vision = VisionConfig{.hidden = 4,
                               .heads = 1,
                               .intermediate = 1,
                               .in_channels = 1,
                               .patch = 1,
                               .temporal_patch = 1,
                               .merge = 1,
                               .out_hidden = 1,
                               .positions = 1,
                               .deepstack_indexes = {}};
  const WeightSource source = random_weights(config, 1);
  std::vector<std::byte> out(kWeights * size_of(to));
  for ([[maybe_unused]] auto pass : state) {
    source.read(source.tensors().front(), to, 0, out);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}

BENCHMARK_CAPTURE(convert, bf16_to_fp16_f16c, StoredType::BF16, ElementType::float16, HalfPath::f16c);
BENCHMARK_CAPTURE(convert, bf16_to_fp16_portable, StoredType::BF16, ElementType::float16, HalfPath::portable);
BENCHMARK_CAPTURE(convert, bf16_to_fp32, StoredType::BF16, ElementType::float32, HalfPath::portable);
BENCHMARK_CAPTURE(convert, fp16_to_fp32_f16c, StoredType::F16, ElementType::float32, HalfPath::f16c);
BENCHMARK_CAPTURE(convert, fp16_to_fp32_portable, StoredType::F16, ElementType::float32, HalfPath::portable);
BENCHMARK_CAPTURE(convert, fp32_to_fp16_f16c, StoredType::F32, ElementType::float16, HalfPath::f16c);
BENCHMARK_CAPTURE(convert, fp32_to_fp32, StoredType::F32, ElementType::float32, HalfPath::portable);
BENCHMARK_CAPTURE(generate, random_fp16, ElementType::float16)->UseRealTime();
BENCHMARK_CAPTURE(generate, random_fp32, ElementType::float32)->UseRealTime();

}  // namespace
}  // namespace pascaline
