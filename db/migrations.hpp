#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace pascaline {

/// `application_id` of a Pascaline database: "Pscl".
inline constexpr std::uint32_t kApplicationId = 0x5073636c;

/// How a database becomes what the program reads: `first` makes version 1 of an empty one, and each migration takes
/// the version before to its own. None of them may begin or commit.
struct SchemaSteps {
  std::string_view first;  ///< sets application_id and user_version itself
  std::span<const std::string_view> migrations;

  [[nodiscard]] int version() const noexcept { return 1 + static_cast<int>(migrations.size()); }
};

/// The plan of this program.
[[nodiscard]] SchemaSteps current_schema();

/// `user_version` as this connection sees it.
[[nodiscard]] int schema_version(SQLite::Database& database);

/// Throws Error unless the plan leads from that version to its own.
void require_version(int version, const SchemaSteps& plan);

/// Creates or migrates in one immediate transaction, so that of several processes one does it and the others find it
/// done; nothing changes if any of it fails. Throws SQLite::Exception, or Error if the version is unknown or a
/// migration leaves dangling references. Foreign keys must still be off: a migration may rebuild tables.
void prepare_schema(SQLite::Database& database, const SchemaSteps& plan);

}  // namespace pascaline
