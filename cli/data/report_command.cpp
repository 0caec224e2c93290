#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "app/data/code_limits.hpp"
#include "app/data/known_names.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "report/comparison.hpp"
#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "report/html.hpp"
#include "report/report.hpp"

namespace pascaline::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kExtensions{
    {{".html", "html"}, {".htm", "html"}, {".md", "md"}, {".markdown", "md"}, {".csv", "csv"}, {".json", "json"}}};

struct ReportCommandOptions {
  std::string database;
  std::string against;
  std::string session;
  std::string against_session;
  std::optional<double> fail_percent;
  std::string format;
  std::string output;
  std::string kernels;
  std::string bundle;
  std::string cache;
  bool no_compile = false;
  bool no_limits = false;
  ReportOptions report;

  [[nodiscard]] bool compares() const { return !against.empty() || !against_session.empty(); }
};

// The one that was asked for, else that which the file's name says; without an ending Markdown.
std::string format_of(const ReportCommandOptions& options) {
  std::string named = std::filesystem::path(options.output).extension().string();
  std::transform(named.begin(), named.end(), named.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto known = std::find_if(kExtensions.begin(), kExtensions.end(),
                                  [&](const auto& extension) { return extension.first == named; });
  if (options.format.empty() && known == kExtensions.end() && !named.empty()) {
    throw UsageError(
        fmt::format("--output {}: no format of reports has the ending {}; give a name that ends in .html, .htm, .md, "
                    ".markdown, .csv or .json, or --format",
                    options.output, named));
  }
  if (options.format.empty()) {
    return known == kExtensions.end() ? "md" : std::string(known->second);
  }
  if (known != kExtensions.end() && known->second != options.format) {
    throw UsageError(
        fmt::format("--format {} contradicts --output {}, which is named as {}: leave --format out, or "
                    "give a name that ends in .{}",
                    options.format, options.output, known->second, options.format));
  }
  return options.format;
}

void require_consistent(const ReportCommandOptions& options) {
  if (!options.against_session.empty() && options.against.empty() && options.session.empty()) {
    throw UsageError(
        "--against-session has nothing to compare with: give --session of the same database, or the other database "
        "with --against");
  }
  if (options.fail_percent && !options.compares()) {
    throw UsageError("--fail-on-regression needs a comparison: --against, or --session with --against-session");
  }
  if (!options.report.workload.empty() && options.report.workload != kNoWorkload &&
      (options.format == "md" || options.format == "csv")) {
    throw UsageError("--workload weights the speedups in HTML and JSON; use --format html or json");
  }
  if (options.compares() && options.format == "csv") {
    throw UsageError("a comparison cannot be written as CSV; use --format md, html or json");
  }
}

std::vector<std::int64_t> sessions_of(const Store& store, const std::string& word) {
  return word.empty() ? std::vector<std::int64_t>{} : find_sessions(store, word);
}

void require_two_sides(const Side& a, const Side& b) {
  std::error_code other;
  if (a.sessions == b.sessions && std::filesystem::equivalent(a.store->file(), b.store->file(), other)) {
    throw Error(
        fmt::format("{} would be compared with itself; give another database with --against, or two sessions "
                    "of one with --session and --against-session",
                    side_label(a)));
  }
}

// `other` is where the older side is read from if it is in a database of its own; the comparison refers to it.
std::optional<ReportComparison> compare_sides(const ReportCommandOptions& options, const Store& store,
                                              std::optional<Store>& other) {
  if (!options.compares()) {
    return std::nullopt;
  }
  if (!options.against.empty()) {
    other.emplace(options.against, OpenMode::read_only);
  }
  const Store& older = other ? *other : store;
  const Side a{&store, options.report.sessions};
  const Side b{&older, sessions_of(older, options.against_session)};
  require_two_sides(a, b);
  return compare(a, b, options.report);
}

std::string report_text(const ReportCommandOptions& options, const Store& store, const ReportComparison* comparison) {
  if (options.format == "csv") {
    return csv_report(store, options.report);
  }
  if (options.format == "md") {
    return markdown_report(store, options.report, comparison);
  }
  const nlohmann::ordered_json document = document_json(gather_report(store, options.report), comparison);
  return options.format == "html" ? html_report(document) : document.dump() + "\n";
}

// Lets the report ask what limits its kernels, for as long as the returned object lives.
std::unique_ptr<CodeLimits> ask_for_limits(ReportCommandOptions& options) {
  if (options.no_limits || options.format == "csv") {
    return nullptr;
  }
  CodeLimitOptions from = limit_options(options.kernels, options.report.spaces_folder, options.cache);
  from.bundle = options.bundle;
  from.compiles = !options.no_compile;
  auto limits = std::make_unique<CodeLimits>(std::move(from));
  options.report.limit_of = [source = limits.get()](const LimitRequest& request) { return source->limit_of(request); };
  return limits;
}

void write_report(const ReportCommandOptions& options, const std::string& text) {
  if (options.output.empty() || options.output == "-") {
    fmt::print("{}", text);
  } else {
    write_file_atomically(options.output, text);
    fmt::print(stderr, "wrote {}\n", options.output);
  }
}

void require_common_problem(const ReportComparison& comparison) {
  if (std::none_of(comparison.rows.begin(), comparison.rows.end(),
                   [](const ComparisonRow& row) { return row.a && row.b; })) {
    throw Error(
        "--fail-on-regression has nothing to judge: none of the requested problems has a time on both sides (device, "
        "target, "
        "kernel and shape must be the same)");
  }
}

// Whether nothing became too slow; if something did, a line says how much.
bool passes(const ReportCommandOptions& options, const ReportComparison& comparison) {
  const std::size_t regressions =
      options.fail_percent ? count_regressions(comparison, *options.fail_percent) : std::size_t{0};
  if (regressions > 0) {
    fmt::print(stderr, "{} problem{} slower by more than {} %\n", regressions, regressions == 1 ? " is" : "s are",
               *options.fail_percent);
  }
  return regressions == 0;
}

int report(ReportCommandOptions options) {
  options.format = format_of(options);
  require_consistent(options);
  if (!options.output.empty() && options.output != "-") {
    require_writable(options.output);
  }
  const Store store(database_path(options.database), OpenMode::read_only);
  require_no_database(options.output, store.file());
  if (!options.compares()) {  // what only the other side has is a row there
    require_known_kernel(store, options.report.kernel);
    require_known_device(store, options.report.device);
  }
  options.report.sessions = sessions_of(store, options.session);
  std::optional<Store> other;
  const std::optional<ReportComparison> comparison = compare_sides(options, store, other);
  if (other) {
    require_no_database(options.output, other->file());
  }
  if (options.fail_percent) {
    require_common_problem(*comparison);
  }
  const auto limits = ask_for_limits(options);
  write_report(options, report_text(options, store, comparison ? &*comparison : nullptr));
  return comparison && !passes(options, *comparison) ? kNegative : kSuccess;
}

void add_comparison_options(CLI::App& command, ReportCommandOptions& options) {
  command
      .add_option("--session", options.session,
                  "Only this session: its id from `pascaline show sessions`, or the beginning of its uuid or of "
                  "its run's")
      ->check(not_empty());
  command.add_option("--against", options.against, "Compare with this database, the older side")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--against-session", options.against_session,
                  "Compare with this session (of the --against database or, with --session, of the same one)")
      ->check(not_empty());
  command
      .add_option("--fail-on-regression", options.fail_percent,
                  "Exit with code 3 if a problem is slower than on the older side by more than this many percent, and "
                  "significantly so")
      ->type_name("PERCENT")
      ->check(number_within(0, 1000));
}

void add_report_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("report", "Write a report as HTML, Markdown, CSV or JSON");
  const auto options = std::make_shared<ReportCommandOptions>();
  add_database_option(*command, options->database, "Database to read");
  command
      ->add_option("-f,--format", options->format,
                   "html, md, csv or json (default: what the name of --output ends in; md without an ending)")
      ->check(one_of({"html", "md", "csv", "json"}));
  add_comparison_options(*command, *options);
  command->add_option("-o,--output", options->output, "File to write (default: standard output)")->check(not_empty());
  add_report_options(*command, options->report);
  command->add_flag(
      "--no-limits", options->no_limits,
      "Leave out what limits winners and defaults for sm_50 to sm_62, which is estimated from their code");
  command->add_flag("--no-compile", options->no_compile,
                    "For these estimates use only code in the cache; otherwise what is missing is compiled");
  command->add_option("--kernels", options->kernels, "Folder of their kernel templates (default: the installed ones)")
      ->check(CLI::ExistingDirectory);
  command->add_option("--bundle", options->bundle, "Bundle whose code is used before that in the cache")
      ->check(CLI::ExistingFile);
  command->add_option("--cache", options->cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  command->footer(
      "The columns of the CSV and the JSON are described in docs/report.md.\n\nExamples:\n"
      "  pascaline report -o report.html\n  pascaline report -o report.md\n"
      "  pascaline report --kernel matmul -o trials.csv\n"
      "  pascaline report --db tonight.db --against last-week.db --fail-on-regression 5 -o comparison.md\n"
      "  pascaline report --session 7 --against-session 6");
  command->callback([&action, options] { action = [options] { return report(*options); }; });
}

const Command kReportCommand(Heading::data, 2, add_report_command);

}  // namespace

}  // namespace pascaline::cli
