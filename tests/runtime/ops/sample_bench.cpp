#include "tests/runtime/ops/sample_bench.hpp"

#include <gtest/gtest.h>

#include <array>

namespace pascaline::testing {
namespace {

DispatcherOptions with_kept_kernels() {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  return options;
}

template <typename T>
T first_of(Device& device, const Buffer& buffer) {
  std::array<T, 1> value{};
  device.download(std::as_writable_bytes(std::span(value)), buffer);
  return value[0];
}

}  // namespace

SampleBench::SampleBench(std::size_t vocabulary)
    : device_(open_device("emulator")),
      dispatcher_(*device_, with_kept_kernels()),
      vocabulary_(vocabulary),
      logits_(device_->allocate(vocabulary * sizeof(float))),
      settings_(device_->allocate(5 * sizeof(float))),
      top_k_(device_->allocate(sizeof(std::int32_t))),
      generator_(device_->allocate(2 * sizeof(std::int64_t))),
      seen_(device_->allocate(vocabulary * sizeof(std::int32_t))),
      token_(device_->allocate(sizeof(std::int32_t))),
      probability_(device_->allocate(sizeof(float))) {
  set(ops::SamplingSettings{});
  set_seen(std::vector<std::int32_t>(vocabulary));
  device_->fill(token_, 0xFF);
  device_->fill(probability_, 0xFF);
}

void SampleBench::set_logits(const std::vector<float>& logits) {
  ASSERT_EQ(logits.size(), vocabulary_);
  device_->upload(logits_, std::as_bytes(std::span(logits)));
}

void SampleBench::set(const ops::SamplingSettings& settings) {
  const std::array<float, 5> reals = ops::device_settings(settings);
  const std::array<std::int32_t, 1> top_k{settings.top_k};
  const std::array<std::uint64_t, 2> generator{settings.seed, 0};
  device_->upload(settings_, std::as_bytes(std::span(reals)));
  device_->upload(top_k_, std::as_bytes(std::span(top_k)));
  device_->upload(generator_, std::as_bytes(std::span(generator)));
}

void SampleBench::set_step(std::uint64_t step) {
  std::array<std::uint64_t, 2> generator{};
  device_->download(std::as_writable_bytes(std::span(generator)), generator_);
  generator[1] = step;
  device_->upload(generator_, std::as_bytes(std::span(generator)));
}

void SampleBench::set_seen(const std::vector<std::int32_t>& seen) {
  ASSERT_EQ(seen.size(), vocabulary_);
  device_->upload(seen_, std::as_bytes(std::span(seen)));
}

void SampleBench::launch() {
  const auto count = static_cast<std::int64_t>(vocabulary_);
  ops::Sample arguments;
  arguments.logits = view(logits_, ElementType::float32, count);
  arguments.settings = view(settings_, ElementType::float32, 5);
  arguments.top_k = view(top_k_, ElementType::int32, 1);
  arguments.generator = view(generator_, ElementType::int64, 2);
  arguments.seen = view(seen_, ElementType::int32, count);
  arguments.token = view(token_, ElementType::int32, 1);
  arguments.probability = view(probability_, ElementType::float32, 1);
  ops::run(dispatcher_, arguments);
}

ops::SampledToken SampleBench::choose() {
  launch();
  device_->synchronize();
  for (const Buffer* buffer : {&logits_, &settings_, &top_k_, &generator_, &seen_, &token_, &probability_}) {
    EXPECT_TRUE(device_->guards_intact(*buffer));
  }
  return chosen();
}

ops::SampledToken SampleBench::chosen() {
  return {first_of<std::int32_t>(*device_, token_), first_of<float>(*device_, probability_)};
}

std::uint64_t SampleBench::step() {
  std::array<std::uint64_t, 2> generator{};
  device_->download(std::as_writable_bytes(std::span(generator)), generator_);
  return generator[1];
}

std::vector<std::int32_t> SampleBench::seen() {
  std::vector<std::int32_t> counts(vocabulary_);
  device_->download(std::as_writable_bytes(std::span(counts)), seen_);
  return counts;
}

}  // namespace pascaline::testing
