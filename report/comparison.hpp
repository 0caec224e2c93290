#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "db/store.hpp"
#include "report/report.hpp"

namespace pascaline {

/// One of the two that are compared: a database, or sessions of one.
struct Side {
  const Store* store = nullptr;          ///< not owned
  std::vector<std::int64_t> sessions{};  ///< empty: all
};

/// "tuned.db", "session 3 of tuned.db" or "sessions 3 and 4 of tuned.db".
[[nodiscard]] std::string side_label(const Side& side);

/// The sessions that a word names: the one with that id, else the one with that uuid or those of the run with that
/// uuid, of which the first characters (four or more) are enough. Throws Error, naming sessions that there are, if it
/// names none or several.
[[nodiscard]] std::vector<std::int64_t> find_sessions(const Store& store, const std::string& word);

/// What `a` is, seen from `b`. `unclear`: the samples are too few or too scattered to tell.
enum class Verdict : std::uint8_t { faster, slower, same, unclear, appeared, vanished };

inline constexpr std::size_t kVerdictCount = 6;

/// "faster", …; `appeared` is "new".
[[nodiscard]] std::string_view name_of(Verdict verdict) noexcept;

/// The best of a problem on one side.
struct ComparedBest {
  TimeSummary best;
  std::optional<TimeSummary> baseline;  ///< of the default configuration
  Config config;
  std::string source_hash;
  ToolkitRow toolkit;
  std::int64_t trial_id = 0;           ///< in that side's database
  bool decided = false;                ///< in finals
  std::optional<double> sm_clock_mhz;  ///< mean over its counted samples
};

/// b's time over a's: above 1, a is faster. Bounds are the widest that the two 95 % intervals of the medians allow.
struct TimeRatio {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// One problem on one device for one target; devices and targets are never mixed.
struct ComparisonRow {
  DeviceRow device;
  std::string device_label;  ///< its name, with what tells it from another device of that name
  std::string target;
  std::string kernel;
  std::string problem;  ///< Problem::text()
  Verdict verdict = Verdict::unclear;
  std::optional<ComparedBest> a;
  std::optional<ComparedBest> b;
  std::optional<TimeRatio> ratio;  ///< nothing where a side or a positive time is missing
  std::optional<double> p_value;   ///< adjusted for the number of rows; nothing where samples are too few
  // Nothing where a side is missing or does not tell.
  std::optional<bool> same_config;
  std::optional<bool> same_source;
  std::optional<bool> same_toolkit;
  std::optional<bool> same_clock;  ///< the mean SM clocks differ by no more than 1 %
};

/// A comparison of `a`, what is reported, with `b`, what was before.
struct ReportComparison {
  Side a;
  Side b;
  std::vector<ComparisonRow> rows;  ///< in the order of a's database, then what only b has
  std::array<std::size_t, kVerdictCount> counts{};
  std::size_t changed_winners = 0;             ///< rows whose two configurations differ
  std::optional<double> geometric_mean_ratio;  ///< over the rows that have a ratio
};

/// Compares the best trial of each problem (Store::best_trials) by the samples of both. A problem is called faster or
/// slower only if the medians differ by 1 % at least, their 95 % intervals do not overlap and the Mann-Whitney test,
/// adjusted after Holm for all rows, gives 0.05 or less; it is the same if the two intervals leave room for no more
/// than 5 % either way; anything else, and a side with fewer than 6 counted samples, is unclear. Throws StoreError.
[[nodiscard]] ReportComparison compare(const Side& a, const Side& b, const ReportOptions& options = {});

/// Problems that are slower by more than that many percent of b's time.
[[nodiscard]] std::size_t count_regressions(const ReportComparison& comparison, double percent);

/// The member `comparison` of the report document (docs/report.md).
[[nodiscard]] nlohmann::ordered_json comparison_json(const ReportComparison& comparison);

/// A section of Markdown, headings from the second level on: regressions, improvements, what is new, vanished or has
/// another winner.
[[nodiscard]] std::string markdown_comparison(const ReportComparison& comparison);

}  // namespace pascaline
