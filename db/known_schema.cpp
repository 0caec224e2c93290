#include "db/known_schema.hpp"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "db/migrations.hpp"

namespace pascaline {
namespace {

// By type, name and table: the plain SQL, empty for an index that SQLite makes itself.
struct ObjectName {
  std::string type;
  std::string name;
  std::string table;
  friend bool operator<(const ObjectName& a, const ObjectName& b) {
    return std::tie(a.type, a.name, a.table) < std::tie(b.type, b.name, b.table);
  }
};
using Objects = std::map<ObjectName, std::string>;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Length of what stands between quotes, which are doubled inside, at the text's beginning.
std::size_t quoted_length(std::string_view text, char close) {
  std::size_t end = text.find(close, 1);
  while (end != std::string_view::npos && end + 1 < text.size() && text[end + 1] == close) {
    end = text.find(close, end + 2);
  }
  return end == std::string_view::npos ? text.size() : end + 1;
}

// Length of the blanks and comments at the text's beginning.
std::size_t blank_length(std::string_view text) {
  std::size_t at = 0;
  for (;;) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("--")) {
      at += std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = rest.find("*/", 2);
      at += end == std::string_view::npos ? rest.size() : end + 2;
    } else if (!rest.empty() && is_blank(rest.front())) {
      ++at;
    } else {
      return at;
    }
  }
}

// The next word, quoted piece or sign.
std::string_view next_token(std::string_view text) {
  const char first = text.front();
  if (first == '\'' || first == '"' || first == '`') {
    return text.substr(0, quoted_length(text, first));
  }
  if (first == '[') {
    return text.substr(0, std::min(text.find(']'), text.size() - 1) + 1);
  }
  const auto end = std::find_if_not(text.begin(), text.end(), is_word);
  return text.substr(0, std::max<std::size_t>(1, static_cast<std::size_t>(end - text.begin())));
}

// SQLite puts the name of a renamed table into double quotes. The schema's names are small letters, its keywords are
// not.
std::string_view without_quotes(std::string_view token) {
  if (token.size() > 2 && token.front() == '"' && token.back() == '"') {
    const std::string_view name = token.substr(1, token.size() - 2);
    if (std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; })) {
      return name;
    }
  }
  return token;
}

constexpr std::string_view kUntrusted =
    "such a file could be harmful, so it is not opened; get a copy from the machine that measured it";

Objects objects_of(SQLite::Database& database) {
  Objects objects;
  SQLite::Statement row(database, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema");
  while (row.executeStep()) {
    ObjectName name{row.getColumn(0).getString(), row.getColumn(1).getString(), row.getColumn(2).getString()};
    const std::string sql = row.getColumn(3).getString();
    // SQLite reads a text up to a NUL only, so what is compared would be another one than what it goes by.
    for (const std::string& text : {name.type, name.name, name.table, sql}) {
      if (text.find('\0') != std::string::npos) {
        throw Error(fmt::format("a NUL is in the text of its {} '{}'; {}", clean_line(name.type), clean_line(name.name),
                                kUntrusted));
      }
    }
    if (!objects.emplace(name, plain_sql(sql)).second) {
      throw Error(fmt::format("it has the {} '{}' twice", name.type, name.name));
    }
  }
  return objects;
}

Objects make_known(int version) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  SchemaSteps plan = current_schema();
  plan.migrations = plan.migrations.first(static_cast<std::size_t>(version) - 1);
  prepare_schema(database, plan);
  return objects_of(database);
}

const Objects& known_objects(int version) {
  static std::mutex mutex;
  static std::map<int, Objects> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(version);
  return found != known.end() ? found->second : known.emplace(version, make_known(version)).first->second;
}

// What the `sqlite3` shell makes at its user's wish, and SQLite reads with care.
bool is_statistics(const ObjectName& object, const std::string& sql) {
  return object.type == "table" &&
         ((object.name == "sqlite_stat1" && sql == "CREATE TABLE sqlite_stat1 ( tbl , idx , stat )") ||
          (object.name == "sqlite_stat4" &&
           sql == "CREATE TABLE sqlite_stat4 ( tbl , idx , neq , nlt , ndlt , sample )"));
}

void compare(const Objects& found, const Objects& known) {
  for (const auto& [object, sql] : found) {
    const auto expected = known.find(object);
    if (expected == known.end() && !is_statistics(object, sql)) {
      throw Error(
          fmt::format("it holds the {} '{}', which this program does not make; {}, or, if you made "
                      "that yourself, drop it with `sqlite3`",
                      object.type, object.name, kUntrusted));
    }
    if (expected != known.end() && expected->second != sql) {
      throw Error(
          fmt::format("its {} '{}' differs from what this program makes; {}; if an unreleased version of this "
                      "program made it, use a new file",
                      object.type, object.name, kUntrusted));
    }
  }
  for (const auto& [object, sql] : known) {
    if (!found.contains(object)) {
      throw Error(
          fmt::format("it lacks the {} '{}', which this program makes; {}", object.type, object.name, kUntrusted));
    }
  }
}

}  // namespace

std::string plain_sql(std::string_view sql) {
  std::string plain;
  for (sql.remove_prefix(blank_length(sql)); !sql.empty(); sql.remove_prefix(blank_length(sql))) {
    const std::string_view token = next_token(sql);
    plain += plain.empty() ? "" : " ";
    plain += without_quotes(token);
    sql.remove_prefix(token.size());
  }
  return plain;
}

void distrust(SQLite::Database& database) {
  // Not SQLITE_DBCONFIG_TRUSTED_SCHEMA: our own checks call json_valid, which SQLite 3.40 then refuses as unsafe.
  sqlite3* const handle = database.getHandle();
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
}

void require_known_schema(SQLite::Database& database) {
  const SQLite::Transaction moment(database);  // another process may be making or migrating it
  const int version = schema_version(database);
  const Objects found = objects_of(database);
  if (version != 0 || !found.empty()) {
    require_version(version, current_schema());
    compare(found, known_objects(version));
  }
}

}  // namespace pascaline
