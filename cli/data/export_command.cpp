#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <system_error>

#include "app/data/known_names.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/file_draft.hpp"
#include "core/util/paths.hpp"
#include "db/exchange/store_spaces.hpp"
#include "db/exchange/write.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;

struct ExportCommandOptions {
  std::string database;
  std::string format;
  std::string output;
  SpaceFilter filter;
};

void write_out(const std::string& output, const std::string& text) {
  if (output.empty() || output == "-") {
    fmt::print("{}", text);
    return;
  }
  write_file_atomically(output, text);
  fmt::print(stderr, "wrote {}\n", output);
}

// A space's name as that of a file; a number tells apart what would be the same.
std::string file_name(const RecordedSpace& space, const std::string& ending, std::set<std::string>& taken) {
  std::string stem = space.name;
  std::replace_if(
      stem.begin(), stem.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '='; }, '_');
  std::string name = stem + ending;
  for (int number = 2; !taken.insert(name).second; ++number) {
    name = fmt::format("{}_{}{}", stem, number, ending);
  }
  return name;
}

void write_spaces(const ExportCommandOptions& options, const std::vector<RecordedSpace>& spaces) {
  const bool table = options.format == "csv";
  const auto text_of = [&](const RecordedSpace& space) { return table ? recorded_csv(space) : t4_json(space); };
  const bool folder = fs::is_directory(options.output) || options.output.ends_with('/');
  if (spaces.size() == 1 && !folder) {
    write_out(options.output, text_of(spaces.front()));
    return;
  }
  if (options.output.empty() || options.output == "-") {
    throw Error(
        fmt::format("there are {} recorded spaces, one file each: give a folder with --output, or "
                    "narrow them down with --kernel, --problem or --device",
                    spaces.size()));
  }
  std::error_code fault;
  fs::create_directories(options.output, fault);
  if (fault) {
    throw Error(
        fmt::format("cannot make the folder {} for {} files: {}", options.output, spaces.size(), fault.message()),
        fault.value());
  }
  std::set<std::string> taken;
  for (const RecordedSpace& space : spaces) {
    write_out(fs::path(options.output) / file_name(space, table ? ".csv" : ".json", taken), text_of(space));
  }
}

// As it comes, since it can be larger than memory.
void write_lines(const Store& store, std::FILE* out, const std::string& name) {
  const auto fail = [&] {
    const int code = errno;
    throw Error(fmt::format("cannot write {}: {}", name, std::generic_category().message(code)), code);
  };
  store.for_each_line([&](std::string_view line) {
    if (std::fwrite(line.data(), 1, line.size(), out) != line.size() || std::fputc('\n', out) == EOF) {
      fail();
    }
  });
  if (std::fflush(out) != 0) {
    fail();
  }
}

void write_rows(const Store& store, const std::string& output) {
  if (output.empty() || output == "-") {
    write_lines(store, stdout, "standard output");
    return;
  }
  FileDraft draft(output);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(::fdopen(draft.open().release(), "wb"), std::fclose);
  write_lines(store, file.get(), output);
  file.reset();
  draft.complete();
  fmt::print(stderr, "wrote {}\n", output);
}

int export_database(ExportCommandOptions options, const std::string& problem) {
  const bool narrowed = !options.filter.kernel.empty() || !options.filter.device.empty() || !problem.empty();
  if (options.format == "rows" && narrowed) {
    throw UsageError("--format rows writes all of a database: leave --kernel, --problem and --device out");
  }
  require_kernel_of(problem, options.filter.kernel);
  const Store store(database_path(options.database), OpenMode::read_only);
  if (options.format == "rows") {
    if (!options.output.empty() && options.output != "-") {
      require_writable(options.output);
    }
    write_rows(store, options.output);
    return kSuccess;
  }
  options.filter.problem = stored_problem(store, options.filter.kernel, problem);
  options.filter.with_samples = options.format == "t4";
  const std::vector<RecordedSpace> spaces = recorded_spaces(store, options.filter);
  if (spaces.empty()) {
    throw Error(fmt::format("{} has no such trials; `pascaline show trials` lists what it has", store.file().string()));
  }
  write_spaces(options, spaces);
  return kSuccess;
}

void add_export_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("export", "Write results in formats that other tuners read, or all rows to compare and keep");
  const auto options = std::make_shared<ExportCommandOptions>();
  const auto problem = std::make_shared<std::string>();
  add_database_option(*command, options->database, "Database to read");
  command
      ->add_option(
          "-f,--format", options->format,
          "t4: T4 results, csv: a table; a file for each problem, device, toolkit and source. rows: all of the "
          "database, a line of JSON for each row, in an order that depends only on its contents")
      ->required()
      ->check(one_of({"t4", "csv", "rows"}));
  command->add_option("-k,--kernel", options->filter.kernel, "Only this kernel");
  command->add_option("-p,--problem", *problem,
                      "Only this shape, e.g. M=512,N=2048: as much of it as tells it from the others stored");
  command->add_option("-d,--device", options->filter.device, "Only this device, by its whole name");
  command->add_option("-o,--output", options->output,
                      "File to write, or a folder for several (default: standard output)");
  command->footer(
      "The formats are described in docs/exchange.md.\n\nExamples:\n"
      "  pascaline export --format csv --kernel matmul --problem M=1,N=2048,K=2048 -o matmul.csv\n"
      "  pascaline export --format t4 --kernel matmul -o results/\n"
      "  pascaline export --format rows -o tuned.jsonl");
  command->callback(
      [&action, options, problem] { action = [options, problem] { return export_database(*options, *problem); }; });
}

const Command kExportCommand(Heading::data, 6, add_export_command);

}  // namespace

}  // namespace pascaline::cli
