#include "core/util/deadline.hpp"

#include <algorithm>
#include <utility>

namespace pascaline {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

Deadline::Deadline(std::optional<double> span_s, std::optional<std::chrono::system_clock::time_point> at,
                   DeadlineClocks clocks)
    : clocks_(std::move(clocks)), span_s_(span_s), start_(clocks_.steady()), at_(at) {
  if (at_) {
    const double away_s = Seconds(*at_ - clocks_.wall()).count();
    span_s_ = span_s_ ? std::min(*span_s_, away_s) : away_s;
  }
}

bool Deadline::over() const {
  const std::optional<double> left = left_s();
  return left && *left <= 0;
}

std::optional<double> Deadline::left_s() const {
  if (!span_s_) {
    return std::nullopt;
  }
  double left = *span_s_ - Seconds(clocks_.steady() - start_).count();
  if (at_) {
    left = std::min(left, Seconds(*at_ - clocks_.wall()).count());
  }
  return std::max(0.0, left);
}

}  // namespace pascaline
