#include "db/coming_rows.hpp"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

namespace pascaline {

/// What SQLite calls, https://www.sqlite.org/vtab.html. It has no xCreate: the table is there without being made.
struct ComingRows::Module {
  struct Table : sqlite3_vtab {
    ComingRows* rows = nullptr;
  };
  struct Cursor : sqlite3_vtab_cursor {
    ComingRows* rows = nullptr;
    bool at_row = false;
    std::int64_t number = 0;
  };

  static int connect(sqlite3* database, void* rows, int, const char* const*, sqlite3_vtab** table, char**) {
    auto* const coming = static_cast<ComingRows*>(rows);
    try {
      std::string columns = "CREATE TABLE x(c0";
      for (int i = 1; i < static_cast<int>(coming->own_.size()) + coming->count_; ++i) {
        columns += fmt::format(", c{}", i);
      }
      const int code = sqlite3_declare_vtab(database, (columns + ")").c_str());
      if (code != SQLITE_OK) {
        return code;
      }
      auto made = std::make_unique<Table>();
      made->rows = coming;
      *table = made.release();
      return SQLITE_OK;
    } catch (const std::bad_alloc&) {
      return SQLITE_NOMEM;
    }
  }
  static int disconnect(sqlite3_vtab* table) {
    const std::unique_ptr<Table> ended(static_cast<Table*>(table));
    return SQLITE_OK;
  }
  static int plan(sqlite3_vtab*, sqlite3_index_info* plan) {
    plan->estimatedCost = 1e6;
    return SQLITE_OK;
  }
  static int open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
    auto made = std::unique_ptr<Cursor>(new (std::nothrow) Cursor);
    if (!made) {
      return SQLITE_NOMEM;
    }
    made->rows = static_cast<Table*>(table)->rows;
    *cursor = made.release();
    return SQLITE_OK;
  }
  static int close(sqlite3_vtab_cursor* cursor) {
    const std::unique_ptr<Cursor> ended(static_cast<Cursor*>(cursor));
    return SQLITE_OK;
  }
  static int next(sqlite3_vtab_cursor* cursor) {
    auto* const at = static_cast<Cursor*>(cursor);
    const std::optional<bool> more = at->rows->advance();
    at->at_row = more.value_or(false);
    ++at->number;
    return more ? SQLITE_OK : SQLITE_ABORT;
  }
  static int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) { return next(cursor); }
  static int at_end(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor)->at_row ? 0 : 1; }
  static int column(sqlite3_vtab_cursor* cursor, sqlite3_context* result, int column) {
    static_cast<Cursor*>(cursor)->rows->give(result, column);
    return SQLITE_OK;
  }
  static int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
    *id = static_cast<Cursor*>(cursor)->number;
    return SQLITE_OK;
  }

  static const sqlite3_module* functions() {
    static const sqlite3_module module = [] {
      sqlite3_module made{};
      made.xConnect = connect;
      made.xDisconnect = disconnect;
      made.xBestIndex = plan;
      made.xOpen = open;
      made.xClose = close;
      made.xFilter = filter;
      made.xNext = next;
      made.xEof = at_end;
      made.xColumn = column;
      made.xRowid = row_id;
      return made;
    }();
    return &module;
  }
};

ComingRows::ComingRows(Connection& to, std::string_view name, int own, const RawStatement& row, int first, int count,
                       Next next)
    : to_(to),
      name_(name),
      own_(static_cast<std::size_t>(own)),
      row_(row),
      first_(first),
      count_(count),
      next_(std::move(next)) {
  sqlite3* const database = to.database().getHandle();
  const int code = sqlite3_create_module_v2(database, name_.c_str(), Module::functions(), this, nullptr);
  if (code != SQLITE_OK) {
    throw SQLite::Exception(database, code);
  }
}

ComingRows::~ComingRows() {
  sqlite3_create_module_v2(to_.database().getHandle(), name_.c_str(), nullptr, nullptr, nullptr);
}

void ComingRows::insert_into(std::string_view target) {
  thrown_ = nullptr;
  try {
    RawStatement(to_, fmt::format("INSERT INTO {} SELECT * FROM {}", target, name_)).run();
  } catch (const SQLite::Exception&) {
    if (thrown_) {
      std::rethrow_exception(thrown_);
    }
    throw;
  }
}

std::optional<bool> ComingRows::advance() noexcept {
  try {
    return next_(own_);
  } catch (...) {
    thrown_ = std::current_exception();
    return std::nullopt;
  }
}

void ComingRows::give(sqlite3_context* result, int column) const {
  const auto at = static_cast<std::size_t>(column);
  if (at >= own_.size()) {
    row_.give(result, first_ + static_cast<int>(at - own_.size()));
  } else if (own_[at]) {
    sqlite3_result_int64(result, *own_[at]);
  }
}

}  // namespace pascaline
