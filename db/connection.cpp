#include "db/connection.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

namespace pascaline {
namespace {

// Of a text or a row. Plans and search spaces, the largest of them, take less than a MiB.
constexpr int kMaxTextBytes = 16 << 20;

// What SQLite finds when it checks a file is several lines.
std::string one_line(std::string_view message) {
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// The first row whose column holds that text: one that stands in `trials` is met through several joins.
std::string place_of(SQLite::Database& database, const BadColumnError& fault) {
  try {
    SQLite::Statement row(
        database, fmt::format("SELECT id FROM {} WHERE {} = ? ORDER BY id LIMIT 1", fault.table(), fault.column()));
    row.bind(1, fault.text());
    if (row.executeStep()) {
      return fmt::format("row {} of table {}", row.getColumn(0).getInt64(), fault.table());
    }
  } catch (const SQLite::Exception&) {
    // A table whose rows have no id, or a file that cannot be read further: the text itself must do.
  }
  return fmt::format("a row of table {}", fault.table());
}

}  // namespace

std::string explain_sqlite(int code, std::string_view message) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "the disk is full; free some space and run again (what was stored before is intact)";
    case SQLITE_IOERR:
      return fmt::format(
          "the disk reported an error ({}, SQLite code {}); check its free space and health (what was stored before is "
          "intact)",
          message, code);
    case SQLITE_CORRUPT:
      return fmt::format("the file is damaged ({}); restore a copy, or rescue its rows with `sqlite3 FILE .recover`",
                         one_line(message));
    case SQLITE_NOTADB:
      return "the file is not an SQLite database; give the path of another file";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process keeps it locked; end that process or try again later";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "it cannot be written; make file and folder writable or give the path of another file";
    case SQLITE_CANTOPEN:
      return "it cannot be opened; the file must be readable, and its folder writable unless it is only read";
    case SQLITE_CONSTRAINT:
      return fmt::format("a value breaks the schema's rules ({}); this is a fault of the program, please report it",
                         message);
    case SQLITE_TOOBIG:
      return fmt::format(
          "a text in it has more than {} MiB, which this program never writes; the file was changed by another "
          "program: "
          "restore a copy",
          kMaxTextBytes >> 20);
    default:
      return fmt::format("{} (SQLite code {})", message, code);
  }
}

void throw_store_error(const std::string& message, int code) {
  const int primary = code & 0xff;
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
    throw StoreBusyError(message, code);
  }
  throw StoreError(message, code);
}

Query::~Query() {
  if (statement_) {
    statement_->tryReset();
    *home_ = std::move(statement_);
  }
}

bool Query::step() {
  column_ = 0;
  return statement_->executeStep();
}

int Query::run() {
  while (statement_->executeStep()) {
  }
  const int changed = statement_->getChanges();
  statement_->reset();
  return changed;
}

std::string Query::text() { return statement_->getColumn(column_++).getString(); }

std::int64_t Query::integer() { return statement_->getColumn(column_++).getInt64(); }

double Query::real() { return statement_->getColumn(column_++).getDouble(); }

std::optional<double> Query::optional_real() {
  const SQLite::Column column = statement_->getColumn(column_++);
  return column.isNull() ? std::nullopt : std::optional<double>(column.getDouble());
}

std::optional<std::int64_t> Query::optional_integer() {
  const SQLite::Column column = statement_->getColumn(column_++);
  return column.isNull() ? std::nullopt : std::optional<std::int64_t>(column.getInt64());
}

void Query::copy_to(Query& to, int index, int count) {
  for (const int end = index + count; index < end; ++index) {
    const SQLite::Column value = statement_->getColumn(column_++);
    if (value.isInteger()) {
      to.bind_at(index, static_cast<std::int64_t>(value.getInt64()));
    } else if (value.isFloat()) {
      to.bind_at(index, value.getDouble());
    } else if (value.isText()) {
      to.bind_at(index, value.getString());
    } else {
      to.statement_->bind(index);
    }
  }
}

Connection::Connection(std::filesystem::path file, SQLite::Database database)
    : file_(std::move(file)), database_(std::move(database)) {
  sqlite3_limit(database_.getHandle(), SQLITE_LIMIT_LENGTH, kMaxTextBytes);
}

Query Connection::query(const std::string& sql) {
  Query::Slot& home = statements_[sql];
  Query::Slot statement = home ? std::move(home) : std::make_unique<SQLite::Statement>(database_, sql);
  return {std::move(statement), home};
}

void Connection::fail(std::string_view action, std::string_view why, int code) const {
  throw_store_error(fmt::format("{}: cannot {}: {}", file_.string(), action, why), code);
}

void Connection::fail_at(std::string_view action, const BadColumnError& fault) {
  constexpr std::size_t kMaxShown = 60;
  const std::string shown = fault.text().size() > kMaxShown ? fault.text().substr(0, kMaxShown) + "…" : fault.text();
  fail(action,
       fmt::format("{} has a value in column {} that this program never writes ('{}'); the file was damaged or "
                   "changed by another program: restore a copy",
                   place_of(database_, fault), fault.column(), shown),
       SQLITE_CORRUPT);
}

}  // namespace pascaline
