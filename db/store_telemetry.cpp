#include "db/store_impl.hpp"

namespace pascaline {

void Store::Impl::insert_telemetry(std::int64_t session_id, const TelemetryRow& row) {
  connection
      ->query(
          "INSERT INTO telemetry (session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
          "throttle_reasons, governor_state, canary_us) VALUES (?,?,?,?,?,?,?,?,?)")
      .bind(session_id, row.unix_ms, row.temperature_c, row.sm_clock_mhz, row.memory_clock_mhz, row.power_w,
            row.throttle_reasons, row.governor_state, row.canary_us)
      .run();
}

void Store::add_telemetry(std::int64_t session_id, const TelemetryRow& row) {
  impl_->connection->guard("store a sensor reading", [&] { impl_->insert_telemetry(session_id, row); });
}

std::vector<TelemetryRow> Store::telemetry(std::int64_t session_id) const {
  return impl_->connection->guard("read the sensor readings", [&] {
    // By id: the system's clock may have stepped back.
    Query row = impl_->connection->query(
        "SELECT unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, throttle_reasons, governor_state, "
        "canary_us FROM telemetry WHERE session_id = ? ORDER BY id");
    row.bind(session_id);
    std::vector<TelemetryRow> readings;
    while (row.step()) {
      TelemetryRow reading;
      reading.unix_ms = row.integer();
      reading.temperature_c = row.optional_real();
      reading.sm_clock_mhz = row.optional_real();
      reading.memory_clock_mhz = row.optional_real();
      reading.power_w = row.optional_real();
      reading.throttle_reasons = row.optional_integer();
      reading.governor_state = row.text();
      reading.canary_us = row.optional_real();
      readings.push_back(std::move(reading));
    }
    return readings;
  });
}

}  // namespace pascaline
