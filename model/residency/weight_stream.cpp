#include "model/residency/weight_stream.hpp"

#include <algorithm>

namespace pascaline {

WeightStream::WeightStream(DeviceMemory& memory, const DeviceWeights& weights) : memory_(&memory), weights_(&weights) {
  std::size_t largest = 0;
  for (const auto& [part, block] : weights.blocks) {
    largest = std::max(largest, block.used_bytes);
  }
  slots_.resize(std::min(kStreamSlots, weights.blocks.size()));
  for (Slot& slot : slots_) {
    slot.memory = memory.allocate_raw(largest);
    slot.copied = memory.make_event();
    slot.used = memory.make_event();
  }
  stream_ = memory.make_stream();
}

WeightStream::Slot* WeightStream::slot_of(WeightPart part) noexcept {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.part == part; });
  return found == slots_.end() ? nullptr : &*found;
}

// Into the slot whose part was used longest ago.
WeightStream::Slot& WeightStream::copy(WeightPart part) {
  Slot& slot =
      *std::min_element(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.turn < b.turn; });
  const WeightBlock& block = weights_->blocks.at(part);
  const std::span<const std::byte> from(static_cast<const std::byte*>(block.span().data), block.used_bytes);
  if (slot.in_use) {  // it was never left, for an error
    finish_use(slot);
  }
  slot.part.reset();
  memory_->wait(stream_.id(), slot.used);
  memory_->upload(stream_.id(), slot.memory.span().slice(0, from.size()), from);
  memory_->record(slot.copied, stream_.id());
  copied_bytes_ += from.size();
  slot.part = part;
  slot.turn = ++turns_;
  return slot;
}

// After the last part of the tower, and after the decoder's last, comes the decoder's first if any is streamed.
WeightPart WeightStream::next_after(WeightPart part) const {
  const auto next = weights_->blocks.upper_bound(part);
  return next != weights_->blocks.end() && next->first.kind == part.kind ? next->first
                                                                         : weights_->blocks.begin()->first;
}

void WeightStream::move_views(WeightPart part, std::span<TensorView* const> views) {
  Slot* const held = slot_of(part);
  Slot& slot = held != nullptr ? *held : copy(part);
  slot.turn = ++turns_;
  slot.in_use = true;
  memory_->wait(StreamId{}, slot.copied);
  const auto* const begin = static_cast<const std::byte*>(weights_->blocks.at(part).span().data);
  for (TensorView* const view : views) {
    if (view->data == nullptr) {  // a weight that the family's layers do not have
      continue;
    }
    const auto offset = static_cast<const std::byte*>(view->data) - begin;
    view->data = static_cast<std::byte*>(slot.memory.data()) + offset;
  }
}

void WeightStream::leave(WeightPart part) {
  Slot* const slot = slot_of(part);
  if (slot == nullptr || !slot->in_use) {
    return;
  }
  finish_use(*slot);
  if (const WeightPart next = next_after(part); slot_of(next) == nullptr) {
    (void)copy(next);
  }
}

void WeightStream::finish_use(Slot& slot) {
  memory_->record(slot.used, StreamId{});
  slot.in_use = false;
}

std::uint64_t WeightStream::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const Slot& slot : slots_) {
    sum += slot.memory.bytes();
  }
  return sum;
}

}  // namespace pascaline
