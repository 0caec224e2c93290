#include "tuner/sweep/deepening.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kRoundsFactor = 4;
// Of neighbours of a winner of which nothing is known: so much in so many trials.
constexpr double kPriorGain = 0.01;
constexpr double kPriorNeighbours = 32;
// What a winner loses on another shape, an octave away, where that was not measured; and at least, as what was measured
// is of a few shapes.
constexpr double kLossPerOctave = 0.05;
constexpr double kMinLossPerOctave = 0.002;

double median_error_us(const TimeSummary& time) { return (time.high_us - time.low_us) / (2 * kErrorsOf95); }

// Of max(0, -difference), the difference being normal.
double expected_shortfall(double difference, double error) {
  if (!(error > 0)) {
    return std::max(0.0, -difference);
  }
  const double z = difference / error;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = 0.5 * std::erfc(z / std::numbers::sqrt2);
  return error * density - difference * below;
}

}  // namespace

std::string_view name_of(Deepening what) noexcept {
  switch (what) {
    case Deepening::none:
      return "";
    case Deepening::comparison:
      return "comparison";
    case Deepening::finals:
      return "finals again";
    case Deepening::neighbours:
      return "neighbours";
    case Deepening::between:
      return "shape in between";
  }
  return "";
}

OpenFinals open_finals(const std::vector<Trial>& finalists, std::size_t winner) {
  OpenFinals open;
  if (winner >= finalists.size() || !finalists[winner].time || !(finalists[winner].time->median_us > 0)) {
    return open;
  }
  const TimeSummary& best = *finalists[winner].time;
  open.among.push_back(finalists[winner].config.text());
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    if (i == winner || !finalists[i].time) {
      continue;
    }
    const TimeSummary& other = *finalists[i].time;
    const double error_us = std::hypot(median_error_us(best), median_error_us(other));
    open.share = std::max(open.share, expected_shortfall(other.median_us - best.median_us, error_us) / best.median_us);
    if (other.low_us <= best.high_us) {
      ++open.close;
      open.among.push_back(finalists[i].config.text());
    }
  }
  return open;
}

int rounds_factor(int again) noexcept {
  int factor = 1;
  for (int i = 0; i < std::min(again, kMaxFinalsAgain); ++i) {
    factor *= kRoundsFactor;
  }
  return factor;
}

double expected_of_neighbour(const NeighbourRecord& record) noexcept {
  return (record.gained + kPriorGain) / (record.tried + kPriorNeighbours);
}

double expected_of_shape(double octaves, const std::optional<double>& cross_loss, double apart) noexcept {
  const double per_octave = cross_loss && apart > 0 ? std::max(0.0, *cross_loss) / apart : kLossPerOctave;
  return octaves * std::max(per_octave, kMinLossPerOctave);
}

std::string expected_text(double share) {
  return share < 0.995 ? fmt::format("{:.2g} % faster expected", 100 * share)
                       : fmt::format("{:.1f} times as fast expected", 1 + share);
}

}  // namespace pascaline
