#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "db/exchange/recorded_space.hpp"

namespace pascaline {

/// Values of one parameter: what equals another as a number (1, 1.0, true) is one value.
class ValueIndex {
 public:
  /// The value's index, adding it if it is new.
  std::size_t add(const Value& value);
  /// Its index, or `kNone`.
  [[nodiscard]] std::size_t find(const Value& value) const;
  [[nodiscard]] const std::vector<Value>& values() const noexcept { return values_; }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

 private:
  std::vector<Value> values_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// Text that is the same for values that are equal as numbers.
[[nodiscard]] std::string value_key(const Value& value);

/// Builds a RecordedSpace out of what a reader finds. `Complain` throws, naming the place that is being read.
class SpaceBuilder {
 public:
  using Complain = std::function<void(const std::string& problem)>;
  static constexpr std::size_t kMaxValues = 65535;
  static constexpr std::size_t kMaxParameters = 1000;
  static constexpr double kMaxTimeMs = 1e12;  ///< of a configuration's time
  static constexpr double kMaxCostMs = 1e15;  ///< of all that a configuration cost

  explicit SpaceBuilder(std::string format) { space_.format = std::move(format); }

  [[nodiscard]] RecordedSpace& space() noexcept { return space_; }
  /// A parameter; without values, all those that trials have are its values.
  void add_parameter(const std::string& name, const std::vector<Value>& values, const Complain& complain);
  [[nodiscard]] std::size_t parameters() const noexcept { return space_.parameters.size(); }
  /// Adds a trial with these values, in the parameters' order; `place` is how later messages name it. The same
  /// configuration with the same outcome again is left out, with another it is complained of, as of times and costs
  /// beyond the limits above.
  void add(RecordedTrial trial, std::span<const Value> values, const std::string& place, const Complain& complain);
  /// Counts an entry that worked but has no positive time.
  void leave_out() noexcept { ++space_.left_out; }
  /// Complains if there is no trial.
  void require_trials(const Complain& complain) const;
  /// The space, values that were only seen in order: numbers ascending, others as they came.
  [[nodiscard]] RecordedSpace finish();

 private:
  void sort_values(std::size_t parameter);

  RecordedSpace space_;
  std::vector<ValueIndex> indices_;
  std::vector<bool> declared_;
  std::unordered_map<std::string, std::size_t> known_;  // configuration to trial
  std::vector<std::string> places_;                     // of the trials
};

/// The file's name without folders, `.gz` and one more ending.
[[nodiscard]] std::string space_name(const std::string& file);

/// The status of a failure by the names that the formats have for it: T4's invalidities, Kernel Tuner's classes,
/// KTT's statuses, and Pascaline's own; nothing for another.
[[nodiscard]] std::optional<TrialStatus> status_of_failure(std::string_view name) noexcept;

/// The first line of a text, of bounded length, with only valid UTF-8: for `RecordedTrial::reason`.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace pascaline
