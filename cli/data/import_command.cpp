#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/util/counted.hpp"
#include "db/exchange/import.hpp"
#include "report/text.hpp"

namespace pascaline::cli {
namespace {

struct ImportCommandOptions {
  std::vector<std::string> files;
  std::string database;
  bool dry_run = false;
  bool as_json = false;
};

std::size_t usable(const ImportedResults& results) {
  return static_cast<std::size_t>(std::count_if(results.trials.begin(), results.trials.end(),
                                                [](const Trial& trial) { return trial.status == TrialStatus::ok; }));
}

std::string import_text(const ResultsFile& read, std::optional<std::int64_t> session, bool dry_run) {
  const ImportedResults& results = read.results;
  if (!session) {
    return fmt::format("{}: nothing new (imported before)\n", clean_line(read.file.string()));
  }
  const std::string left_out = read.left_out > 0 ? fmt::format("; {} left out because the time is not positive",
                                                               counted(read.left_out, "configuration"))
                                                 : "";
  return fmt::format("{}: {}{} ({} usable) of {} on {}{}{}\n", clean_line(read.file.string()),
                     dry_run ? "would import " : "", counted(results.trials.size(), "trial"), usable(results),
                     clean_line(results.problem.text()), clean_line(results.device.name),
                     dry_run ? "" : fmt::format(", session {}", *session), left_out);
}

nlohmann::json import_json(const ResultsFile& read, std::optional<std::int64_t> session, bool dry_run) {
  const ImportedResults& results = read.results;
  return {{"file", read.file.string()},
          {"format", read.format},
          {"changed", session.has_value()},
          {"session", session && !dry_run ? nlohmann::json(*session) : nlohmann::json()},
          {"kernel", clean_line(results.kernel.name)},
          {"problem", clean_line(results.problem.text())},
          {"device", clean_line(results.device.name)},
          {"trials", results.trials.size()},
          {"usable", usable(results)},
          {"left_out", read.left_out}};
}

int import_files(const ImportCommandOptions& options) {
  // All are read before any is stored: a file that is wrong leaves the database as it was.
  std::vector<ResultsFile> read;
  for (const std::string& file : options.files) {
    read.push_back(read_results(file, command_line()));
  }
  const std::filesystem::path database = database_path(options.database);
  Store store = options.dry_run ? Store::scratch_copy(database) : Store(database, OpenMode::create);
  nlohmann::json imported = nlohmann::json::array();
  for (const ResultsFile& file : read) {
    const std::optional<std::int64_t> session = store.add_results(file.results);
    if (options.as_json) {
      imported.push_back(import_json(file, session, options.dry_run));
    } else {
      fmt::print("{}", import_text(file, session, options.dry_run));
      std::fflush(stdout);
    }
  }
  if (options.as_json) {
    const nlohmann::json document{
        {"database", database.string()}, {"dry_run", options.dry_run}, {"imported", std::move(imported)}};
    fmt::print("{}\n", document.dump(2));
  }
  return kSuccess;
}

void add_import_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("import", "Import results of other tuners");
  const auto options = std::make_shared<ImportCommandOptions>();
  command
      ->add_option("files", options->files,
                   "Caches of Kernel Tuner, T4 results, results of CLBlast or KTT, or tables (CSV), plain or gzip")
      ->required();
  add_database_option(*command, options->database, "Database to store them in; created if missing");
  command->add_flag("--dry-run", options->dry_run, "Show what would be imported; change nothing");
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Each file becomes a session of its own on a device of kind 'foreign', to be shown, reported, exported and\n"
      "replayed. Sweeps and the dispatcher do not use it. Files imported before are skipped.\n\n"
      "Examples:\n  pascaline import convolution.json --db others.db\n  pascaline import *.json.gz --dry-run");
  command->callback([&action, options] { action = [options] { return import_files(*options); }; });
}

const Command kImportCommand(Heading::data, 7, add_import_command);

}  // namespace

}  // namespace pascaline::cli
