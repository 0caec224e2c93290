#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace pascaline {

/// `application_id` of a Pascaline database: "Pasc".
inline constexpr std::uint32_t kApplicationId = 0x50617363;

/// SQL that takes a database from version `from` to `from + 1`. It must not begin or commit.
struct Migration {
  int from = 0;
  std::string_view sql;
};

/// What a database must become: an empty one gets `schema`, an older one the steps that lead to `version`.
struct SchemaPlan {
  std::string_view schema;  ///< sets application_id and user_version itself
  int version = 0;
  std::span<const Migration> steps;
};

/// The plan of this program.
[[nodiscard]] SchemaPlan current_schema();

/// SQL of version 1, from which the steps lead to every other.
[[nodiscard]] std::string_view first_schema();

/// `user_version` as this connection sees it.
[[nodiscard]] int schema_version(SQLite::Database& database);

/// Creates or migrates in one immediate transaction, so that of several processes one does it and the others find it
/// done; nothing changes if any of it fails. Throws SQLite::Exception, or Error if the version is unknown, a step
/// is missing or a step leaves dangling references. Foreign keys must still be off: a step may rebuild tables.
void prepare_schema(SQLite::Database& database, const SchemaPlan& plan);

}  // namespace pascaline
