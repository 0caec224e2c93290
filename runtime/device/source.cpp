#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// A name that a preprocessor line has between quotes or angle brackets.
struct NamedFile {
  std::string name;
  bool quoted = true;
};

struct Directives {
  std::vector<NamedFile> files;
  bool computed = false;  ///< an #include by macro is among them
};

void add_names(std::string_view line, Directives& found) {
  for (const auto& [open, close] : {std::pair('"', '"'), std::pair('<', '>')}) {
    for (std::size_t at = line.find(open); at != std::string_view::npos; at = line.find(open, at)) {
      const std::size_t end = line.find(close, at + 1);
      if (end == std::string_view::npos) {
        break;
      }
      found.files.push_back({std::string(line.substr(at + 1, end - at - 1)), open == '"'});
      at = end + 1;
    }
  }
}

// Of a directive, whatever space it has.
bool includes_by_macro(std::string_view line) {
  constexpr std::string_view kSpace = " \t";
  const auto skip = [&](std::string_view text) {
    const std::size_t begin = std::min(line.find_first_not_of(kSpace), line.size());
    line.remove_prefix(begin);
    const bool found = line.starts_with(text);
    line.remove_prefix(found ? text.size() : 0);
    return found;
  };
  if (!(skip("#") || skip("%:")) || !skip("include")) {
    return false;
  }
  skip("_next");
  return !skip("\"") && !skip("<");
}

// Everything that a line with a # names, in whatever branch, comment or string it stands: the compiler alone knows
// which of it is read, and a file too many in a source's hash does no harm.
Directives directives_of(std::string text) {
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 1)) {
    const std::size_t end = text.find_first_not_of('\r', at + 1);
    if (end != std::string::npos && text[end] == '\n') {
      text.replace(at, end + 1 - at, end + 1 - at, ' ');
    }
  }
  Directives found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.find('#') != std::string_view::npos || line.find("%:") != std::string_view::npos) {
      add_names(line, found);
      found.computed = found.computed || includes_by_macro(line);
    }
    begin = end + 1;
  }
  return found;
}

bool is_header(const fs::path& file) {
  constexpr std::array<std::string_view, 11> kEndings{".h",   ".hh",  ".hpp", ".hxx", ".cuh", ".cu",
                                                      ".inc", ".inl", ".ipp", ".tpp", ".def"};
  return std::find(kEndings.begin(), kEndings.end(), file.extension().string()) != kEndings.end();
}

// The headers in a folder and those below it, hidden ones left out.
std::vector<fs::path> headers_below(const fs::path& folder, int depth) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with('.')) {
      continue;
    }
    if (depth > 0 && entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      const std::vector<fs::path> below = headers_below(entry->path(), depth - 1);
      found.insert(found.end(), below.begin(), below.end());
    } else if (is_header(entry->path()) && entry->is_regular_file(ignored)) {
      found.push_back(entry->path());
    }
  }
  return found;
}

std::string text_of(const fs::path& file) {
  std::string text = read_file(file);
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

// Collects every file that a compiler could reach, under its path relative to the kernel's folder.
class Loader {
 public:
  explicit Loader(const fs::path& file) : root_(fs::absolute(file).lexically_normal().parent_path()) {}

  void follow(const std::string& text, const fs::path& file) {
    const Directives directives = directives_of(text);
    for (const NamedFile& named : directives.files) {
      if (!named.quoted || !add(file.parent_path() / named.name)) {
        add(root_ / named.name);
      }
    }
    for (const fs::path& folder : {root_, file.parent_path()}) {
      for (const fs::path& header :
           directives.computed ? headers_below(folder, kFolderDepth) : std::vector<fs::path>()) {
        add(header);
      }
    }
  }

  [[nodiscard]] const std::map<std::string, std::string>& headers() const noexcept { return headers_; }

 private:
  static constexpr int kFolderDepth = 3;

  bool add(const fs::path& named) {
    const fs::path file = fs::absolute(named).lexically_normal();
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) {
      return false;
    }
    // Entered before its own includes are followed, so that a cycle ends.
    const auto [entry, is_new] = headers_.emplace(file.lexically_relative(root_).generic_string(), std::string());
    if (is_new) {
      entry->second = text_of(file);
      follow(entry->second, file);
    }
    return true;
  }

  fs::path root_;
  std::map<std::string, std::string> headers_;
};

}  // namespace

std::vector<std::string> KernelSource::other_headers() const {
  std::set<std::string> names;
  const auto add = [&](const std::string& of) {
    for (const NamedFile& named : directives_of(of).files) {
      if (!named.name.empty() && named.name.find_first_of(" \t\\") == std::string::npos && named.name.front() != '/' &&
          named.name.find("..") == std::string::npos) {
        names.insert(named.name);
      }
    }
  };
  add(text);
  for (const auto& [name, header] : headers) {
    add(header);
  }
  for (const auto& [name, header] : headers) {
    names.erase(name);
  }
  return {names.begin(), names.end()};
}

KernelSource KernelSource::load(const fs::path& file) {
  Loader loader(file);
  KernelSource source;
  source.file = file;
  source.text = text_of(file);
  loader.follow(source.text, fs::absolute(file).lexically_normal());
  source.headers.assign(loader.headers().begin(), loader.headers().end());
  FieldHash hash;
  hash.add(source.text);
  for (const auto& [name, text] : source.headers) {
    hash.add(name).add(text);
  }
  source.hash = hash.hex();
  return source;
}

}  // namespace pascaline
