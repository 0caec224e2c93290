#include "db/migrations.hpp"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "core/error.hpp"
#include "kSchemaSql.hpp"

namespace pascaline {
namespace {

// The first one also needs a way to read files of the version before it, which opening for reading does not migrate.
constexpr std::array<std::string_view, 0> kMigrations{};

bool is_empty(SQLite::Database& database) {
  return database.execAndGet("SELECT count(*) FROM sqlite_schema").getInt() == 0;
}

void migrate(SQLite::Database& database, const SchemaSteps& plan, int from) {
  for (int version = from; version < plan.version(); ++version) {
    database.exec(std::string(plan.migrations[static_cast<std::size_t>(version) - 1]));
    database.exec(fmt::format("PRAGMA user_version = {}", version + 1));
  }
  SQLite::Statement dangling(database, "PRAGMA foreign_key_check");
  if (dangling.executeStep()) {
    throw Error(fmt::format("migrating from version {} would leave dangling references in table {}", from,
                            dangling.getColumn(0).getString()));
  }
}

}  // namespace

SchemaSteps current_schema() { return {kSchemaSql, kMigrations}; }

int schema_version(SQLite::Database& database) { return database.execAndGet("PRAGMA user_version").getInt(); }

void require_version(int version, const SchemaSteps& plan) {
  if (version < 1 || version > plan.version()) {
    throw Error(
        fmt::format("it has version {} of the schema, which this program (version {}) neither reads nor "
                    "converts; give the path of a new file",
                    version, plan.version()));
  }
}

void prepare_schema(SQLite::Database& database, const SchemaSteps& plan) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  if (schema_version(database) == 0 && is_empty(database)) {
    database.exec(std::string(plan.first));
  }
  const int version = schema_version(database);
  require_version(version, plan);
  if (version < plan.version()) {
    migrate(database, plan, version);
  }
  transaction.commit();
}

}  // namespace pascaline
