#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/util/stop_check.hpp"
#include "model/model.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/advance.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline {
namespace {

constexpr int kMaxFailedRecordings = 3;

}  // namespace

std::int32_t Model::sample() {
  require_logits();
  check_logits(logits(), sampler_.no_numbers());
  const TensorView logits(logits_memory_.data(), ElementType::float32, {config_.text.vocab});
  position_next(length_ - 1);  // from where it advances
  choose_next(logits, next_pass());
  const std::int32_t token = sampler_.token();
  has_token_ = true;
  return token;
}

void Model::choose(std::int32_t token) {
  require_logits();
  if (token < 0 || token >= config_.text.vocab) {
    throw Error(fmt::format("token {} cannot be chosen; the vocabulary has {}", token, config_.text.vocab));
  }
  if (!has_token_) {
    position_next(length_);
  }
  sampler_.put(token);
  if (decoder_.embeds_on_device()) {
    decoder_.embed(next_pass());
  }
  has_token_ = true;
}

// On the device, where a token goes that so many come before: length, slot, positions.
void Model::position_next(std::int64_t before) {
  const auto slot = static_cast<std::int32_t>(before);
  const auto position = static_cast<std::int32_t>(before + delta_);
  const std::array<std::int32_t, 1> length{slot + 1};
  const std::array<std::int32_t, 1> slots{slot};
  const std::array<std::int32_t, 3> positions{position, position, position};
  const DeviceSpan memory = next_memory_.span();
  const auto put = [&](std::size_t offset, std::span<const std::int32_t> values) {
    executor_->memory().upload({}, memory.slice(offset, values.size_bytes()), std::as_bytes(values));
  };
  put(0, length);
  put(DeviceMemory::kAlignment, slots);
  put(2 * DeviceMemory::kAlignment, positions);
  executor_->memory().synchronize(StreamId{});
}

TextPass Model::next_pass() const {
  const DeviceSpan memory = next_memory_.span();
  const DeviceSpan slots = memory.slice(DeviceMemory::kAlignment, sizeof(std::int32_t));
  const DeviceSpan positions = memory.slice(2 * DeviceMemory::kAlignment, 3 * sizeof(std::int32_t));
  TextPass pass;
  pass.tokens = sampler_.token_of_kernels();
  pass.length = tensor_in(memory, ElementType::int32, {1});
  pass.slots = tensor_in(slots, ElementType::int32, {1});
  pass.positions = tensor_in(positions, ElementType::int32, {3, 1});
  return pass;
}

// Chooses the next token, for which it advances the pass's position. A step begins with its token's embedding, which is
// looked up here; where the processor looks embeddings up, a step does that.
void Model::choose_next(const TensorView& logits, const TextPass& pass) {
  const ops::Sample sample = sampler_.choice(logits);
  const ops::Advance advance{pass.length, pass.slots, pass.positions};
  if (!decoder_.embeds_on_device()) {
    executor_->run(sample);
    executor_->run(advance);
    return;
  }
  const NextTokenSite site{{sample, advance, weights_.text.embedding, decoder_.embedding_of_next()}};
  fusion_.run(linear_, site);
}

void Model::run_step() {
  const std::uint64_t launched = executor_->launched();
  const TextPass pass = next_pass();
  const TensorView logits(logits_memory_.data(), ElementType::float32, {1, config_.text.vocab});
  if (decoder_.embeds_on_device()) {
    decoder_.run_layers(pass);
  } else {
    decoder_.forward(pass);
  }
  decoder_.project(0, 1, logits);
  choose_next(reshaped(logits, {config_.text.vocab}), pass);
  launches_of_step_ = executor_->launched() - launched;
}

std::int32_t Model::step() {
  if (!has_token_) {
    throw Error("no token has been chosen yet to append");
  }
  if (length_ >= options_.context) {
    throw ContextFullError(
        fmt::format("the context of {} tokens is full; ask for a larger one with --context", options_.context));
  }
  reserve_cache(length_ + 1);
  const std::int64_t capacity = cache_ ? cache_->capacity() : 0;
  // One look for the whole step, so that a graph is never of two states.
  Dispatcher* const dispatcher = executor_->dispatcher();
  const ThermalState state = dispatcher != nullptr ? dispatcher->thermal_state() : ThermalState::cool;
  StepGraph* const ready = options_.graphs && launched_capacity_ == capacity ? ready_graph(state, capacity) : nullptr;
  if (ready != nullptr) {
    executor_->device().launch(ready->graph);
    if (dispatcher != nullptr) {
      dispatcher->count_launches(state, launches_of_step_);
    }
  } else {
    // The first step of a capacity prepares its kernels. One of which the processor had to compute a part cannot be
    // recorded.
    const std::uint64_t computed = executor_->computed();
    run_step();
    launched_capacity_ = executor_->computed() == computed ? capacity : 0;
  }
  ++length_;
  has_token_ = false;
  const std::int32_t token = sampler_.token();
  has_token_ = true;
  return token;
}

bool Model::uses_graph() const noexcept {
  return std::any_of(step_graphs_.begin(), step_graphs_.end(),
                     [](const StepGraph& step) { return static_cast<bool>(step.graph); });
}

void Model::forget_graph() noexcept {
  launched_capacity_ = 0;
  for (StepGraph& step : step_graphs_) {
    step.capacity = 0;
  }
  fusion_.forget();
}

// Records the step if the cache has grown since, or none was launched in such a state yet: the kernels of all states
// are prepared by then. What cannot be recorded is launched as it is: once more prepared, and after some failures for
// good.
Model::StepGraph* Model::ready_graph(ThermalState state, std::int64_t capacity) {
  Dispatcher* const dispatcher = executor_->dispatcher();
  const ThermalState as = dispatcher != nullptr ? dispatcher->launches_as(state) : ThermalState::cool;
  StepGraph& step = step_graphs_[static_cast<std::size_t>(as)];
  if (step.capacity == capacity) {
    return &step;
  }
  try {
    executor_->device().update(step.graph, [&] {
      if (dispatcher != nullptr) {
        dispatcher->record_as(as, [&] { run_step(); });
      } else {
        run_step();
      }
    });
  } catch (const DeviceLostError&) {
    throw;
  } catch (const StoppedError&) {
    throw;
  } catch (const Error&) {
    options_.graphs = ++failed_recordings_ < kMaxFailedRecordings;
    return nullptr;
  }
  step.capacity = capacity;
  return &step;
}

}  // namespace pascaline
