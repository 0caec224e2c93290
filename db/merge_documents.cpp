#include <fmt/format.h>
#include <sqlite3.h>

#include <tuple>

#include "db/merge_rows.hpp"
#include "db/rows.hpp"

namespace pascaline {
namespace {

constexpr auto kDigit = [](char c) { return c >= '0' && c <= '9'; };

// Reads `{"A":1,"B":true,"C":"row"}` as this program writes most configurations, many times as fast as a reader of
// JSON; false where that reader must judge.
class PlainConfig {
 public:
  explicit PlainConfig(std::string_view text) : text_(text) {}
  [[nodiscard]] bool is_plain() {
    if (!take('{')) {
      return false;
    }
    do {
      if (!take_text() || !take(':') || !take_value()) {
        return false;
      }
    } while (take(','));
    return take('}') && at_ == text_.size();
  }

 private:
  bool take(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }
  bool take_word(std::string_view word) {
    const bool there = text_.substr(at_, word.size()) == word;
    at_ += there ? word.size() : 0;
    return there;
  }
  bool take_text() {
    if (!take('"')) {
      return false;
    }
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      const char c = text_[at_];
      if (!kDigit(c) && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') && c != '_' && c != '-' && c != '.') {
        return false;
      }
    }
    return take('"');
  }
  bool take_value() {
    constexpr std::size_t kMaxDigits = 18;  // no more than 64 bits hold
    if (take_word("true") || take_word("false") || (at_ < text_.size() && text_[at_] == '"' && take_text())) {
      return true;
    }
    take('-');
    const std::size_t first = at_;
    for (; at_ < text_.size() && kDigit(text_[at_]);) {
      ++at_;
    }
    const std::size_t digits = at_ - first;
    return digits > 0 && digits <= kMaxDigits && (digits == 1 || text_[first] != '0');
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// `table` outlives what is thrown.
void check_configs(Connection& from, std::string_view table) {
  Query row = from.query(fmt::format("SELECT config FROM {}", table));
  while (row.step()) {
    if (!PlainConfig(row.text()).is_plain()) {
      row.go_to(0);
      std::ignore = read_config(row, table);
    }
  }
}

// The readers themselves judge, so that all that passes can be read later. Limits of a device need no look: what in
// them is not as it should be counts as absent.
void check_documents(Connection& from) {
  Query problem = from.query("SELECT kernel, dimensions, types, data FROM problems ORDER BY id");
  while (problem.step()) {
    std::ignore = read_problem(problem);
  }
  check_configs(from, "trials");
  check_configs(from, "attempts");
  check_probes(from);
}

}  // namespace

void check_merged_pages(Connection& from) {
  merge_reading(from, [&] {
    const std::string verdict = from.database().execAndGet("PRAGMA quick_check(1)").getString();
    if (verdict != "ok") {
      from.fail("read what is to be merged", explain_sqlite(SQLITE_CORRUPT, verdict), SQLITE_CORRUPT);
    }
  });
}

void check_merged_rows(Connection& from) {
  merge_reading(from, [&] {
    for (const char* table : {"sessions", "attempts", "plan_kernels", "plan_problems", "plan_calls", "plan_paths",
                              "telemetry", "winners", "decisions", "probes", "probe_values", "probe_chains"}) {
      Query dangling = from.query(fmt::format("PRAGMA foreign_key_check({})", table));
      if (dangling.step()) {
        merge_damaged(from, fmt::format("table {} has a row that refers to a missing one", dangling.text()));
      }
    }
    check_documents(from);
  });
}

}  // namespace pascaline
