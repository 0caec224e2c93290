#include "model/decoder/sampler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kProbabilityOffset = 16;  // operands are aligned to that

template <typename T>
void put_values(DeviceMemory& memory, const RawBuffer& buffer, std::span<const T> values) {
  memory.upload({}, buffer.span(), std::as_bytes(values));
  memory.synchronize(StreamId{});
}

}  // namespace

std::string no_numbers_text(const WeightRecipe& weights, ElementType cache) {
  constexpr std::string_view kProblem = "the model's logits are not numbers";
  std::vector<std::string_view> advice;
  if (cache == ElementType::float16) {
    advice.emplace_back("--kv-cache float32");
  }
  const auto is_narrow = [](const WeightRecipe::Rule& rule) { return rule.type != ElementType::float32; };
  if (std::any_of(weights.rules().begin(), weights.rules().end(), is_narrow)) {
    advice.emplace_back("--weights float32");
  }
  return advice.empty() ? fmt::format("{}: the weights are damaged; download the model again", kProblem)
                        : fmt::format("{}: something overflows float16, or the weights are damaged; try {}", kProblem,
                                      fmt::join(advice, " and "));
}

Sampler::Sampler(Executor& executor, std::int64_t vocabulary, std::string no_numbers)
    : executor_(&executor), vocabulary_(vocabulary), no_numbers_(std::move(no_numbers)) {
  DeviceMemory& memory = executor.memory();
  settings_ = memory.allocate_raw(5 * sizeof(float));
  top_k_ = memory.allocate_raw(sizeof(std::int32_t));
  generator_ = memory.allocate_raw(2 * sizeof(std::int64_t));
  seen_ = memory.allocate_raw(static_cast<std::size_t>(vocabulary) * sizeof(std::int32_t));
  choice_ = memory.allocate_pinned(kProbabilityOffset + sizeof(float));
  std::ranges::fill(choice_.bytes(), std::byte{});
  set({}, {});
}

void Sampler::set(const ops::SamplingSettings& settings, std::span<const std::int32_t> seen) {
  ops::check_settings(settings);
  const std::array<float, 5> numbers = ops::device_settings(settings);
  const std::array<std::int32_t, 1> top_k{settings.top_k};
  const std::array<std::uint64_t, 2> generator{settings.seed, 0};
  std::vector<std::int32_t> counts(static_cast<std::size_t>(vocabulary_));
  for (const std::int32_t token : seen) {
    if (token >= 0 && token < vocabulary_) {
      ++counts[static_cast<std::size_t>(token)];
    }
  }
  DeviceMemory& memory = executor_->memory();
  put_values<float>(memory, settings_, numbers);
  put_values<std::int32_t>(memory, top_k_, top_k);
  put_values<std::uint64_t>(memory, generator_, generator);
  put_values<std::int32_t>(memory, seen_, counts);
}

TensorView Sampler::token_of_kernels() const { return {choice_.bytes().data(), ElementType::int32, {1}}; }

ops::Sample Sampler::choice(const TensorView& logits) const {
  return {.logits = logits,
          .settings = {settings_.data(), ElementType::float32, {5}},
          .top_k = {top_k_.data(), ElementType::int32, {1}},
          .generator = {generator_.data(), ElementType::int64, {2}},
          .seen = {seen_.data(), ElementType::int32, {vocabulary_}},
          .token = token_of_kernels(),
          .probability = {choice_.bytes().data() + kProbabilityOffset, ElementType::float32, {1}}};
}

std::int32_t Sampler::token() {
  if (executor_->observes_only()) {
    return 0;  // nothing was drawn
  }
  executor_->memory().synchronize(StreamId{});
  std::int32_t token = 0;
  float probability = 0;
  std::memcpy(&token, choice_.bytes().data(), sizeof(token));
  std::memcpy(&probability, choice_.bytes().data() + kProbabilityOffset, sizeof(probability));
  // What is drawn has a probability above 0: only where there is nothing to draw from it is 0.
  if (!(probability > 0)) {
    throw Error(no_numbers_);
  }
  return token;
}

void Sampler::put(std::int32_t token) {
  executor_->memory().synchronize(StreamId{});  // a kernel may read or write the token before
  std::memcpy(choice_.bytes().data(), &token, sizeof(token));
}

void check_logits(std::span<const float> logits, const std::string& no_numbers) {
  const bool good = std::all_of(logits.begin(), logits.end(),
                                [](float logit) { return logit < std::numeric_limits<float>::infinity(); });
  if (!good) {
    throw Error(no_numbers);
  }
}

}  // namespace pascaline
