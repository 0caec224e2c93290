#include <fmt/format.h>

#include "runtime/device/emulator/block_executor.hpp"

namespace pascaline {
namespace {

using pascaline_host::ThreadView;

std::string_view name_of(Collective kind) noexcept {
  switch (kind) {
    case Collective::sync:
      return "__syncwarp";
    case Collective::shuffle:
      return "a shuffle";
    case Collective::ballot:
      return "a vote";
    case Collective::active_mask:
      return "__activemask";
  }
  return "?";
}

std::string coordinates(const pascaline_host::Index3& index) {
  return fmt::format("({},{},{})", index.x, index.y, index.z);
}

}  // namespace

/// The bridge from the table of plain functions to the executor.
struct BlockExecutor::Calls {
  static Thread& thread(ThreadView* view) { return static_cast<Thread&>(*view); }

  static std::uint64_t collective(ThreadView* view, const LaneOffer& offer) {
    BlockExecutor& executor = of(*view);
    if ((offer.mask >> view->lane & 1u) == 0) {
      executor.fail(
          fmt::format("thread {} of block {} is lane {} and called {} with mask {:#010x}, which does not name it",
                      coordinates(view->index), coordinates(view->block->block_index), view->lane, name_of(offer.kind),
                      offer.mask));
    }
    return executor.collective(thread(view), offer);
  }

  static void barrier(ThreadView* view, bool vote) { of(*view).barrier(thread(view), vote); }

  static void sync_warp(ThreadView* view, unsigned mask) { collective(view, {Collective::sync, mask, 0, 0}); }

  static unsigned long long shuffle(ThreadView* view, unsigned mask, unsigned long long value, unsigned source) {
    return collective(view, {Collective::shuffle, mask, source, value});
  }

  static unsigned ballot(ThreadView* view, unsigned mask, bool vote) {
    return static_cast<unsigned>(collective(view, {Collective::ballot, mask, 0, vote ? 1u : 0u}));
  }

  static unsigned active_mask(ThreadView* view, const void* site) {
    const auto place = reinterpret_cast<std::uintptr_t>(site);
    return static_cast<unsigned>(collective(view, {Collective::active_mask, 1u << view->lane, 0, place}));
  }

  static void fail(ThreadView* view, const char* message) {
    of(*view).fail(fmt::format("{} (thread {} of block {})", message, coordinates(view->index),
                               coordinates(view->block->block_index)));
  }

  static constexpr pascaline_host::Services kTable{&barrier, &sync_warp, &shuffle, &ballot, &active_mask, &fail};
};

const pascaline_host::Services& BlockExecutor::services() noexcept { return Calls::kTable; }

std::string BlockExecutor::deadlock() const {
  unsigned barrier = 0;
  unsigned collective = 0;
  const Thread* first_at_barrier = nullptr;
  const Thread* first_in_collective = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state == State::at_barrier && barrier++ == 0) {
      first_at_barrier = &thread;
    } else if (thread.state == State::in_collective && collective++ == 0) {
      first_in_collective = &thread;
    }
  }
  std::string text = fmt::format("barrier deadlock in block {}:", coordinates(block_.block_index));
  if (first_at_barrier != nullptr) {
    text += fmt::format(" {} threads wait at __syncthreads, the first is {};", barrier,
                        coordinates(first_at_barrier->index));
  }
  if (first_in_collective != nullptr) {
    const LaneOffer& offer = warps_[warp_of(*first_in_collective)].offer(first_in_collective->lane);
    text += fmt::format(" {} threads wait for lanes of their warp, the first is {} in {} with mask {:#010x};",
                        collective, coordinates(first_in_collective->index), name_of(offer.kind), offer.mask);
  }
  return text + fmt::format(" {} have exited", threads_.size() - live_);
}

}  // namespace pascaline
