#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "db/connection.hpp"

namespace pascaline {

/// A prepared statement for loops over millions of rows: values go from one to another as SQLite holds them. For all
/// else there is Query. Throws SQLite::Exception.
class RawStatement {
 public:
  RawStatement(Connection& connection, const std::string& sql);

  /// Moves to the next row; false at the end.
  bool step();
  /// Executes to the end and resets, so that it can be bound and run again.
  void run();
  void bind(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_.get(), index, value)); }
  void bind_null(int index) { check(sqlite3_bind_null(statement_.get(), index)); }
  /// Binds `count` columns of the row that `from` is at, from `column` on, to the parameters from `index` on.
  void bind_columns(int index, const RawStatement& from, int column, int count);

  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  [[nodiscard]] double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  /// Until the next step.
  [[nodiscard]] std::string_view text(int column) const;
  /// SQLITE_INTEGER, SQLITE_FLOAT, ...
  [[nodiscard]] int type(int column) const { return sqlite3_column_type(statement_.get(), column); }
  [[nodiscard]] bool is_null(int column) const { return type(column) == SQLITE_NULL; }
  [[nodiscard]] int columns() const { return sqlite3_column_count(statement_.get()); }
  [[nodiscard]] std::string_view name(int column) const { return sqlite3_column_name(statement_.get(), column); }
  /// Makes the column, as it is, the result of a column of a virtual table; a text of it counts until the next step.
  void give(sqlite3_context* result, int column) const;
  /// Appends `count` columns from `column` on, with their types and lengths: equal bytes mean equal values.
  void append_to(std::string& bytes, int column, int count) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  void check(int code) const;

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace pascaline
