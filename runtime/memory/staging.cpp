#include "runtime/memory/staging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace pascaline {

/// A slot that one thread has to itself. It goes back to the end of the line, where it belongs once its copy was queued
/// and does no harm otherwise.
class StagingRing::Loan {
 public:
  explicit Loan(StagingRing& ring) : ring_(ring) {
    std::unique_lock lock(ring_.mutex_);
    ring_.idle_.wait(lock, [&] { return !ring_.waiting_.empty(); });
    slot_ = ring_.waiting_.front();
    ring_.waiting_.pop_front();
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    const std::lock_guard lock(ring_.mutex_);
    ring_.waiting_.push_back(slot_);
    ring_.idle_.notify_one();
  }
  [[nodiscard]] Slot& slot() const noexcept { return *slot_; }

 private:
  StagingRing& ring_;
  Slot* slot_ = nullptr;
};

StagingRing::StagingRing(DeviceMemory& memory, std::size_t slot_bytes, std::size_t slots)
    : memory_(memory), slot_bytes_(slot_bytes) {
  if (slot_bytes == 0 || slots == 0) {
    throw Error(
        fmt::format("cannot stage uploads in {} slots of {} bytes; at least one of each is needed", slots, slot_bytes));
  }
  stream_ = memory_.make_stream();
  order_ = memory_.make_event();
  slots_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back({memory_.allocate_pinned(slot_bytes), memory_.make_event()});
    waiting_.push_back(&slots_.back());
  }
}

StagingRing::~StagingRing() {
  try {
    finish();
  } catch (const Error&) {
    // Nobody is left to be told, and a broken device copies no more.
  }
}

void StagingRing::upload(DeviceSpan to, const Producer& produce) {
  for (std::size_t offset = 0; offset < to.bytes; offset += slot_bytes_) {
    const std::size_t bytes = std::min(slot_bytes_, to.bytes - offset);
    const Loan loan(*this);
    const Slot& slot = loan.slot();
    const bool busy = !memory_.is_done(slot.copied);
    if (busy) {
      memory_.synchronize(slot.copied);
    }
    const std::span<std::byte> piece = slot.memory.bytes().first(bytes);
    produce(piece, offset);
    const std::lock_guard lock(mutex_);  // the event has to be right behind the copy
    memory_.upload(stream_.id(), to.slice(offset, bytes), piece);
    memory_.record(slot.copied, stream_.id());
    uploaded_bytes_ += bytes;
    waits_ += busy ? 1 : 0;
  }
}

void StagingRing::upload(DeviceSpan to, std::span<const std::byte> from) {
  if (to.bytes != from.size()) {
    throw Error(fmt::format("cannot upload {} bytes to a range of {}", from.size(), to.bytes));
  }
  upload(to, [from](std::span<std::byte> piece, std::size_t offset) {
    std::memcpy(piece.data(), from.data() + offset, piece.size());
  });
}

void StagingRing::order_before(StreamId stream) {
  const std::lock_guard lock(mutex_);
  memory_.record(order_, stream_.id());
  memory_.wait(stream, order_);
}

void StagingRing::finish() { memory_.synchronize(stream_.id()); }

std::uint64_t StagingRing::uploaded_bytes() const {
  const std::lock_guard lock(mutex_);
  return uploaded_bytes_;
}

std::uint64_t StagingRing::waits_for_device() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

}  // namespace pascaline
