#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "db/merge_rows.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"
#include "db/stored_probe.hpp"

namespace pascaline {
namespace {

std::string left_out_json(const Probe& probe) {
  nlohmann::json parts = nlohmann::json::array();
  for (const auto& [part, reason] : probe.left_out) {
    parts.push_back({name_of(part), reason});
  }
  return parts.dump();
}

void read_left_out(const std::string& text, Probe& probe) {
  const nlohmann::json parts = nlohmann::json::parse(text, nullptr, false);
  if (!parts.is_array()) {
    throw BadColumnError("probes", "left_out", text);
  }
  for (const nlohmann::json& pair : parts) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      throw BadColumnError("probes", "left_out", text);
    }
    const auto name = pair[0].get<std::string>();
    probe.left_out.emplace_back(known(probe_part_from(name), name), pair[1].get<std::string>());
  }
}

void insert_values(Connection& connection, std::int64_t id, const Probe& probe) {
  Query value = connection.query(
      "INSERT INTO probe_values (probe_id, quantity, median, low, high, spread, samples, steady) VALUES "
      "(?,?,?,?,?,?,?,?)");
  for (const ProbeValue& each : probe.values) {
    value
        .bind(id, info_of(each.quantity).name, each.median, each.low, each.high, each.spread, each.samples, each.steady)
        .run();
  }
  Query chain = connection.query(
      "INSERT INTO probe_chains (probe_id, ordinal, variant, conflicts, slots, low, high, samples) VALUES "
      "(?,?,?,?,?,?,?,?)");
  std::int64_t ordinal = 0;
  for (const ProbeChain& each : probe.chains) {
    chain.bind(id, ordinal++, each.variant, each.conflicts, each.slots, each.low, each.high, each.samples).run();
  }
}

void read_values(Connection& connection, std::int64_t id, Probe& probe) {
  Query value = connection.query(
      "SELECT quantity, median, low, high, spread, samples, steady FROM probe_values WHERE probe_id = ?");
  value.bind(id);
  while (value.step()) {
    const std::string name = value.text();
    ProbeValue each;
    each.quantity = known(probe_quantity_from(name), name);
    each.median = value.real();
    each.low = value.real();
    each.high = value.real();
    each.spread = value.real();
    each.samples = static_cast<int>(value.integer());
    each.steady = value.flag();
    probe.values.push_back(each);
  }
  std::sort(probe.values.begin(), probe.values.end(),
            [](const ProbeValue& a, const ProbeValue& b) { return a.quantity < b.quantity; });
  Query chain = connection.query(
      "SELECT variant, conflicts, slots, low, high, samples FROM probe_chains WHERE probe_id = ? ORDER BY ordinal");
  chain.bind(id);
  while (chain.step()) {
    ProbeChain each;
    each.variant = chain.text();
    each.conflicts = chain.real();
    each.slots = chain.real();
    each.low = chain.real();
    each.high = chain.real();
    each.samples = static_cast<int>(chain.integer());
    probe.chains.push_back(std::move(each));
  }
}

StoredProbe read_probe(Query& row) {
  StoredProbe stored;
  stored.id = row.integer();
  Probe& probe = stored.probe;
  probe.uuid = row.text();
  probe.device_uuid = row.text();
  probe.program_version = row.text();
  probe.started_unix_ms = row.integer();
  probe.finished_unix_ms = row.integer();
  probe.temperature_c = row.optional_real();
  probe.throttled = row.flag();
  read_left_out(row.text(), probe);
  stored.device = read_device(row);
  stored.toolkit = read_toolkit(row);
  return stored;
}

// Of one device, or of all.
std::vector<StoredProbe> read_probes(Connection& connection, const DeviceRow* device) {
  const std::string of_device =
      device == nullptr ? "" : "WHERE d.kind = ? AND d.name = ? AND d.compute_capability = ? AND d.sm_count = ? ";
  Query row = connection.query(
      "SELECT p.id, p.uuid, p.device_uuid, p.program_version, p.started_unix_ms, p.finished_unix_ms, "
      "p.temperature_c, p.throttled, p.left_out, d.kind, d.name, d.compute_capability, d.sm_count, d.memory_bytes, "
      "d.limits, t.compiler, t.version, t.target, t.driver_version FROM probes p JOIN devices d ON d.id = "
      "p.device_id JOIN toolkits t ON t.id = p.toolkit_id " +
      of_device + "ORDER BY p.started_unix_ms DESC, p.id DESC");
  if (device != nullptr) {
    row.bind(device->kind, device->name, device->compute_capability, device->sm_count);
  }
  std::vector<StoredProbe> probes;
  while (row.step()) {
    probes.push_back(read_probe(row));
    read_values(connection, probes.back().id, probes.back().probe);
  }
  return probes;
}

}  // namespace

void check_probes(Connection& from) { std::ignore = read_probes(from, nullptr); }

std::int64_t Store::add_probe(Probe& probe, std::int64_t device_id, std::int64_t toolkit_id) {
  return impl_->connection->guard("store what a probe found", [&] {
    probe.uuid = probe.uuid.empty() ? new_run() : probe.uuid;
    std::int64_t id = 0;
    impl_->transact([&] {
      impl_->connection
          ->query(
              "INSERT INTO probes (uuid, device_id, toolkit_id, device_uuid, program_version, started_unix_ms, "
              "finished_unix_ms, temperature_c, throttled, left_out) VALUES (?,?,?,?,?,?,?,?,?,?)")
          .bind(probe.uuid, device_id, toolkit_id, probe.device_uuid, probe.program_version, probe.started_unix_ms,
                probe.finished_unix_ms, probe.temperature_c, probe.throttled, left_out_json(probe))
          .run();
      id = impl_->connection->database().getLastInsertRowid();
      insert_values(*impl_->connection, id, probe);
    });
    return id;
  });
}

std::vector<StoredProbe> Store::probes(const DeviceRow* device) const {
  return impl_->connection->guard("read what probes found", [&] { return read_probes(*impl_->connection, device); });
}

MeasuredRates Store::measured_rates(const DeviceRow& device) const {
  std::vector<Probe> found;
  for (StoredProbe& stored : probes(&device)) {
    found.push_back(std::move(stored.probe));
  }
  return pascaline::measured_rates(found);
}

}  // namespace pascaline
