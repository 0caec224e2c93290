#pragma once

#include <string>

#include "db/exchange/recorded_space.hpp"

namespace pascaline {

/// The space as T4 results 1.0.0, times in milliseconds, its six invalidities from the statuses: `launch_failed`
/// and `crashed` are both `runtime`. Each result carries `compilation_time` and `compilation`; a failed one has, beside
/// the format's members, `pascaline` with its status and reason. `read_recorded_space` gives the same trials back.
[[nodiscard]] std::string t4_json(const RecordedSpace& space);

/// The space as a table: parameters, `time_ms` (empty if it failed), `status` (`ok`, T4's invalidities, `crashed`),
/// `eval_cost_ms`. `read_recorded_space` gives the same outcomes back, durations as one and without samples.
[[nodiscard]] std::string recorded_csv(const RecordedSpace& space);

}  // namespace pascaline
