#pragma once

#include <string>
#include <vector>

#include "db/exchange/recorded_space.hpp"

namespace pascaline::testing {

/// A space of one parameter X with these times in microseconds; one that is 0 or less did not compile. Every trial cost
/// `cost_ms`.
[[nodiscard]] RecordedSpace recorded_times(const std::vector<double>& times_us, double cost_ms = 0);

/// What a bowl over X, Y and Z of eight values each would record, with ripples; `failing` of a hundred fail.
[[nodiscard]] RecordedSpace recorded_bowl(const std::string& name, int failing = 0, double cost_ms = 0);

/// Gives each configuration that is `ok` so many launches, whose times lie by up to `spread` of it around its time,
/// half of them below it.
void record_launches(RecordedSpace& space, int launches, double spread);

/// The table of that space as a file has it.
[[nodiscard]] std::string table_of(const RecordedSpace& space);

}  // namespace pascaline::testing
