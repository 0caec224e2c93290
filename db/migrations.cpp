#include "db/migrations.hpp"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"
#include "db/store.hpp"
#include "kSchema1Sql.hpp"
#include "kSchema1To2Sql.hpp"
#include "kSchema2To3Sql.hpp"
#include "kSchema3To4Sql.hpp"
#include "kSchema4To5Sql.hpp"
#include "kSchema5To6Sql.hpp"
#include "kSchema6To7Sql.hpp"
#include "kSchema7To8Sql.hpp"
#include "kSchema8To9Sql.hpp"
#include "kSchemaSql.hpp"

namespace pascaline {
namespace {

constexpr std::array<Migration, 8> kMigrations{{{1, kSchema1To2Sql},
                                                {2, kSchema2To3Sql},
                                                {3, kSchema3To4Sql},
                                                {4, kSchema4To5Sql},
                                                {5, kSchema5To6Sql},
                                                {6, kSchema6To7Sql},
                                                {7, kSchema7To8Sql},
                                                {8, kSchema8To9Sql}}};

bool is_empty(SQLite::Database& database) {
  return database.execAndGet("SELECT count(*) FROM sqlite_schema").getInt() == 0;
}

void migrate(SQLite::Database& database, const SchemaPlan& plan, int from) {
  for (int version = from; version < plan.version; ++version) {
    const auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                                   [&](const Migration& candidate) { return candidate.from == version; });
    if (step == plan.steps.end()) {
      throw Error(fmt::format("version {} of the schema cannot be migrated; only another program version can read it",
                              version));
    }
    database.exec(std::string(step->sql));
    database.exec(fmt::format("PRAGMA user_version = {}", version + 1));
  }
  SQLite::Statement dangling(database, "PRAGMA foreign_key_check");
  if (dangling.executeStep()) {
    throw Error(fmt::format("migrating from version {} would leave dangling references in table {}", from,
                            dangling.getColumn(0).getString()));
  }
}

}  // namespace

SchemaPlan current_schema() { return {kSchemaSql, Store::kSchemaVersion, kMigrations}; }

std::string_view first_schema() { return kSchema1Sql; }

int schema_version(SQLite::Database& database) { return database.execAndGet("PRAGMA user_version").getInt(); }

void prepare_schema(SQLite::Database& database, const SchemaPlan& plan) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const int version = schema_version(database);
  if (version == 0 && is_empty(database)) {
    database.exec(std::string(plan.schema));
  } else if (version > plan.version) {
    throw Error(fmt::format("it has version {} of the schema and this program knows {}; use a newer program", version,
                            plan.version));
  } else if (version < plan.version) {
    migrate(database, plan, version);
  }
  transaction.commit();
}

}  // namespace pascaline
