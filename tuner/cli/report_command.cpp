#include <fmt/format.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/paths.hpp"
#include "report/document_json.hpp"
#include "report/gather.hpp"
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

std::string report_text(const Store& store, const ReportCommandOptions& options) {
  if (options.format == "json") {
    return document_json(gather_report(store, options.report)).dump() + "\n";
  }
  return options.format == "csv" ? csv_report(store, options.report) : markdown_report(store, options.report);
}

int report(const ReportCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  if (!options.output.empty() && options.output != "-") {
    require_writable(options.output);
  }
  const std::string text = report_text(store, options);
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
  CLI::App* command = app.add_subcommand("report", "Write a report of a database as Markdown, CSV or JSON");
  const auto options = std::make_shared<ReportCommandOptions>();
  add_database_option(*command, options->database, "Database to read");
  command->add_option("-f,--format", options->format, "md, csv or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"md", "csv", "json"}));
  command->add_option("-o,--output", options->output, "File to write (default: standard output)");
  command->add_option("-k,--kernel", options->report.kernel, "Only this kernel");
  command->add_option("--device-name", options->report.device, "Only this device, by its whole name");
  command->add_option("--title", options->report.title, "Title of the report")->capture_default_str();
  command->add_option("-w,--workload", options->report.workload,
                      "A workload file whose calls weigh the gains of JSON (default: qwen3-vl-2b), or none");
  command->add_option("--spaces", options->report.spaces_folder, "Folder of the workload's search spaces");
  command->footer(
      "The columns of the CSV and the JSON are described in docs/report.md.\n\nExamples:\n"
      "  pascaline report -o report.md\n  pascaline report --format csv --kernel matmul -o trials.csv");
  command->callback([&action, options] { action = [options] { return report(*options); }; });
}

}  // namespace pascaline::cli
