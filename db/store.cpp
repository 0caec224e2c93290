#include "db/store.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include "db/connection.hpp"
#include "db/open.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

// The id of a row by its key, inserting it if it is not there. Reading first keeps the common case free of locks;
// when another process inserts in between, the insert does nothing and the second look finds its row.
template <typename... Key, typename... Rest>
std::int64_t find_or_insert(Connection& connection, const std::string& select, const std::string& insert,
                            const std::tuple<Key...>& key, const Rest&... rest) {
  const auto find = [&]() -> std::optional<std::int64_t> {
    Query query = connection.query(select);
    std::apply([&](const auto&... values) { query.bind(values...); }, key);
    return query.step() ? std::optional(query.integer()) : std::nullopt;
  };
  if (const auto id = find()) {
    return *id;
  }
  std::apply([&](const auto&... values) { connection.query(insert).bind(values..., rest...).run(); }, key);
  return find().value();
}

}  // namespace

Store::Store(const std::filesystem::path& file, OpenMode mode, Durability durability)
    : impl_(std::make_unique<Impl>(open_database(file, mode, durability))) {}
Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::scratch_copy(const std::filesystem::path& file) {
  return Store(std::make_unique<Impl>(open_scratch_copy(file)));
}

const std::filesystem::path& Store::file() const noexcept { return impl_->connection->file(); }

void Store::set_busy_timeout(std::chrono::milliseconds longest) {
  impl_->connection->guard("set how long to wait for other processes",
                           [&] { impl_->connection->database().setBusyTimeout(static_cast<int>(longest.count())); });
}

std::int64_t Store::device_id(const DeviceRow& row) {
  return impl_->connection->guard("store the device", [&] {
    return find_or_insert(
        *impl_->connection,
        "SELECT id FROM devices WHERE kind = ? AND name = ? AND compute_capability = ? AND sm_count = ?",
        "INSERT INTO devices (kind, name, compute_capability, sm_count, memory_bytes, limits) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name, compute_capability, sm_count) DO NOTHING",
        std::tie(row.kind, row.name, row.compute_capability, row.sm_count), static_cast<std::int64_t>(row.memory_bytes),
        row.limits_json);
  });
}

std::int64_t Store::toolkit_id(const ToolkitRow& row) {
  return impl_->connection->guard("store the toolkit", [&] {
    return find_or_insert(
        *impl_->connection,
        "SELECT id FROM toolkits WHERE compiler = ? AND version = ? AND target = ? AND driver_version = ?",
        "INSERT INTO toolkits (compiler, version, target, driver_version) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (compiler, version, target, driver_version) DO NOTHING",
        std::tie(row.compiler, row.version, row.target, row.driver_version));
  });
}

std::int64_t Store::kernel_id(const KernelRow& row) {
  return impl_->connection->guard("store the kernel", [&] {
    return find_or_insert(*impl_->connection, "SELECT id FROM kernels WHERE name = ? AND source_hash = ?",
                          "INSERT INTO kernels (name, source_hash) VALUES (?, ?) "
                          "ON CONFLICT (name, source_hash) DO NOTHING",
                          std::tie(row.name, row.source_hash));
  });
}

std::int64_t Store::space_id(const std::string& kernel, const std::string& hash, const std::string& json) {
  return impl_->connection->guard("store the search space", [&] {
    return find_or_insert(
        *impl_->connection, "SELECT id FROM spaces WHERE kernel = ? AND hash = ?",
        "INSERT INTO spaces (kernel, hash, json) VALUES (?, ?, ?) ON CONFLICT (kernel, hash) DO NOTHING",
        std::tie(kernel, hash), json);
  });
}

std::int64_t Store::problem_id(const Problem& problem, double flops, double bytes) {
  Connection& connection = *impl_->connection;
  return connection.guard("store the problem", [&] {
    const std::string text = problem.text();
    const std::int64_t id = find_or_insert(
        connection, "SELECT id FROM problems WHERE text = ?",
        "INSERT INTO problems (text, kernel, dimensions, types, data, flops, bytes) VALUES (?, ?, ?, ?, ?, ?, "
        "?) "
        "ON CONFLICT (text) DO NOTHING",
        std::tie(text), problem.kernel, dimensions_json(problem), types_json(problem), problem.data, flops, bytes);
    // The formula of the work may have been corrected since.
    if (work(text) != std::pair(flops, bytes)) {
      connection.query("UPDATE problems SET flops = ?, bytes = ? WHERE id = ?").bind(flops, bytes, id).run();
    }
    return id;
  });
}

void Store::in_one_transaction(const std::function<void()>& work) {
  Connection& connection = *impl_->connection;
  const auto transaction = connection.guard("begin to store", [&] {
    return std::make_unique<SQLite::Transaction>(connection.database(), SQLite::TransactionBehavior::IMMEDIATE);
  });
  work();  // outside the guard: what it throws is not the store's failure
  connection.guard("store", [&] { transaction->commit(); });
}

std::vector<DeviceRow> Store::devices() const {
  return impl_->connection->guard("read the devices", [&] {
    std::vector<DeviceRow> devices;
    Query row = impl_->connection->query(
        "SELECT kind, name, compute_capability, sm_count, memory_bytes, limits FROM devices ORDER BY id");
    while (row.step()) {
      devices.push_back(read_device(row));
    }
    return devices;
  });
}

std::vector<std::string> Store::kernel_names() const {
  return impl_->connection->guard("read the kernels", [&] {
    std::vector<std::string> names;
    Query row = impl_->connection->query("SELECT DISTINCT name FROM kernels ORDER BY name");
    while (row.step()) {
      names.push_back(row.text());
    }
    return names;
  });
}

std::vector<std::string> Store::problem_texts(const std::string& kernel) const {
  return impl_->connection->guard("read the problems", [&] {
    std::vector<std::string> texts;
    Query row = impl_->connection->query("SELECT text FROM problems WHERE kernel = ? ORDER BY id");
    row.bind(kernel);
    while (row.step()) {
      texts.push_back(row.text());
    }
    return texts;
  });
}

std::optional<std::pair<double, double>> Store::work(const std::string& problem_text) const {
  return impl_->connection->guard("read the work of a problem", [&]() -> std::optional<std::pair<double, double>> {
    Query row = impl_->connection->query("SELECT flops, bytes FROM problems WHERE text = ?");
    if (!row.bind(problem_text).step()) {
      return std::nullopt;
    }
    const double flops = row.real();
    return std::pair(flops, row.real());
  });
}

}  // namespace pascaline
