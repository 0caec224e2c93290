#include "runtime/device/emulator/warp.hpp"

#include <bit>

namespace pascaline {

void Warp::reset(unsigned lanes) noexcept {
  waiting_ = 0;
  exited_ = lanes >= kWarpLanes ? 0 : ~0u << lanes;
}

void Warp::arrive(unsigned lane, const LaneOffer& offer) noexcept {
  offers_[lane] = offer;
  waiting_ |= 1u << lane;
}

unsigned Warp::complete(unsigned lane) noexcept {
  const LaneOffer& own = offers_[lane];
  const unsigned lanes = own.mask & ~exited_;
  if (own.kind == Collective::active_mask || (lanes & ~waiting_) != 0) {
    return 0;
  }
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const LaneOffer& other = offers_[static_cast<unsigned>(std::countr_zero(left))];
    // Masks may differ in lanes that exited between the calls.
    if (other.kind != own.kind || ((other.mask ^ own.mask) & ~exited_) != 0) {
      return 0;
    }
  }
  deliver(lanes, own.kind);
  return lanes;
}

unsigned Warp::complete_active_mask() noexcept {
  unsigned lanes = 0;
  std::uint64_t place = 0;
  for (unsigned left = waiting_; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const LaneOffer& offer = offers_[lane];
    if (offer.kind == Collective::active_mask && (lanes == 0 || offer.value == place)) {
      place = offer.value;
      lanes |= 1u << lane;
    }
  }
  deliver(lanes, Collective::active_mask);
  return lanes;
}

void Warp::deliver(unsigned lanes, Collective kind) noexcept {
  std::uint64_t shared = lanes;
  if (kind == Collective::ballot) {
    shared = 0;
    for (unsigned left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      shared |= offers_[lane].value << lane;
    }
  }
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (kind == Collective::shuffle) {
      // Reading a lane that takes no part is undefined in CUDA; here it gives the reader's own value.
      const unsigned source = offers_[lane].source;
      results_[lane] = offers_[(lanes >> source & 1u) != 0 ? source : lane].value;
    } else {
      results_[lane] = shared;
    }
  }
  waiting_ &= ~lanes;
}

}  // namespace pascaline
