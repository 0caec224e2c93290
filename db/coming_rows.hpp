#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"
#include "db/raw_statement.hpp"

namespace pascaline {

/// Rows of another database as a table of this one (a virtual table of SQLite), so that a single statement inserts all
/// of them: to bind and run a statement for each takes longer than to insert its row. Row by row, the first columns are
/// set by the one who makes them; the others are those of the statement that reads, as they are.
class ComingRows {
 public:
  /// Columns that are integers, or NULL where there is none.
  using Own = std::vector<std::optional<std::int64_t>>;
  /// Moves the statement on and sets the row's own columns; false at the end.
  using Next = std::function<bool(Own&)>;

  /// The table is `name`, of columns c0, c1, ..., and there as long as this is: `own` columns that `next` sets, then
  /// `count` columns of `row` from `first` on. Throws SQLite::Exception.
  ComingRows(Connection& to, std::string_view name, int own, const RawStatement& row, int first, int count, Next next);
  ComingRows(const ComingRows&) = delete;
  ComingRows& operator=(const ComingRows&) = delete;
  ~ComingRows();

  /// Runs "INSERT INTO `target` SELECT * FROM (the table)", whatever `target` names. What `next` throws is thrown here.
  void insert_into(std::string_view target);

 private:
  struct Module;
  /// For the table, as C calls it: whether there is a row now; nothing when `next` threw.
  [[nodiscard]] std::optional<bool> advance() noexcept;
  void give(sqlite3_context* result, int column) const;

  Connection& to_;
  std::string name_;
  Own own_;
  const RawStatement& row_;
  int first_;
  int count_;
  Next next_;
  std::exception_ptr thrown_;
};

}  // namespace pascaline
