#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "db/exchange/recorded_space.hpp"

namespace pascaline {

/// Reads a recorded space, plain or packed with gzip; what the file holds is told from its contents:
/// - a cache of Kernel Tuner (JSON). One that an interrupted run left without its end counts up to its last whole
/// entry;
/// - T4 results 1.x (JSON);
/// - results of CLBlast's tuners and of KTT (JSON);
/// - a table (csv): the parameters' columns, then `time_ms`, `status`, `eval_cost_ms`, which becomes `measure_ms`.
/// Throws SpaceError naming the file and the place (line and column, JSON pointer, or row with the heading as row 1),
/// Error if the file cannot be read.
[[nodiscard]] RecordedSpace read_recorded_space(const std::filesystem::path& file);

/// As above, of a file's unpacked contents; `file` stands for it in messages.
[[nodiscard]] RecordedSpace parse_recorded_space(std::string_view text, const std::string& file);

}  // namespace pascaline
