#include <fmt/format.h>
#include <sqlite3.h>

#include "db/results.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kImporting = "import results";

bool is_imported(Connection& connection, const std::string& content_hash) {
  return connection.query("SELECT 1 FROM imports WHERE kind = 'results' AND content_hash = ?")
      .bind(content_hash)
      .step();
}

std::int64_t insert_import(Connection& connection, const ImportedResults& results) {
  connection
      .query(
          "INSERT INTO imports (kind, source, content_hash, imported_unix_ms, program_version) VALUES "
          "('results', ?, ?, ?, ?)")
      .bind(results.source, results.content_hash, unix_ms_now(), results.session.program_version)
      .run();
  return connection.database().getLastInsertRowid();
}

// It was never a process of this machine and has no command to resume with.
std::int64_t insert_results_session(Connection& connection, const ImportedResults& results, const ContextIds& context) {
  const std::int64_t import_id = insert_import(connection, results);
  const SessionRow& session = results.session;
  connection
      .query(
          "INSERT INTO sessions (uuid, device_id, toolkit_id, device_uuid, process_id, process_start, boot_id, "
          "started_unix_ms, finished_unix_ms, state, searcher, seed, options, command_line, program_version, "
          "run_uuid, spent_ms, import_id) VALUES (?, ?, ?, '', 0, 0, '', ?, ?, 'finished', ?, 0, ?, ?, ?, ?, ?, ?)")
      .bind(session.uuid, context.device, context.toolkit, session.started_unix_ms,
            session.finished_unix_ms.value_or(session.started_unix_ms), session.searcher, session.options_json,
            session.command_line, session.program_version, session.uuid, session.spent_ms, import_id)
      .run();
  return connection.database().getLastInsertRowid();
}

}  // namespace

std::optional<std::int64_t> Store::add_results(const ImportedResults& results) {
  Connection& connection = *impl_->connection;
  return connection.guard(kImporting, [&]() -> std::optional<std::int64_t> {
    if (results.device.kind != "foreign") {
      connection.fail(kImporting,
                      fmt::format("their device is of kind '{}' and would count as measured here; this is a fault of "
                                  "the program, please report it",
                                  results.device.kind),
                      SQLITE_MISUSE);
    }
    std::optional<std::int64_t> session;
    impl_->transact([&] {
      if (is_imported(connection, results.content_hash)) {
        return;
      }
      ContextIds context;
      context.device = device_id(results.device);
      context.toolkit = toolkit_id(results.toolkit);
      context.kernel = kernel_id(results.kernel);
      context.space = space_id(results.kernel.name, results.space_hash, results.space_json);
      // The work of another tuner's kernel is not known, and what is known of a shape of that text stays.
      const auto [flops, bytes] = work(results.problem.text()).value_or(std::pair(0.0, 0.0));
      context.problem = problem_id(results.problem, flops, bytes);
      session = insert_results_session(connection, results, context);
      for (const Trial& trial : results.trials) {
        impl_->insert_trial(*session, context, trial);
      }
    });
    return session;
  });
}

}  // namespace pascaline
