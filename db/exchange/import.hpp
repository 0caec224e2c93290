#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "db/exchange/recorded_space.hpp"
#include "db/results.hpp"

namespace pascaline {

/// A file of results of another tuner, ready to be stored.
struct ResultsFile {
  std::filesystem::path file;
  std::string format;  ///< as of RecordedSpace
  ImportedResults results;
  std::size_t left_out = 0;  ///< as of RecordedSpace
};

/// Results of another tuner as rows of a database: a session of its own, whose uuid is made of the content's hash, on a
/// device of kind "foreign" with the file's device name; toolkit named after the format; kernel source
/// "imported:HASH", so that nothing of them is ever taken for measured here; X, Y, Z of the problem from the numbers of
/// its size. A trial's time is the median of its samples, else what the file calls its time (no samples are counted
/// then). What the framework cost is part of `measure_ms`.
[[nodiscard]] ImportedResults imported_results(const RecordedSpace& space, const std::string& source,
                                               const std::string& content_hash, const std::string& command_line);

/// Reads a file as `read_recorded_space` does and throws as that; a database is referred to `pascaline merge`. Packed
/// and unpacked files of equal contents have one hash.
[[nodiscard]] ResultsFile read_results(const std::filesystem::path& file, const std::string& command_line);

}  // namespace pascaline
