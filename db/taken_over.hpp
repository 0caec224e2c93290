#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pascaline {

/// What the search of a problem took over from another device of the same kind, or from its own device's measurements
/// of other element types. Sessions keep it with their options, for people to be told.
struct TakenOver {
  std::string problem;       ///< that was searched, as Problem::text
  std::string device;        ///< name of the one that measured
  std::string measured;      ///< the problem whose trials were taken over: the same or one near it
  std::int64_t trials = 0;   ///< usable ones that the search's expectation began with; 0: none
  bool winner = false;       ///< whether its winner there was among the first configurations to be proposed
  bool other_types = false;  ///< whether it is the device that searched, and `measured` has other element types
  friend bool operator==(const TakenOver&, const TakenOver&) = default;
};

/// As `taken_over_of` reads it, for a session's options under the key "other_devices".
[[nodiscard]] nlohmann::json taken_over_json(const std::vector<TakenOver>& taken_over);

/// What a session's options (SessionRow::options_json) say of the search of a problem, given as its text. Entries that
/// are not what `taken_over_json` writes are left out, as anybody may have written the file.
[[nodiscard]] std::vector<TakenOver> taken_over_of(const std::string& options_json, const std::string& problem);

/// "what NVIDIA P40 measured of this shape (143 trials), its winner among the first": how a sentence about the search
/// goes on; names are as they are stored.
[[nodiscard]] std::string taken_over_text(const TakenOver& taken_over);

}  // namespace pascaline
