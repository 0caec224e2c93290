#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "db/exchange/t1_space.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;

struct ImportSpaceOptions {
  std::string file;
  std::string into;
  std::string name;
  bool force = false;
};

bool is_there(const fs::path& file) {
  std::error_code error;
  const bool there = fs::exists(file, error);
  if (error) {
    throw Error(fmt::format("cannot look for {}: {}", file.string(), error.message()));
  }
  return there;
}

// Folders that were made, innermost first; those that stay empty go again unless they are kept.
class MadeFolders {
 public:
  explicit MadeFolders(const fs::path& folder) {
    std::error_code error;
    for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
      made_.push_back(at);
    }
    fs::create_directories(folder, error);
    if (!error && fs::is_directory(folder, error)) {
      return;
    }
    remove();
    throw Error(fmt::format("cannot make the folder {}: {}; give another with --into", folder.string(),
                            error ? error.message() : "a file is in its place"));
  }
  ~MadeFolders() { remove(); }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

  void keep() noexcept { made_.clear(); }

 private:
  void remove() const {
    std::error_code ignored;
    for (const fs::path& folder : made_) {
      fs::remove(folder, ignored);
    }
  }

  std::vector<fs::path> made_;
};

// The space as it will be read; what it complains of is of the T1 input.
Space checked_space(const T1Input& input, const std::string& text) {
  try {
    return Space::parse(text, input.file);
  } catch (const SpaceError& error) {
    throw SpaceError(
        input.file, "",
        fmt::format("cannot become a search space: {}", std::string_view(error.what()).substr(input.file.size() + 1)));
  }
}

// The kernel's file as the T1 input names it: in its own folder or below, as the input may come from anyone.
fs::path named_source(const T1Input& input) {
  const fs::path named = input.kernel_file;
  const auto refuse = [&](const std::string& problem) {
    throw SpaceError(input.file, "/KernelSpecification/KernelFile", problem);
  };
  if (named.is_absolute() || std::find(named.begin(), named.end(), "..") != named.end()) {
    refuse(fmt::format("'{}' leads out of the folder of this file; put the kernel's file beside it, and name it so",
                       input.kernel_file));
  }
  fs::path beside = fs::path(input.file).parent_path() / named;
  if (std::error_code ignored; !fs::is_regular_file(beside, ignored)) {
    refuse(fmt::format("there is no file {}", beside.string()));
  }
  return beside;
}

void require_stem(const T1Input& input, const std::string& name) {
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') {
      throw SpaceError(input.file, "/KernelSpecification/KernelName",
                       fmt::format("'{}' cannot be a file's name here; give another with --name", name));
    }
  }
}

// Both files or none: what was there before comes back if the second cannot be written.
void write_pair(const fs::path& source_file, const std::string& source, const fs::path& space_file,
                const std::string& space) {
  std::string before;
  const bool existed = is_there(source_file);
  if (existed) {
    before = read_file(source_file);
  }
  write_file_atomically(source_file, source);
  try {
    write_file_atomically(space_file, space);
  } catch (const Error&) {
    std::error_code ignored;
    if (existed) {
      write_file_atomically(source_file, before);
    } else {
      fs::remove(source_file, ignored);
    }
    throw;
  }
}

int import_space(const ImportSpaceOptions& options) {
  const T1Input input = read_t1(options.file);
  const std::string name = options.name.empty() ? input.kernel_name : options.name;
  require_stem(input, name);
  const fs::path folder = options.into;
  const fs::path space_file = folder / (name + ".json");
  const fs::path source_file = folder / (name + ".cu");
  for (const fs::path& file : {space_file, source_file}) {
    if (is_there(file) && !options.force) {
      throw Error(fmt::format("{} exists; give --force to replace it, or another name with --name", file.string()));
    }
  }
  const std::string text = t1_space_json(input, name);
  const Space space = checked_space(input, text);
  const fs::path kernel = named_source(input);
  if (const KernelSource source = KernelSource::load(kernel); !source.headers.empty()) {
    throw Error(
        fmt::format("{} includes '{}', and only one file can be taken over: put what it needs into the kernel's "
                    "file",
                    kernel.string(), source.headers.front().first));
  }
  const std::string source = t1_kernel_source(read_file(kernel), input);
  MadeFolders folders(folder);
  write_pair(source_file, source, space_file, text);
  folders.keep();
  fmt::print("wrote {} and {}: {} parameters, {} constraints, {:.0f} combinations before constraints\n",
             space_file.string(), source_file.string(), space.parameters.size(), space.constraints.size(),
             space.raw_size());
  return kSuccess;
}

}  // namespace

void add_import_space_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("import-space", "Make a search space and its kernel out of a T1 input file");
  const auto options = std::make_shared<ImportSpaceOptions>();
  command->add_option("file", options->file, "T1 input, JSON, plain or gzip")->required();
  command->add_option("--into", options->into, "Folder to write NAME.json and NAME.cu to")->required();
  command->add_option("--name", options->name, "Name of the kernel here (default: its KernelName)");
  command->add_flag("--force", options->force, "Replace files that exist");
  command->footer(
      "What can be taken over is in docs/exchange.md. Results are checked against those of the default "
      "configuration.\n\n"
      "Examples:\n  pascaline import-space stencil.json --into my\n"
      "  pascaline sweep --kernels my --spaces my --kernel stencil");
  command->callback([&action, options] { action = [options] { return import_space(*options); }; });
}

}  // namespace pascaline::cli
