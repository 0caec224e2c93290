#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/util/statistics.hpp"
#include "db/best_trials.hpp"

namespace pascaline {
namespace {

constexpr double kMinDifference = 0.01;
constexpr double kSignificance = 0.05;
constexpr double kSameWithin = 0.05;
constexpr double kSameClockWithin = 0.01;
constexpr int kFewestSamples = 6;  // below, the interval of a median is only the range of its samples

// Identity of a device without what is only kept beside it, target, problem.
using Place = std::tuple<std::string, std::string, std::string, std::int64_t, std::string, std::string>;

Place place_of(const BestTrial& best) {
  const DeviceRow& device = best.stored.device;
  return {device.kind,
          device.name,
          device.compute_capability,
          device.sm_count,
          best.stored.toolkit.target,
          best.stored.trial.problem.text()};
}

// Counted times as the trial's median has them: scaled for a clock that had drifted.
std::vector<double> counted_times_us(const Trial& trial) {
  std::vector<double> times;
  for (const Sample& sample : trial.samples) {
    if (sample.counted()) {
      times.push_back(sample.time_us * trial.clock_scale);
    }
  }
  return times;
}

std::optional<double> mean_clock_mhz(const Trial& trial) {
  double sum = 0;
  int count = 0;
  for (const Sample& sample : trial.samples) {
    if (sample.counted() && sample.sm_clock_mhz) {
      sum += *sample.sm_clock_mhz;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

ComparedBest compared_best(const BestTrial& best) {
  const Trial& trial = best.stored.trial;
  return {trial.time.value_or(TimeSummary{}),
          best.baseline,
          trial.config,
          best.stored.kernel.source_hash,
          best.stored.toolkit,
          best.stored.id,
          best.decided,
          mean_clock_mhz(trial)};
}

std::optional<TimeRatio> ratio_of(const TimeSummary& a, const TimeSummary& b) {
  const TimeRatio ratio{b.median_us / a.median_us, b.low_us / a.high_us, b.high_us / a.low_us};
  const bool usable = a.low_us > 0 && b.low_us > 0 && std::isfinite(ratio.high) && ratio.low <= ratio.high;
  return usable ? std::optional(ratio) : std::nullopt;
}

std::optional<bool> same_clock(const ComparedBest& a, const ComparedBest& b) {
  if (!a.sm_clock_mhz || !b.sm_clock_mhz) {
    return std::nullopt;
  }
  return std::abs(*a.sm_clock_mhz - *b.sm_clock_mhz) <= kSameClockWithin * std::max(*a.sm_clock_mhz, *b.sm_clock_mhz);
}

// A row with what its two trials hold, before anything is judged.
struct Pair {
  ComparisonRow row;
  std::vector<double> times_a{};
  std::vector<double> times_b{};
};

Pair pair_of(const BestTrial* a, const BestTrial* b) {
  const StoredTrial& either = (a != nullptr ? a : b)->stored;
  Pair pair;
  ComparisonRow& row = pair.row;
  row.device = either.device;
  row.target = either.toolkit.target;
  row.kernel = either.kernel.name;
  row.problem = either.trial.problem.text();
  if (a != nullptr) {
    row.a = compared_best(*a);
    pair.times_a = counted_times_us(a->stored.trial);
  }
  if (b != nullptr) {
    row.b = compared_best(*b);
    pair.times_b = counted_times_us(b->stored.trial);
  }
  if (row.a && row.b) {
    row.ratio = ratio_of(row.a->best, row.b->best);
    row.same_config = row.a->config == row.b->config;
    row.same_source = row.a->source_hash == row.b->source_hash;
    row.same_toolkit = row.a->toolkit == row.b->toolkit;
    row.same_clock = same_clock(*row.a, *row.b);
  } else {
    row.verdict = row.a ? Verdict::appeared : Verdict::vanished;
  }
  return pair;
}

std::vector<Pair> pairs_of(const std::vector<BestTrial>& of_a, const std::vector<BestTrial>& of_b) {
  std::map<Place, const BestTrial*> unmatched;
  for (const BestTrial& best : of_b) {
    unmatched.emplace(place_of(best), &best);
  }
  std::vector<Pair> pairs;
  for (const BestTrial& best : of_a) {
    const auto match = unmatched.find(place_of(best));
    pairs.push_back(pair_of(&best, match == unmatched.end() ? nullptr : match->second));
    if (match != unmatched.end()) {
      unmatched.erase(match);
    }
  }
  for (const BestTrial& best : of_b) {
    if (unmatched.contains(place_of(best))) {
      pairs.push_back(pair_of(nullptr, &best));
    }
  }
  return pairs;
}

bool has_enough_samples(const Pair& pair) {
  return pair.times_a.size() >= kFewestSamples && pair.times_b.size() >= kFewestSamples;
}

// What can be tested: both sides with enough samples and a ratio of their medians.
void set_p_values(std::vector<Pair>& pairs) {
  std::vector<ComparisonRow*> tested;
  std::vector<double> p_values;
  for (Pair& pair : pairs) {
    if (pair.row.ratio && has_enough_samples(pair)) {
      tested.push_back(&pair.row);
      p_values.push_back(mann_whitney_p(pair.times_a, pair.times_b));
    }
  }
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_value = adjusted[i];
  }
}

Verdict verdict_of(const Pair& pair) {
  const ComparisonRow& row = pair.row;
  if (!row.ratio || !row.p_value) {
    return Verdict::unclear;
  }
  const TimeRatio& ratio = *row.ratio;
  const bool significant = *row.p_value <= kSignificance;
  // Of two wide distributions the one with the lower median may still be the slower one as a rule.
  const double faster = probability_faster(pair.times_a, pair.times_b);
  if (significant && ratio.low > 1 && ratio.value >= 1 + kMinDifference && faster > 0.5) {
    return Verdict::faster;
  }
  if (significant && ratio.high < 1 && 1 / ratio.value >= 1 + kMinDifference && faster < 0.5) {
    return Verdict::slower;
  }
  return ratio.high <= 1 + kSameWithin && 1 / ratio.low <= 1 + kSameWithin ? Verdict::same : Verdict::unclear;
}

// Two devices may have one name.
void label_devices(std::vector<ComparisonRow>& rows) {
  using Identity = std::tuple<std::string, std::string, std::int64_t>;
  const auto identity = [](const DeviceRow& device) {
    return Identity{device.kind, device.compute_capability, device.sm_count};
  };
  std::map<std::string, std::set<Identity>> by_name;
  for (const ComparisonRow& row : rows) {
    by_name[row.device.name].insert(identity(row.device));
  }
  for (ComparisonRow& row : rows) {
    const DeviceRow& device = row.device;
    row.device_label = device.name;
    if (by_name[device.name].size() > 1) {
      row.device_label += fmt::format(" ({} {}, {} SMs)", device.kind, device.compute_capability, device.sm_count);
    }
  }
}

void summarize_rows(ReportComparison& comparison) {
  double sum_of_logs = 0;
  int ratios = 0;
  for (const ComparisonRow& row : comparison.rows) {
    ++comparison.counts[static_cast<std::size_t>(row.verdict)];
    comparison.changed_winners += row.same_config == false ? 1 : 0;
    if (row.ratio) {
      sum_of_logs += std::log(row.ratio->value);
      ++ratios;
    }
  }
  if (ratios > 0) {
    comparison.geometric_mean_ratio = std::exp(sum_of_logs / ratios);
  }
}

}  // namespace

std::string_view name_of(Verdict verdict) noexcept {
  constexpr std::array<std::string_view, kVerdictCount> kNames{"faster",  "slower", "same",
                                                               "unclear", "new",    "vanished"};
  return kNames[static_cast<std::size_t>(verdict)];
}

ReportComparison compare(const Side& a, const Side& b, const ReportOptions& options) {
  const auto best_of = [&](const Side& side) {
    return side.store->best_trials({options.kernel, options.device, side.sessions});
  };
  std::vector<Pair> pairs = pairs_of(best_of(a), best_of(b));
  set_p_values(pairs);
  ReportComparison comparison{a, b, {}, {}, 0, std::nullopt};
  for (Pair& pair : pairs) {
    if (pair.row.a && pair.row.b) {
      pair.row.verdict = verdict_of(pair);
    }
    comparison.rows.push_back(std::move(pair.row));
  }
  label_devices(comparison.rows);
  summarize_rows(comparison);
  return comparison;
}

std::size_t count_regressions(const ReportComparison& comparison, double percent) {
  return static_cast<std::size_t>(
      std::count_if(comparison.rows.begin(), comparison.rows.end(), [percent](const ComparisonRow& row) {
        return row.verdict == Verdict::slower && (1 / row.ratio->value - 1) * 100 > percent;
      }));
}

}  // namespace pascaline
