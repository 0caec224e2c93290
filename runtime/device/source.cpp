#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

struct Include {
  std::size_t begin;  ///< of the name between the quotes
  std::string name;
};

// Text with comments blanked out, every other character in its place. Quoted text is left alone, so that "//" in a
// string does not begin a comment.
std::string without_comments(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\'') {
      const char quote = text[i];
      for (++i; i < text.size() && text[i] != quote && text[i] != '\n'; ++i) {
        i += text[i] == '\\' ? 1 : 0;
      }
    } else if (text.compare(i, 2, "//") == 0) {
      for (; i < text.size() && text[i] != '\n'; ++i) {
        text[i] = ' ';
      }
    } else if (text.compare(i, 2, "/*") == 0) {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      for (; i < end; ++i) {
        text[i] = text[i] == '\n' ? '\n' : ' ';
      }
      --i;
    }
  }
  return text;
}

std::vector<Include> quoted_includes(const std::string& text) {
  static const std::regex pattern(R"re([ \t]*#[ \t]*include[ \t]*"([^"]+)".*)re");
  const std::string code = without_comments(text);
  std::vector<Include> found;
  for (std::size_t begin = 0; begin < code.size();) {
    const std::size_t end = std::min(code.find('\n', begin), code.size());
    std::smatch match;
    const std::string line = code.substr(begin, end - begin);
    if (line.find('#') != std::string::npos && std::regex_match(line, match, pattern)) {
      found.push_back({begin + static_cast<std::size_t>(match.position(1)), match.str(1)});
    }
    begin = end + 1;
  }
  return found;
}

// Collects headers under their path relative to the kernel's folder, and rewrites every quoted include to that name:
// NVRTC looks names up letter for letter, not in the including header's folder, and `#pragma once` would take one
// header under two names for two.
class Loader {
 public:
  explicit Loader(const fs::path& file) : root_(fs::absolute(file).lexically_normal().parent_path()) {}

  std::string load(const fs::path& file, const fs::path& named_in) {
    std::string text;
    try {
      text = read_file(file);
    } catch (const Error& error) {
      throw named_in.empty() ? Error(error.what(), error.code())
                             : Error(fmt::format("{} includes \"{}\", which cannot be read: {}", named_in.string(),
                                                 file.string(), error.what()),
                                     error.code());
    }
    std::vector<Include> includes = quoted_includes(text);
    for (const Include& include : includes) {
      add(file.parent_path() / include.name, file);
    }
    for (auto include = includes.rbegin(); include != includes.rend(); ++include) {
      text.replace(include->begin, include->name.size(), name_of_header(file.parent_path() / include->name));
    }
    return text;
  }

  [[nodiscard]] const std::map<std::string, std::string>& headers() const noexcept { return headers_; }

 private:
  [[nodiscard]] std::string name_of_header(const fs::path& file) const {
    return fs::absolute(file).lexically_normal().lexically_relative(root_).generic_string();
  }
  void add(const fs::path& file, const fs::path& named_in) {
    const std::string name = name_of_header(file);
    // Entered before its own includes are followed, so that a cycle ends.
    if (headers_.emplace(name, std::string()).second) {
      headers_[name] = load(file, named_in);
    }
  }

  fs::path root_;
  std::map<std::string, std::string> headers_;
};

}  // namespace

KernelSource KernelSource::load(const fs::path& file) {
  Loader loader(file);
  KernelSource source;
  source.file = file;
  source.text = loader.load(file, {});
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
