#include <map>

#include "db/merge_rows.hpp"
#include "db/raw_statement.hpp"

namespace pascaline {
namespace {

constexpr int kReadingColumns = 8;

// How often each reading is here already, of the sessions that were known.
std::map<std::string, int> known_readings(Merge& merge) {
  std::map<std::string, int> known;
  RawStatement row(merge.to,
                   "SELECT session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
                   "throttle_reasons, governor_state, canary_us FROM telemetry WHERE session_id = ?");
  for (const std::int64_t session : merge.known_sessions) {
    row.bind(1, session);
    while (row.step()) {
      std::string bytes;
      row.append_to(bytes, 0, 1 + kReadingColumns);
      ++known[bytes];
    }
    row.run();
  }
  return known;
}

}  // namespace

// As of trials, of equal readings of a session there are as many as on the side that has more.
void merge_telemetry(Merge& merge) {
  std::map<std::string, int> known = known_readings(merge);
  RawStatement row = merge_reading(merge.from, [&] {
    return RawStatement(merge.from,
                        "SELECT session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
                        "throttle_reasons, governor_state, canary_us FROM telemetry ORDER BY id");
  });
  RawStatement insert(merge.to,
                      "INSERT INTO telemetry (session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, "
                      "power_w, throttle_reasons, governor_state, canary_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  while (merge_reading(merge.from, [&] { return row.step(); })) {
    const std::int64_t session = merged_id(merge, merge.sessions, row.integer(0), "sessions");
    if (merge.known_sessions.contains(session)) {
      std::string bytes(1, static_cast<char>(SQLITE_INTEGER));
      bytes.append(reinterpret_cast<const char*>(&session), sizeof(session));
      row.append_to(bytes, 1, kReadingColumns);
      if (const auto here = known.find(bytes); here != known.end() && here->second > 0) {
        --here->second;
        continue;
      }
    }
    insert.bind(1, session);
    insert.bind_columns(2, row, 1, kReadingColumns);
    insert.run();
    ++merge.counts.readings;
    merge.grown_sessions.insert(session);
  }
}

}  // namespace pascaline
