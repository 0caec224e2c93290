#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/command.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/paths.hpp"
#include "report/text.hpp"
#include "tuner/bundle/bundle_maker.hpp"

namespace pascaline::cli {
namespace {

struct BundleCommandOptions {
  BundleTargetOptions target;
  std::string database;
  bool untuned = false;
  std::vector<std::string> workloads;
  bool listed_only = false;
  std::string output;
  std::string kernels;
  std::string spaces;
  std::string nvrtc;
  std::string cache;
  std::size_t jobs = 1;
};

std::filesystem::path folder_or(const std::string& given, std::string_view name) {
  return given.empty() ? data_folder(name) : std::filesystem::path(given);
}

void show_progress(std::size_t all, std::size_t done) {
  if (::isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr, "\r{}/{} compiled{}", done, all, done == all ? "\n" : "");
  }
}

void print_summary(const BundleCommandOptions& options, const MadeBundle& made, std::size_t bytes) {
  std::size_t winners = 0;
  std::size_t codes = 0;
  for (const BundleKernel& kernel : made.bundle.kernels) {
    winners += kernel.winners.size();
    codes += kernel.codes.size();
  }
  std::string compilers;
  for (const ToolkitRow& toolkit : made.bundle.toolkits) {
    compilers += fmt::format("{}{} {}", compilers.empty() ? "" : " and ", toolkit.compiler, toolkit.version);
  }
  fmt::print("{}: {}, {} of {} for {}, {:.1f} MiB\n", clean_line(options.output), counted(winners, "winner"),
             codes == 1 ? "1 binary" : fmt::format("{} binaries", codes), counted(made.bundle.kernels.size(), "kernel"),
             counted(made.problems, "problem"), static_cast<double>(bytes) / (1 << 20));
  fmt::print("for {}{}{}, by {}\n", made.bundle.kind == BinaryKind::ptx ? "PTX of " : "",
             clean_line(shown_architecture(made.bundle.architecture)),
             made.bundle.device ? fmt::format(" on {}", clean_line(made.bundle.device->name)) : "",
             clean_line(compilers));
}

int bundle(const BundleCommandOptions& options) {
  catch_interrupts();
  require_writable(options.output);
  BundleMakerOptions maker;
  maker.kernels = folder_or(options.kernels, "kernel_templates");
  maker.spaces = folder_or(options.spaces, "search_spaces");
  maker.cache = options.cache.empty() ? cache_folder() : std::filesystem::path(options.cache);
  maker.nvrtc = options.nvrtc;
  maker.jobs = options.jobs;
  maker.listed_only = options.listed_only;
  for (const std::string& file : options.workloads) {
    maker.workloads.push_back(Workload::load(file));
  }
  const BundleTarget target =
      options.untuned ? untuned_target(options.target) : tuned_target(database_path(options.database), options.target);
  const MadeBundle made = make_bundle(target, maker, show_progress, interrupted());
  if (made.stopped) {
    return kInterrupted;
  }
  const std::string bytes = encode_bundle(made.bundle);
  write_file_atomically(options.output, bytes);
  for (const std::string& warning : made.warnings) {
    fmt::print(stderr, "pascaline: warning: {}\n", clean_line(warning));
  }
  print_summary(options, made, bytes.size());
  return kSuccess;
}

void add_bundle_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "bundle", "Put winners and their compiled code into one file, for machines without a compiler");
  const auto options = std::make_shared<BundleCommandOptions>();
  options->jobs = default_jobs();
  CLI::Option* const untuned =
      command->add_flag("--untuned", options->untuned, "Use no database: every kernel's default configuration");
  add_database_option(*command, options->database, "Database to take winners from");
  command->get_option("--db")->excludes(untuned);
  command->add_option("-a,--arch", options->target.architecture, "Architecture, e.g. sm_61, or emulator")
      ->capture_default_str()
      ->check(architecture_name(true));
  command->add_flag("--ptx", options->target.ptx, "Its PTX instead of machine code, which newer GPUs run too");
  command->add_option("--device-name", options->target.device_name, "Use the winners of this device")
      ->excludes(untuned);
  command
      ->add_option("--sm-count", options->target.sm_count,
                   "Multiprocessors of the device (default: the winners'; with --untuned 20 for sm_61)")
      ->transform(whole_number(1, 1024));
  command->add_option("-w,--workload", options->workloads, "Also code for the shapes of this workload (repeatable)");
  command->add_flag("--listed-only", options->listed_only,
                    "Code for only the listed shapes (of winners and workloads), not for sizes in between");
  command->add_option("-o,--output", options->output, "Bundle to write")->required();
  command->add_option("--kernels", options->kernels, "Folder of kernel templates (default: the installed ones)");
  command->add_option("--spaces", options->spaces, "Folder of search spaces (default: the installed ones)");
  command->add_option("--nvrtc", options->nvrtc, kNvrtcHelp)->transform(nvrtc_choice());
  command->add_option("--cache", options->cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  command->add_option("-j,--jobs", options->jobs, "Compile workers (default: every processor)")
      ->transform(whole_number(1, 1024));
  command->footer(
      "Examples:\n"
      "  pascaline bundle --db tuned.db --arch sm_61 -o model.pasc\n"
      "  pascaline workload --model Qwen3-VL-2B-Instruct -o mine.json\n"
      "  pascaline bundle --db tuned.db --workload mine.json -o model.pasc\n"
      "  pascaline generate --model Qwen3-VL-2B-Instruct --bundle model.pasc --prompt 'Name three rivers.'");
  command->callback([&action, options] { action = [options] { return bundle(*options); }; });
}

const Command kBundleCommand(Heading::data, 4, add_bundle_command);

}  // namespace

}  // namespace pascaline::cli
