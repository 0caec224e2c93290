#include "runtime/model/sampler.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace pascaline {
namespace {

template <typename T>
void put(DeviceMemory& memory, const RawBuffer& buffer, std::span<const T> values) {
  memory.upload({}, buffer.span(), std::as_bytes(values));
  memory.synchronize(StreamId{});
}

}  // namespace

Sampler::Sampler(Executor& executor, std::int64_t vocabulary) : executor_(&executor), vocabulary_(vocabulary) {
  DeviceMemory& memory = executor.memory();
  settings_ = memory.allocate_raw(4 * sizeof(float));
  top_k_ = memory.allocate_raw(sizeof(std::int32_t));
  generator_ = memory.allocate_raw(2 * sizeof(std::int64_t));
  seen_ = memory.allocate_raw(static_cast<std::size_t>(vocabulary) * sizeof(std::int32_t));
  token_ = memory.allocate_raw(sizeof(std::int32_t));
  probability_ = memory.allocate_raw(sizeof(float));
  read_ = memory.allocate_pinned(sizeof(std::int32_t));
  set({}, {});
}

void Sampler::set(const ops::SamplingSettings& settings, std::span<const std::int32_t> seen) {
  ops::check_settings(settings);
  const std::array<float, 4> numbers = ops::device_settings(settings);
  const std::array<std::int32_t, 1> top_k{settings.top_k};
  const std::array<std::uint64_t, 2> generator{settings.seed, 0};
  std::vector<std::int32_t> counts(static_cast<std::size_t>(vocabulary_));
  for (const std::int32_t token : seen) {
    if (token >= 0 && token < vocabulary_) {
      ++counts[static_cast<std::size_t>(token)];
    }
  }
  DeviceMemory& memory = executor_->memory();
  put<float>(memory, settings_, numbers);
  put<std::int32_t>(memory, top_k_, top_k);
  put<std::uint64_t>(memory, generator_, generator);
  put<std::int32_t>(memory, seen_, counts);
}

TensorView Sampler::token_on_device() const { return {token_.data(), ElementType::int32, {1}}; }

void Sampler::launch(const TensorView& logits) {
  executor_->sample({.logits = logits,
                     .settings = {settings_.data(), ElementType::float32, {4}},
                     .top_k = {top_k_.data(), ElementType::int32, {1}},
                     .generator = {generator_.data(), ElementType::int64, {2}},
                     .seen = {seen_.data(), ElementType::int32, {vocabulary_}},
                     .token = token_on_device(),
                     .probability = {probability_.data(), ElementType::float32, {1}}});
}

std::int32_t Sampler::token() {
  executor_->memory().download({}, read_.bytes(), token_.span());
  executor_->memory().synchronize(StreamId{});
  std::int32_t token = 0;
  std::memcpy(&token, read_.bytes().data(), sizeof(token));
  return token;
}

}  // namespace pascaline
