#pragma once

#include <SQLiteCpp/Database.h>

#include <string_view>

namespace pascaline {

/// Makes the connection one that a file can hardly misuse: triggers do not fire, no library is loaded, and the schema
/// cannot be written by hand. To be called before anything is read.
void distrust(SQLite::Database& database);

/// Compares the file's schema, object by object, with what this program makes at the file's version: its tables,
/// columns, checks, indexes and views, and nothing else, as all of those may hold code that SQLite would run. Reads the
/// schema only, at one moment; an empty database passes. Throws Error saying the version if this program does not know
/// it, or naming the first object that is more, missing or different.
void require_known_schema(SQLite::Database& database);

/// SQL's words, one space between them: comments, layout and quotes of plain names left out, so that the same statement
/// gives the same text however it was written.
[[nodiscard]] std::string plain_sql(std::string_view sql);

}  // namespace pascaline
