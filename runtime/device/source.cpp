#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/space/space.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/directives.hpp"
#include "runtime/device/macro_expansion.hpp"
#include "runtime/device/source_folder.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// A name that an #include or __has_include has between quotes or angle brackets.
struct NamedFile {
  std::string name;
  bool quoted = true;
};

bool includes(const Directive& directive) {
  return directive.name == "include" || directive.name == "include_next" || directive.name == "import";
}

// The files that begin a text; two where white space may or may not be of the name, none if it has to be expanded.
std::vector<NamedFile> literal_names(const std::vector<CodeToken>& tokens) {
  if (tokens.empty()) {
    return {};
  }
  const std::string& first = tokens.front().text;
  if (first.size() > 2 && first.front() == '"' && first.back() == '"') {
    return {{first.substr(1, first.size() - 2)}};
  }
  std::string spaced;
  std::string close;
  for (auto token = tokens.begin() + 1; first == "<" && token != tokens.end(); ++token) {
    if (token->text == ">") {
      return close == spaced ? std::vector<NamedFile>{{close, false}}
                             : std::vector<NamedFile>{{close, false}, {spaced, false}};
    }
    spaced += (token->spaced ? " " : "") + token->text;
    close += token->text;
  }
  return {};
}

// The same of a text as it stands, where a name in brackets has other tokens or none.
std::vector<NamedFile> literal_names(std::string_view text) {
  const std::size_t close = text.find('>');
  return text.starts_with('<') && close != std::string_view::npos
             ? std::vector<NamedFile>{{std::string(text.substr(1, close - 1)), false}}
             : literal_names(tokens_of(text));
}

// What a directive includes or asks for, as text.
std::vector<std::string_view> operands_of(const Directive& directive) {
  if (includes(directive)) {
    return {directive.text};
  }
  std::vector<std::string_view> operands;
  constexpr std::string_view kAsks = "__has_include";
  for (std::size_t at = directive.text.find(kAsks); at != std::string::npos; at = directive.text.find(kAsks, at)) {
    at = std::min(directive.text.find_first_not_of(" (", at + kAsks.size()), directive.text.size());
    int open = 1;
    const auto close =
        std::find_if(directive.text.begin() + static_cast<std::ptrdiff_t>(at), directive.text.end(), [&](char c) {
          return (open += c == '(' ? 1 : c == ')' ? -1 : 0) == 0;
        });
    operands.push_back(
        std::string_view(directive.text).substr(at, static_cast<std::size_t>(close - directive.text.begin()) - at));
  }
  return operands;
}

std::string source_text(const fs::path& file) {
  std::string text = read_file(file);
  const bool has_mark = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (has_mark || (text.size() > 1 && (text[0] == '\0') != (text[1] == '\0'))) {
    throw Error(fmt::format("cannot read {}: it is UTF-16, and compilers take UTF-8; save it as UTF-8", file.string()));
  }
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

// Paths of files in which a number that is not known stands for any.
std::vector<fs::path> matching_files(const fs::path& file) {
  if (file.string().find(kAnyNumber) == std::string::npos) {
    return {file};
  }
  std::string pattern;
  std::string expression;
  for (const char c : file.string()) {
    const bool sign = std::ispunct(static_cast<unsigned char>(c)) != 0;
    pattern += c == kAnyNumber ? "*" : sign && c != '/' ? std::string{'\\', c} : std::string{c};
    expression += c == kAnyNumber ? "-?[0-9]+" : sign ? std::string{'\\', c} : std::string{c};
  }
  std::vector<fs::path> files;
  glob_t matches{};
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    files.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  ::globfree(&matches);
  std::erase_if(
      files, [known = std::regex(expression)](const fs::path& one) { return !std::regex_match(one.string(), known); });
  return files;
}

fs::path folder_of(const fs::path& file) { return fs::absolute(file).lexically_normal().parent_path(); }

// Collects every file that a compiler could read, under its path relative to the kernel's folder.
class Loader {
 public:
  Loader(const fs::path& file, const std::vector<std::string>& macros, const std::vector<std::string>& folders)
      : root_(folder_of(file)) {
    for (const std::string& folder : folders) {
      searched_.push_back((root_ / folder).lexically_normal());
    }
    for (const std::string& macro : macros) {
      const std::string name = macro_name(macro);
      macros_.define(name + " " + (name == macro ? "1" : macro.substr(name.size() + 1)));
    }
    for (const char* const name : {"__CUDA_ARCH__", "__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__COUNTER__",
                                   "__LINE__", "__INCLUDE_LEVEL__", "__cplusplus"}) {
      macros_.define(std::string(name) + " " + kAnyNumber);
    }
  }

  void load(const std::string& text, const fs::path& file) {
    follow(text, file);
    // What a file by macro defines may be what another is named by.
    for (std::size_t known = 0; !by_macro_.empty() && known != headers_.size() + 1;) {
      known = headers_.size() + 1;
      for (const std::string& definition : std::exchange(definitions_, {})) {
        macros_.define(definition);
      }
      for (std::size_t i = 0; i < by_macro_.size(); ++i) {
        const Operand operand = by_macro_[i];
        const std::string name = operand.file.lexically_relative(root_).generic_string();
        for (const std::vector<CodeToken>& tokens : macros_.expansions(operand.text, name)) {
          add_all(literal_names(tokens), operand.file);
        }
      }
    }
  }

  [[nodiscard]] std::map<std::string, std::string> headers() const {
    std::map<std::string, std::string> all = headers_;
    for (const std::string& folder : folders_) {
      const auto within = headers_.lower_bound(folder);
      if (within == headers_.end() || !within->first.starts_with(folder)) {
        all.emplace(folder, std::string());
      }
    }
    return all;
  }

 private:
  struct Operand {
    std::string text;
    fs::path file;
  };

  void follow(const std::string& text, const fs::path& file) {
    for (const Directive& directive : directives_of(text)) {
      if (directive.name == "define") {
        definitions_.push_back(directive.text);
      }
      for (const std::string_view operand : operands_of(directive)) {
        const std::vector<NamedFile> names = literal_names(operand);
        if (names.empty()) {
          by_macro_.push_back({std::string(operand), file});
        }
        add_all(names, file);
      }
    }
  }

  void add_all(const std::vector<NamedFile>& names, const fs::path& includer) {
    for (const NamedFile& named : names) {
      bool found = named.quoted && add(includer.parent_path() / named.name);
      found = found || add(root_ / named.name);
      for (auto folder = searched_.begin(); !found && folder != searched_.end(); ++folder) {
        found = add(*folder / named.name);
      }
    }
  }

  bool add(const fs::path& named) {
    bool found = false;
    for (const fs::path& file : matching_files(named)) {
      std::error_code ignored;
      if (fs::is_regular_file(file, ignored)) {
        found = true;
        add_file(file);
      }
    }
    return found;
  }

  void add_file(const fs::path& named) {
    const fs::path file = named.lexically_normal();
    add_folders(named);
    // Entered before its own includes are followed, so that a cycle ends.
    const auto [entry, is_new] = headers_.emplace(file.lexically_relative(root_).generic_string(), std::string());
    if (is_new) {
      entry->second = source_text(named);
      follow(entry->second, file);
    }
  }

  // A path goes up only from a folder that is there.
  void add_folders(const fs::path& named) {
    fs::path folder;
    for (const fs::path& part : named) {
      const fs::path above = folder.lexically_normal().lexically_relative(root_);
      if (part == ".." && std::any_of(above.begin(), above.end(), [](const fs::path& one) {
            return one.string().find_first_not_of('.') != std::string::npos;
          })) {
        folders_.insert(above.generic_string() + "/");
      }
      folder /= part == "." ? fs::path() : part;
    }
  }

  fs::path root_;
  std::vector<fs::path> searched_;  // after it
  PossibleMacros macros_;
  std::vector<std::string> definitions_;  // not among them yet, as most kernels include nothing by macro
  std::vector<Operand> by_macro_;
  std::map<std::string, std::string> headers_;
  std::set<std::string> folders_;
};

// Every value that a macro of a space may have.
std::vector<std::string> possible_macros(const Space& space) {
  CompileRequest request;
  for (const Parameter& parameter : space.parameters) {
    for (const Value& value : parameter.values) {
      const std::string text = to_text(value);
      (parameter.option.empty() ? request.defines : request.options)
          .push_back(parameter.option.empty() ? parameter.name + "=" + text : parameter.option + text);
    }
  }
  for (const TypeVariable& type : space.types) {
    for (const ElementType allowed : type.allowed) {
      request.defines.push_back(fmt::format("{}={}", type.name, name_of(allowed)));
    }
  }
  for (const DerivedMacro& macro : space.derived) {
    request.defines.push_back(fmt::format("{}={}", macro.name, kAnyNumber));
  }
  return macros_of(request);
}

// A path of a space, which is relative to the space's folder, as it is from the kernel's folder.
fs::path from_kernel(const Space& space, const std::string& path, const fs::path& file) {
  return (folder_of(space.file) / path).lexically_normal().lexically_relative(folder_of(file));
}

std::vector<std::string> further_folders(const Space& space, const fs::path& file) {
  std::vector<std::string> folders;
  for (std::size_t i = 0; i < space.include.size(); ++i) {
    folders.push_back(from_kernel(space, space.include[i], file).generic_string());
    std::error_code ignored;
    if (!fs::is_directory(folder_of(file) / folders.back(), ignored)) {
      throw SpaceError(space.file, fmt::format("/include/{}", i),
                       fmt::format("no such folder: '{}'", space.include[i]));
    }
  }
  return folders;
}

// The kernel's text with the space's further files before and after it.
std::string with_sources(const Space& space, const fs::path& file, const std::string& text) {
  std::string before;
  std::string after;
  bool is_after = false;
  for (std::size_t i = 0; i < space.sources.size(); ++i) {
    const fs::path named = from_kernel(space, space.sources[i], file);
    std::error_code ignored;
    if (named == file.filename()) {
      is_after = true;
    } else if (fs::is_regular_file(folder_of(file) / named, ignored)) {
      (is_after ? after : before) += fmt::format("#include \"{}\"\n", named.generic_string());
    } else {
      throw SpaceError(space.file, fmt::format("/sources/{}", i), fmt::format("no such file: '{}'", space.sources[i]));
    }
  }
  return (before.empty() ? "" : before + "#line 1\n") + text + (after.empty() ? "" : "\n" + after);
}

KernelSource load_source(const fs::path& file, const std::vector<std::string>& macros, const Space* space = nullptr) {
  KernelSource source;
  source.file = file;
  source.text = source_text(file);
  if (space != nullptr) {
    source.folders = further_folders(*space, file);
    source.text = with_sources(*space, file, source.text);
  }
  Loader loader(file, macros, source.folders);
  loader.load(source.text, fs::absolute(file).lexically_normal());
  const std::map<std::string, std::string> headers = loader.headers();
  source.headers.assign(headers.begin(), headers.end());
  FieldHash hash;
  hash.add(source.text);
  for (const auto& [name, text] : source.headers) {
    hash.add(name).add(text);
  }
  for (const std::string& folder : source.folders) {
    hash.add(folder);
  }
  source.hash = hash.hex();
  return source;
}

}  // namespace

bool KernelSource::mentions(std::string_view word) const {
  const auto in = [&](const std::string& file_text) { return find_word(file_text, word) != std::string::npos; };
  return in(text) || std::any_of(headers.begin(), headers.end(), [&](const auto& one) { return in(one.second); });
}

std::vector<std::string> KernelSource::other_headers() const {
  std::set<std::string> names;
  const auto add = [&](const std::string& of) {
    for (const Directive& directive : directives_of(of)) {
      for (const std::string_view operand : operands_of(directive)) {
        for (const NamedFile& named : literal_names(operand)) {
          if (named.name.find_first_of(" \t\\") == std::string::npos && !named.name.starts_with('/') &&
              !named.name.empty() && named.name.find("..") == std::string::npos) {
            names.insert(named.name);
          }
        }
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

std::string KernelSource::advice_for(const std::string& header) const {
  const auto is_there = [&](const fs::path& beside) {
    std::error_code ignored;
    return fs::is_regular_file((file.parent_path() / beside).parent_path() / header, ignored);
  };
  if (!is_there(file.filename()) &&
      std::none_of(headers.begin(), headers.end(), [&](const auto& one) { return is_there(one.first); })) {
    return {};
  }
  return fmt::format(
      "; no #include names {0} in a way that can be followed, so that it would not be part of the source: name it once "
      "as it is, #include \"{0}\", where `#if 0` and `#endif` around it are enough",
      header);
}

KernelSource KernelSource::load(const fs::path& file) { return load_source(file, {}); }

KernelSource KernelSource::load(const fs::path& file, const Space& space) {
  return load_source(file, possible_macros(space), &space);
}

}  // namespace pascaline
