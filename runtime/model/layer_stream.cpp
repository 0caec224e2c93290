#include "runtime/model/layer_stream.hpp"

#include <algorithm>

namespace pascaline {
namespace {

std::array<TensorView*, 8> weights_of(TextLayerWeights& layer) {
  return {&layer.input_norm, &layer.qkv,       &layer.q_norm,  &layer.k_norm,
          &layer.output,     &layer.post_norm, &layer.gate_up, &layer.down};
}

}  // namespace

LayerStream::LayerStream(DeviceMemory& memory, const DeviceWeights& weights) : memory_(&memory), weights_(&weights) {
  std::size_t largest = 0;
  for (const auto& [layer, block] : weights.blocks) {
    largest = std::max(largest, block.used_bytes);
  }
  slots_.resize(std::min(kLayerSlots, weights.blocks.size()));
  for (Slot& slot : slots_) {
    slot.memory = memory.allocate_raw(largest);
    slot.copied = memory.make_event();
    slot.used = memory.make_event();
  }
  stream_ = memory.make_stream();
}

LayerStream::Slot* LayerStream::slot_of(std::size_t layer) noexcept {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.layer == layer; });
  return found == slots_.end() ? nullptr : &*found;
}

// Into the slot whose layer was used longest ago.
LayerStream::Slot& LayerStream::copy(std::size_t layer) {
  Slot& slot =
      *std::min_element(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.turn < b.turn; });
  const LayerBlock& block = weights_->blocks.at(layer);
  const std::span<const std::byte> from(static_cast<const std::byte*>(block.span().data), block.used_bytes);
  if (slot.in_use) {  // it was never left, for an error
    finish_use(slot);
  }
  slot.layer = kNone;
  memory_->wait(stream_.id(), slot.used);
  memory_->upload(stream_.id(), slot.memory.span().slice(0, from.size()), from);
  memory_->record(slot.copied, stream_.id());
  copied_bytes_ += from.size();
  slot.layer = layer;
  slot.turn = ++turns_;
  return slot;
}

std::size_t LayerStream::next_after(std::size_t layer) const {
  const auto next = weights_->blocks.upper_bound(layer);
  return next == weights_->blocks.end() ? weights_->blocks.begin()->first : next->first;
}

TextLayerWeights LayerStream::enter(std::size_t layer) {
  Slot* const held = slot_of(layer);
  Slot& slot = held != nullptr ? *held : copy(layer);
  slot.turn = ++turns_;
  slot.in_use = true;
  memory_->wait(StreamId{}, slot.copied);
  TextLayerWeights there = weights_->text.layers.at(layer);
  const auto* const begin = static_cast<const std::byte*>(weights_->blocks.at(layer).span().data);
  for (TensorView* const weight : weights_of(there)) {
    const auto offset = static_cast<const std::byte*>(weight->data) - begin;
    weight->data = static_cast<std::byte*>(slot.memory.data()) + offset;
  }
  return there;
}

void LayerStream::leave(std::size_t layer) {
  Slot* const slot = slot_of(layer);
  if (slot == nullptr || !slot->in_use) {
    return;
  }
  finish_use(*slot);
  if (const std::size_t next = next_after(layer); slot_of(next) == nullptr) {
    (void)copy(next);
  }
}

void LayerStream::finish_use(Slot& slot) {
  memory_->record(slot.used, StreamId{});
  slot.in_use = false;
}

std::uint64_t LayerStream::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const Slot& slot : slots_) {
    sum += slot.memory.bytes();
  }
  return sum;
}

}  // namespace pascaline
