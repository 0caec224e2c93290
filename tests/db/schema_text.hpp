#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>

#include "db/migrations.hpp"
#include "db/store.hpp"

namespace pascaline::testing {

/// Every object's SQL by name, without comments, spaces and quotes (SQLite puts the name of a renamed table into some):
/// all of what columns, checks and references mean.
inline std::map<std::string, std::string> schema_of(SQLite::Database& database) {
  std::map<std::string, std::string> schema;
  SQLite::Statement row(database, "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL");
  while (row.executeStep()) {
    const std::string bare = std::regex_replace(row.getColumn(1).getString(), std::regex("--[^\n]*"), "");
    schema[row.getColumn(0).getString()] = std::regex_replace(bare, std::regex("[\\s\"]+"), "");
  }
  return schema;
}

inline std::string columns_of(SQLite::Database& database, const std::string& table) {
  std::string columns;
  SQLite::Statement row(database,
                        "SELECT name, type, \"notnull\", coalesce(dflt_value, '-'), pk FROM "
                        "pragma_table_info('" +
                            table + "') ORDER BY cid");
  while (row.executeStep()) {
    for (int i = 0; i < 5; ++i) {
      columns += row.getColumn(i).getString() + (i < 4 ? " " : "\n");
    }
  }
  return columns;
}

/// Fails the test unless the migrated database is made as a new one is, and is sound.
inline void expect_same_schema(SQLite::Database& migrated, SQLite::Database& fresh) {
  EXPECT_EQ(schema_version(migrated), Store::kSchemaVersion);
  EXPECT_EQ(schema_of(migrated), schema_of(fresh));
  for (const std::string table : {"devices", "imports", "sessions", "plans", "plan_kernels", "plan_problems",
                                  "plan_calls", "plan_paths", "attempts", "trials", "samples", "telemetry", "winners",
                                  "probes", "probe_values", "probe_chains", "trial_details"}) {
    EXPECT_FALSE(columns_of(fresh, table).empty()) << table;
    EXPECT_EQ(columns_of(migrated, table), columns_of(fresh, table)) << table;
  }
  EXPECT_EQ(migrated.execAndGet("PRAGMA integrity_check").getString(), "ok");
  EXPECT_FALSE(SQLite::Statement(migrated, "PRAGMA foreign_key_check").executeStep());
}

}  // namespace pascaline::testing
