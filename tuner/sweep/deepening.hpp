#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/trial.hpp"

namespace pascaline {

/// What a turn of a problem is for, once there is time left after the searches.
enum class Deepening : std::uint8_t {
  none,        ///< its search
  comparison,  ///< all configurations once more, as what they launch has other winners
  finals,      ///< finals again, of what they left undecided, with more rounds
  neighbours,  ///< configurations near winners that were not tried
  between,     ///< the first look at a shape between tuned ones
};

/// True if nothing new is measured: the turn goes to finals at once.
[[nodiscard]] constexpr bool only_compares(Deepening what) noexcept {
  return what == Deepening::comparison || what == Deepening::finals;
}

/// "", "comparison", "finals again", "neighbours", "shape in between".
[[nodiscard]] std::string_view name_of(Deepening what) noexcept;

/// What the last finals of a problem left open.
struct OpenFinals {
  /// By what share of the winner's time another finalist is expected to turn out faster: the largest expectation
  /// over the others, by their medians and how well these are known. Next to 0 where all are clearly slower.
  double share = 0;
  std::size_t close = 0;             ///< others than the winner whose intervals reach below its upper end
  std::vector<std::string> among{};  ///< texts of the winner's and their configurations
};

/// From finalists of one finals, each with its time; `winner` is an index into them.
[[nodiscard]] OpenFinals open_finals(const std::vector<Trial>& finalists, std::size_t winner);

/// How many more rounds finals that are held again for the n-th time have (from 1), as a factor; their medians are
/// known better by its square root.
[[nodiscard]] int rounds_factor(int again) noexcept;
/// Times that finals are held again, at most.
inline constexpr int kMaxFinalsAgain = 3;

/// What came of neighbours of a problem's winner so far.
struct NeighbourRecord {
  int tried = 0;
  double gained = 0;       ///< sum of the shares by which the best became faster
  bool none_left = false;  ///< near it and near the winners of the kernel's other shapes
};

/// By what share the next neighbour is expected to be faster than the best: what those before brought, with what is
/// expected of any: one percent in the first 32.
[[nodiscard]] double expected_of_neighbour(const NeighbourRecord& record) noexcept;

/// By what share of its time a shape is expected to be faster with a winner of its own than with that of the nearest
/// tuned one, `octaves` away from it. `cross_loss`: by what share the winners of the tuned shapes on either side were
/// slower on each other, where that was measured, and `apart`: how far these lie from each other, in octaves.
[[nodiscard]] double expected_of_shape(double octaves, const std::optional<double>& cross_loss, double apart) noexcept;

/// "6.4 % faster expected", and of a share of one and more "7.4 times as fast expected".
[[nodiscard]] std::string expected_text(double share);

/// What a sweep did with the time that its searches left.
struct DeepeningCounts {
  int finals = 0;             ///< finals held again
  int winners_changed = 0;    ///< of which the winner was another than before
  int neighbours = 0;         ///< configurations near winners that were tried
  int neighbours_faster = 0;  ///< turns at them in which the best became faster
  int shapes = 0;             ///< shapes in between that were begun
  double spent_s = 0;         ///< of devices, in turns for any of that
};

}  // namespace pascaline
