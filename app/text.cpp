#include "app/text.hpp"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>

#include "report/text.hpp"

namespace pascaline {
namespace {

// The program runs in the "C" locale, whatever the terminal's is; what it writes is UTF-8. Where the C library has no
// such locale every byte counts as a column, and lines are cut too early.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(utf8())) {}
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;
  ~Utf8Locale() { ::uselocale(before_); }

 private:
  static locale_t utf8() {
    static const locale_t made = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return made;  // if it is none, uselocale leaves things as they are
  }
  locale_t before_;
};

struct Piece {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

// The character at the text's beginning.
Piece first_piece(std::string_view text) {
  wchar_t character = 0;
  mbstate_t state{};
  const std::size_t bytes = ::mbrtowc(&character, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) {
    return {};
  }
  return {bytes, static_cast<std::size_t>(std::max(0, ::wcwidth(character)))};
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  const Utf8Locale locale;
  std::size_t columns = 0;
  while (!text.empty()) {
    const Piece piece = first_piece(text);
    columns += piece.columns;
    text.remove_prefix(piece.bytes);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  if (columns == 0) {
    return {};
  }
  const Utf8Locale locale;
  std::size_t used = 0;
  std::size_t fits = 0;  // bytes that leave a column for the ellipsis
  for (std::size_t at = 0; at < text.size();) {
    const Piece piece = first_piece(text.substr(at));
    used += piece.columns;
    at += piece.bytes;
    if (used > columns) {
      return std::string(text.substr(0, fits)) + "…";
    }
    fits = used < columns ? at : fits;
  }
  return std::string(text);
}

std::string aligned_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string room(widths[i] - columns_of(row[i]), ' ');
      line += i == 0 ? row[i] + room : "  " + room + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string shell_word(std::string_view word) {
  // Bytes above ASCII are letters of some language; the shell gives none of them a meaning.
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0x80U) != 0 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || std::string_view("_-./,:=@%+").find(c) != std::string_view::npos;
  });
  if (plain) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

std::string resume_command(std::string_view database, const std::vector<std::pair<std::string, std::string>>& paths,
                           std::string_view more) {
  std::string command = fmt::format("pascaline sweep --resume --db {}", shell_word(database));
  for (const auto& [option, value] : paths) {
    command += fmt::format(" {} {}", option, shell_word(value));
  }
  return more.empty() ? command : fmt::format("{} {}", command, more);
}

namespace {

std::string first_of(const std::string& what, const std::vector<std::string>& problems) {
  constexpr std::size_t kNamed = 10;
  std::string text = fmt::format("{} ({}):", what, problems.size());
  for (std::size_t i = 0; i < std::min(kNamed, problems.size()); ++i) {
    text += (i > 0 ? "; " : " ") + clean_line(problems[i]);
  }
  return text + (problems.size() > kNamed ? fmt::format("; and {} more", problems.size() - kNamed) : "");
}

}  // namespace

std::string not_reached_text(const std::vector<std::string>& problems) {
  return first_of("not reached before time ran out", problems);
}

std::string no_time_text(const std::vector<std::string>& problems) { return first_of("no time so far", problems); }

std::string provisional_text(const std::vector<std::string>& problems) {
  return first_of("provisional, without finals so far", problems);
}

std::string time_text(double time_us) {
  return time_us >= 1000 ? fmt::format("{:.3f} ms", time_us / 1000) : fmt::format("{:.2f} us", time_us);
}

std::string sum_text(double time_us) {
  return time_us >= 1e6    ? short_number(time_us / 1e6) + " s"
         : time_us >= 1000 ? short_number(time_us / 1000) + " ms"
                           : short_number(time_us) + " us";
}

}  // namespace pascaline
