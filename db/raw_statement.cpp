#include "db/raw_statement.hpp"

namespace pascaline {

RawStatement::RawStatement(Connection& connection, const std::string& sql)
    : database_(connection.database().getHandle()) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  check(code);
}

void RawStatement::check(int code) const {
  if (code != SQLITE_OK) {
    throw SQLite::Exception(database_, code);
  }
}

bool RawStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) {
    throw SQLite::Exception(database_, code);
  }
  return code == SQLITE_ROW;
}

void RawStatement::run() {
  while (step()) {
  }
  check(sqlite3_reset(statement_.get()));
}

void RawStatement::bind_columns(int index, const RawStatement& from, int column, int count) {
  for (int i = 0; i < count; ++i) {
    check(sqlite3_bind_value(statement_.get(), index + i, sqlite3_column_value(from.statement_.get(), column + i)));
  }
}

std::string_view RawStatement::text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void RawStatement::give(sqlite3_context* result, int column) const {
  sqlite3_stmt* const row = statement_.get();
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      return sqlite3_result_int64(result, sqlite3_column_int64(row, column));
    case SQLITE_FLOAT:
      return sqlite3_result_double(result, sqlite3_column_double(row, column));
    case SQLITE_TEXT: {
      const std::string_view value = text(column);
      return sqlite3_result_text(result, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    }
    case SQLITE_NULL:
      return sqlite3_result_null(result);
    default:
      return sqlite3_result_value(result, sqlite3_column_value(row, column));
  }
}

void RawStatement::append_to(std::string& bytes, int column, int count) const {
  sqlite3_stmt* const row = statement_.get();
  const auto append = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (const int end = column + count; column < end; ++column) {
    const int type = sqlite3_column_type(row, column);
    bytes += static_cast<char>(type);
    if (type == SQLITE_INTEGER) {
      append(sqlite3_column_int64(row, column));
    } else if (type == SQLITE_FLOAT) {
      append(sqlite3_column_double(row, column));
    } else if (type != SQLITE_NULL) {
      const std::string_view value = text(column);
      append(value.size());
      bytes += value;
    }
  }
}

}  // namespace pascaline
