#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pascaline {

/// What to do about SQLite's extended result `code`, to follow "FILE: cannot DO SOMETHING: ".
[[nodiscard]] std::string explain_sqlite(int code, std::string_view message);

/// Throws StoreBusyError if `code` says that another process holds the lock, else StoreError.
[[noreturn]] void throw_store_error(const std::string& message, int code);

/// A column does not hold the JSON that it is for. `Connection::guard` tells file and row.
class BadColumnError : public Error {
 public:
  BadColumnError(std::string_view table, std::string_view column, std::string text)
      : Error("a column holds an unexpected value"), table_(table), column_(column), text_(std::move(text)) {}
  [[nodiscard]] const std::string& table() const noexcept { return table_; }
  [[nodiscard]] const std::string& column() const noexcept { return column_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string table_;
  std::string column_;
  std::string text_;
};

/// A prepared statement on loan from its Connection, reset and given back when it ends. Columns are read in order.
class Query {
 public:
  using Slot = std::unique_ptr<SQLite::Statement>;
  Query(Slot statement, Slot& home) noexcept : statement_(std::move(statement)), home_(&home) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  /// Binds all parameters in order; an empty optional and a real that is not a number become NULL.
  template <typename... Values>
  Query& bind(const Values&... values) {
    int index = 0;
    (bind_at(++index, values), ...);
    return *this;
  }
  /// Binds one parameter, the first being 1.
  void bind_at(int index, std::int64_t value) { statement_->bind(index, value); }
  void bind_at(int index, int value) { statement_->bind(index, value); }
  void bind_at(int index, bool value) { statement_->bind(index, value ? 1 : 0); }
  void bind_at(int index, double value) { statement_->bind(index, value); }
  void bind_at(int index, const std::string& value) { statement_->bind(index, value); }
  void bind_at(int index, std::string_view value) { statement_->bind(index, std::string(value)); }
  template <typename Value>
  void bind_at(int index, const std::optional<Value>& value) {
    if (value) {
      bind_at(index, *value);
    } else {
      statement_->bind(index);
    }
  }

  /// Moves to the next row; false at the end.
  [[nodiscard]] bool step();
  /// Executes to the end and resets, so that it can be bound and run again; returns how many rows it changed.
  int run();

  [[nodiscard]] std::string text();
  [[nodiscard]] std::int64_t integer();
  [[nodiscard]] double real();
  [[nodiscard]] bool flag() { return integer() != 0; }
  [[nodiscard]] std::optional<double> optional_real();
  [[nodiscard]] std::optional<std::int64_t> optional_integer();
  void skip() { ++column_; }
  /// Continues with that column, the first being 0.
  void go_to(int column) noexcept { column_ = column; }
  /// Binds the next `count` columns, as they are, to the parameters of another statement from `index` on.
  void copy_to(Query& to, int index, int count);

 private:
  Slot statement_;
  Slot* home_;
  int column_ = 0;
};

/// An open database with its prepared statements. One thread uses it at a time.
class Connection {
 public:
  /// No text of it that is larger than any that this program writes can be read from then on.
  Connection(std::filesystem::path file, SQLite::Database database);

  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
  [[nodiscard]] SQLite::Database& database() noexcept { return database_; }
  /// The statement, prepared once and kept; a second loan at the same time gets one of its own.
  [[nodiscard]] Query query(const std::string& sql);

  /// Runs `work`; any failure in it becomes a StoreError "FILE: cannot `action`: …".
  template <typename Work>
  auto guard(std::string_view action, Work&& work) -> decltype(work()) {
    try {
      return work();
    } catch (const SQLite::Exception& fault) {
      fail(action, explain_sqlite(fault.getExtendedErrorCode(), fault.what()), fault.getExtendedErrorCode());
    } catch (const nlohmann::json::exception&) {
      fail(action, "a text in it is not UTF-8 and cannot be stored", 0);
    } catch (const BadColumnError& fault) {
      fail_at(action, fault);
    } catch (const StoreError&) {
      throw;
    } catch (const Error& fault) {
      fail(action, fault.what(), fault.code());
    }
  }
  /// Throws the StoreError "FILE: cannot `action`: `why`".
  [[noreturn]] void fail(std::string_view action, std::string_view why, int code) const;

  /// Throws the StoreError that names the row.
  [[noreturn]] void fail_at(std::string_view action, const BadColumnError& fault);

 private:
  std::filesystem::path file_;
  SQLite::Database database_;
  std::unordered_map<std::string, Query::Slot> statements_;  // after database_: finalized before it closes
};

/// What is read between begin and end is of one moment, and what is written counts if `release` was called, else not at
/// all. Unlike a transaction it may be inside another; SQLiteCpp's Savepoint stays open after a fault. One at a time.
class Savepoint {
 public:
  explicit Savepoint(SQLite::Database& database) : database_(&database) { database_->exec("SAVEPOINT whole"); }
  Savepoint(const Savepoint&) = delete;
  Savepoint& operator=(const Savepoint&) = delete;
  ~Savepoint() {
    if (!released_) {
      database_->tryExec("ROLLBACK TO whole");
      database_->tryExec("RELEASE whole");
    }
  }
  void release() {
    database_->exec("RELEASE whole");
    released_ = true;
  }

 private:
  SQLite::Database* database_;
  bool released_ = false;
};

}  // namespace pascaline
