#include <fmt/format.h>

#include <cstdio>

#include "core/paths.hpp"
#include "report/report.hpp"
#include "tuner/cli/command.hpp"

namespace pascaline::cli {
namespace {

struct ReportCommandOptions {
  std::string database;
  std::string format = "md";
  std::string output;
  ReportOptions report;
};

int report(const ReportCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  const std::string text =
      options.format == "csv" ? csv_report(store, options.report) : markdown_report(store, options.report);
  if (options.output.empty() || options.output == "-") {
    fmt::print("{}", text);
  } else {
    write_file_atomically(options.output, text);
    fmt::print(stderr, "wrote {}\n", options.output);
  }
  return kSuccess;
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("report", "Write a report of a database as Markdown or CSV");
  const auto options = std::make_shared<ReportCommandOptions>();
  add_database_option(*command, options->database, "Database to read");
  command->add_option("-f,--format", options->format, "md or csv")
      ->capture_default_str()
      ->check(CLI::IsMember({"md", "csv"}));
  command->add_option("-o,--output", options->output, "File to write (default: standard output)");
  command->add_option("-k,--kernel", options->report.kernel, "Only this kernel");
  command->add_option("--device-name", options->report.device, "Only this device, by its whole name");
  command->add_option("--title", options->report.title, "Title of the Markdown report")->capture_default_str();
  command->footer(
      "The columns of the CSV are described in docs/report.md.\n\nExamples:\n"
      "  pascaline report -o report.md\n  pascaline report --format csv --kernel matmul -o trials.csv");
  command->callback([&action, options] { action = [options] { return report(*options); }; });
}

}  // namespace pascaline::cli
