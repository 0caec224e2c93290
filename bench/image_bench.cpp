#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "runtime/image/preprocess.hpp"
#include "runtime/image/resize.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kPhotoHeight = 3024;
constexpr std::int64_t kPhotoWidth = 4032;

// A photograph's size, with every level in it.
Image photo() {
  Image image = black_image(kPhotoHeight, kPhotoWidth);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(i * i >> 9);
  }
  return image;
}

// The settings of Qwen3-VL, with images limited to that many tokens.
PreprocessorConfig config_of(std::int64_t tokens) {
  PreprocessorConfig config;
  config.shortest_edge = 65536;
  config.longest_edge = 16777216;
  config.patch_size = 16;
  config.temporal_patch_size = 2;
  config.merge_size = 2;
  config.image_mean = config.image_std = {0.5, 0.5, 0.5};
  return limit_tokens(config, tokens);
}

void resize(benchmark::State& state) {
  const Image image = photo();
  const TargetSize size = target_size(kPhotoHeight, kPhotoWidth, config_of(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(resize_bicubic(image, size.height, size.width).pixels.data());
  }
}

void prepare(benchmark::State& state) {
  const Image image = photo();
  const PreprocessorConfig config = config_of(state.range(0));
  std::vector<float> values(patch_grid(kPhotoHeight, kPhotoWidth, config).values());
  for (auto _ : state) {
    benchmark::DoNotOptimize(preprocess(image, config, values).h);
  }
}

// What writing the patches takes if there is nothing to work out.
void fill(benchmark::State& state) {
  std::vector<float> values(patch_grid(kPhotoHeight, kPhotoWidth, config_of(state.range(0))).values());
  float value = 0;
  for (auto _ : state) {
    std::fill(values.begin(), values.end(), value += 1);
    benchmark::ClobberMemory();
  }
}

BENCHMARK(resize)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(prepare)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(fill)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace pascaline
