#pragma once

#include <array>
#include <cstdint>

namespace pascaline {

constexpr unsigned kWarpLanes = 32;

/// What lanes of a warp wait for each other in.
enum class Collective : std::uint8_t { sync, shuffle, ballot, active_mask };

/// What one lane brings to a collective.
struct LaneOffer {
  Collective kind = Collective::sync;
  unsigned mask = 0;
  unsigned source = 0;      ///< shuffle: the lane to read
  std::uint64_t value = 0;  ///< shuffle: what is given; ballot: 0 or 1; active_mask: the place in the code
};

/// The lanes of one warp that wait in collectives. Lanes that have exited, or never were, are missed by none.
class Warp {
 public:
  /// Forgets everything; only the first `lanes` lanes exist.
  void reset(unsigned lanes) noexcept;

  void arrive(unsigned lane, const LaneOffer& offer) noexcept;
  void exit(unsigned lane) noexcept { exited_ |= 1u << lane; }

  /// If every lane that `lane` waits for is there, ends their wait and returns them; otherwise 0.
  [[nodiscard]] unsigned complete(unsigned lane) noexcept;
  /// Ends the wait of all lanes that ask which lanes are active at the same place as the first that asks; 0 if none
  /// asks. Right only when no thread of the block can go on otherwise.
  [[nodiscard]] unsigned complete_active_mask() noexcept;

  [[nodiscard]] std::uint64_t result(unsigned lane) const noexcept { return results_[lane]; }
  [[nodiscard]] unsigned waiting() const noexcept { return waiting_; }
  [[nodiscard]] const LaneOffer& offer(unsigned lane) const noexcept { return offers_[lane]; }

 private:
  void deliver(unsigned lanes, Collective kind) noexcept;

  unsigned waiting_ = 0;
  unsigned exited_ = 0;
  std::array<LaneOffer, kWarpLanes> offers_;
  std::array<std::uint64_t, kWarpLanes> results_{};
};

}  // namespace pascaline
