#include "runtime/device/source_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

fs::path place_of_folder() { return temporary_files() / "pascaline"; }

// A macro called `x` would break `threadIdx.x`: numbers of such names are constants instead.
bool must_be_constant(std::string_view name, std::string_view value) {
  constexpr std::string_view kMembers = "xyzw";
  return name.size() == 1 && kMembers.find(name.front()) != std::string_view::npos &&
         value.find_first_of("0123456789") == (value.starts_with('-') ? 1U : 0U);
}

// As a compiler's option does, a macro without a value is 1.
std::string define_line(const std::string& macro) {
  const std::string name = macro_name(macro);
  const std::string value = name.size() == macro.size() ? "1" : macro.substr(name.size() + 1);
  return must_be_constant(name, value) ? fmt::format("constexpr auto {} = {};\n", name, value)
                                       : fmt::format("#define {} {}\n", name, value);
}

std::optional<std::string> macro_of_option(const std::string& option) {
  for (const std::string_view given : {"--define-macro=", "-define-macro=", "-D"}) {
    if (option.starts_with(given)) {
      return option.substr(given.size());
    }
  }
  return std::nullopt;
}

// Most levels that a header lies above the kernel's folder.
std::ptrdiff_t levels_above(const KernelSource& source) {
  std::ptrdiff_t most = 0;
  for (const auto& [name, text] : source.headers) {
    const fs::path file(name);
    most = std::max(most, std::count(file.begin(), file.end(), ".."));
  }
  for (const std::string& name : source.folders) {
    const fs::path folder(name);
    most = std::max(most, std::count(folder.begin(), folder.end(), ".."));
  }
  return most;
}

// No #pragma push_macro: NVRTC lacks it. Of headers that include each other, the outermost hides the macros.
std::string header_without(const std::vector<std::string>& macros, const std::string& header) {
  std::string before;
  std::string after;
  for (const std::string& macro : macros) {
    const std::string name = macro_name(macro);
    before += fmt::format("#ifdef {0}\n#undef {0}\n#define PASCALINE_HAD_{0}\n#endif\n", name);
    after += fmt::format("#ifdef PASCALINE_HAD_{0}\n#undef PASCALINE_HAD_{0}\n{1}#endif\n", name, define_line(macro));
  }
  return fmt::format(
      "#ifdef PASCALINE_HIDING\n#include_next <{0}>\n#else\n#define PASCALINE_HIDING\n{1}#include_next <{0}>\n{2}"
      "#undef PASCALINE_HIDING\n#endif\n",
      header, before, after);
}

}  // namespace

SourceFolder::SourceFolder(const KernelSource& source, const fs::path& named_in, const Rewrite& rewrite) try
    : folder_(place_of_folder()), home_(path() / "kernel"), further_(source.folders) {
  // The folders above have their own names, as a path may lead up and down again: `../kernels/a.cuh`.
  constexpr std::ptrdiff_t kNamedLevels = 8;
  const fs::path own = fs::absolute(source.file).lexically_normal().parent_path().relative_path();
  const std::ptrdiff_t depth = std::distance(own.begin(), own.end());
  for (std::ptrdiff_t level = std::max(levels_above(source), kNamedLevels); level > depth; --level) {
    home_ /= std::to_string(level);
  }
  for (auto name = std::prev(own.end(), std::min(depth, std::max(levels_above(source), kNamedLevels)));
       name != own.end(); ++name) {
    home_ /= *name;
  }
  fs::create_directories(home());
  for (const auto& [name, text] : source.headers) {
    const fs::path file = (home() / name).lexically_normal();
    fs::create_directories(file.parent_path());
    if (name.ends_with('/')) {
      continue;
    }
    write_file_atomically(file, line_directive((named_in / name).lexically_normal()) + rewrite(text));
  }
} catch (const Error& error) {
  throw Error(
      fmt::format("cannot write a kernel's headers for the compiler in {}: {}; set TMPDIR to a folder with free "
                  "space",
                  temporary_files().string(), std::strerror(error.code())),
      error.code());
}

std::vector<fs::path> SourceFolder::searched() const {
  std::vector<fs::path> folders{home()};
  for (const std::string& folder : further_) {
    folders.push_back((home() / folder).lexically_normal());
  }
  return folders;
}

void SourceFolder::hide(const std::vector<std::string>& macros, const KernelSource& source,
                        const std::vector<fs::path>& searched_later) const {
  for (const std::string& name : macros.empty() ? std::vector<std::string>() : source.other_headers()) {
    const bool is_there = std::any_of(searched_later.begin(), searched_later.end(), [&](const fs::path& folder) {
      std::error_code ignored;
      return fs::is_regular_file(folder / name, ignored);
    });
    if (is_there) {
      fs::create_directories((hiding() / name).parent_path());
      write_file_atomically(hiding() / name, header_without(macros, name));
    }
  }
}

fs::path shared_headers() { return data_folder("shim") / "shared"; }

bool is_cuda_header(std::string_view header) {
  constexpr std::array<std::string_view, 32> kBeginnings{"cuda",
                                                         "cuComplex",
                                                         "cooperative_groups",
                                                         "cub/",
                                                         "cute/",
                                                         "cutlass/",
                                                         "thrust/",
                                                         "nv/",
                                                         "nvtx3/",
                                                         "nvrtc.h",
                                                         "curand",
                                                         "cublas",
                                                         "cufft",
                                                         "cusparse",
                                                         "cusolver",
                                                         "npp",
                                                         "mma.h",
                                                         "crt/",
                                                         "sm_",
                                                         "vector_",
                                                         "math_",
                                                         "device_",
                                                         "texture_",
                                                         "surface_",
                                                         "builtin_types.",
                                                         "channel_",
                                                         "common_functions.",
                                                         "driver_",
                                                         "host_config.",
                                                         "host_defi",
                                                         "library_t",
                                                         "fatbinary"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return header.starts_with(beginning); });
}

std::string without_folder(std::string log, const fs::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = log.find(prefix); at != std::string::npos; at = log.find(prefix, at)) {
    log.erase(at, prefix.size());
  }
  return log;
}

std::string line_directive(const fs::path& file) {
  std::string name;
  for (const char c : file.string()) {
    const bool ends_line = c == '\n' || c == '\r';
    name += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{ends_line ? '?' : c};
  }
  return fmt::format("#line 1 \"{}\"\n", name);
}

std::string macro_name(const std::string& macro) { return macro.substr(0, macro.find('=')); }

std::vector<std::string> macros_of(const CompileRequest& request) {
  std::vector<std::string> macros = request.defines;
  for (const std::string& option : request.options) {
    if (auto macro = macro_of_option(option)) {
      macros.push_back(std::move(*macro));
    }
  }
  return macros;
}

bool is_macro_option(const std::string& option) { return macro_of_option(option).has_value(); }

std::string define_lines(const std::vector<std::string>& macros) {
  std::string lines;
  for (const std::string& macro : macros) {
    lines += fmt::format("#undef {}\n{}", macro_name(macro), define_line(macro));
  }
  return lines;
}

std::string undefine_lines(const std::vector<std::string>& macros) {
  std::string lines;
  for (const std::string& macro : macros) {
    lines += fmt::format("#undef {}\n", macro_name(macro));
  }
  return lines;
}

std::string folder_hash(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  FieldHash hash;
  for (const fs::path& file : files) {
    hash.add(file.lexically_relative(folder).string()).add(read_file(file));
  }
  return hash.hex();
}

}  // namespace pascaline
