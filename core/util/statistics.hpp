#pragma once

#include <span>
#include <vector>

#include "core/trial.hpp"

namespace pascaline {

/// Standard errors that half of a 95 % interval is, of what is distributed normally.
inline constexpr double kErrorsOf95 = 1.96;

/// Median of the counted samples and the distribution-free 95 % confidence interval of it, from order statistics
/// (Conover, Practical Nonparametric Statistics, 3.2; binomial by its normal approximation above 70 samples).
/// With fewer than 6 samples the interval is the whole range. All zero if no sample counts; NaN if a counted time is
/// NaN, so that every comparison with it fails. Times are multiplied by `clock_scale`.
[[nodiscard]] TimeSummary summarize(std::span<const Sample> samples, double clock_scale = 1.0);

/// The median of values, of which there must be one.
[[nodiscard]] double median(std::vector<double> values);

/// Half the interval's width over the median; infinity if there is no finite median.
[[nodiscard]] double relative_half_width(const TimeSummary& summary) noexcept;

/// Probability that a draw from `a` is below one from `b`, ties counted half (the Mann-Whitney statistic over its
/// maximum): 1 = always faster, 0.5 = no difference, or a side that is empty or holds a NaN.
[[nodiscard]] double probability_faster(std::span<const double> a, std::span<const double> b);

/// Two-sided p-value of the Mann-Whitney U test by its normal approximation with tie correction; 1 if either side
/// is empty or holds a NaN.
[[nodiscard]] double mann_whitney_p(std::span<const double> a, std::span<const double> b);

/// Two-sided p-value of the sign test on pairs (a[i], b[i]), by the binomial up to 500 pairs and by its normal
/// approximation above; pairs that tie or hold a NaN are left out; 1 if none is left.
[[nodiscard]] double sign_test_p(std::span<const double> a, std::span<const double> b);

/// Two-sided p-value of a value of Student's t with that many degrees of freedom, by the finite series for whole
/// degrees (Abramowitz and Stegun, 26.7.3 and 26.7.4); 1 for a NaN or fewer than one degree.
[[nodiscard]] double student_t_p(double t, int degrees);

/// A mean that single values far off do not move.
struct TrimmedMean {
  double mean = 0;
  double error = 0;  ///< its standard error
  int degrees = 0;   ///< of freedom that Student's t has with it
};

/// The mean without the lowest and the highest tenth of the values (rounded down, so that of fewer than ten all are
/// in), and its standard error by their winsorized variance (Tukey and McLaughlin, Less vulnerable confidence and
/// significance procedures for location, Sankhya A 25, 1963). NaN where a value is NaN or there is none; the error is
/// infinite for one value.
[[nodiscard]] TrimmedMean trimmed_mean(std::vector<double> values);

/// How far values moved from the first to the last: twice the way from the earlier half's mean to the later's, so that
/// a value that flickers between two has not moved. 0 for fewer than two.
[[nodiscard]] double moved(std::span<const double> values);

/// p-values adjusted for being looked at together, in the order given (S. Holm, A simple sequentially rejective
/// multiple test procedure, Scandinavian Journal of Statistics 6, 1979): calling those at or below 0.05 significant is
/// wrong for any of them at most once in 20 times, however the tests depend on each other. A NaN counts as 1.
[[nodiscard]] std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace pascaline
