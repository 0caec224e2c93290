#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "db/merge.hpp"
#include "report/text.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/probe/probe_report.hpp"
#include "tuner/probe/probe_run.hpp"

namespace pascaline::cli {
namespace {

struct ProbeCommandOptions {
  DeviceOptions device;
  std::string database;
  std::vector<std::string> only;
  std::string time = "60s";
  std::string report;
  bool show = false;
  bool as_json = false;
};

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const ProbePart part : probe_parts()) {
    names.emplace_back(name_of(part));
  }
  return names;
}

ProbeOptions probe_options(const ProbeCommandOptions& options) {
  ProbeOptions wanted;
  for (const std::string& name : options.only) {
    wanted.only.push_back(*probe_part_from(name));
  }
  wanted.seconds = parse_duration_s(options.time);
  wanted.target = options.device.target;
  wanted.nvrtc = options.device.nvrtc;
  wanted.kernels = data_folder("kernel_templates") / "probe";
  wanted.cache = options.device.cache_path();
  wanted.on_part = [](ProbePart part) { fmt::print(stderr, "measuring: {}\n", name_of(part)); };
  return wanted;
}

// The emulator only where it is asked for: its rates are no card's.
std::string probed_device(const DeviceOptions& options) {
  if (!options.device.empty()) {
    return options.device;
  }
  std::string note;
  const DeviceInfo first = list_devices(&note).front();
  if (first.kind != DeviceKind::cuda) {
    throw Error(
        fmt::format("there is no CUDA device to measure: {}; to try the command without one, give --device "
                    "emulator",
                    note));
  }
  return first.id;
}

std::string why_nothing(const Probe& probe) {
  std::string text = "nothing could be measured";
  for (const auto& [part, reason] : probe.left_out) {
    text += fmt::format("; {}: {}", name_of(part), reason);
  }
  return text;
}

void print_probe(const StoredProbe& stored, const ProbeCommandOptions& options) {
  if (options.as_json) {
    fmt::print("{}\n", probe_json(stored).dump(2));
  } else {
    fmt::print("{}", probe_text(stored));
  }
  std::fflush(stdout);
}

int probe_into(Store& store, const ProbeCommandOptions& options, const ProbeOptions& wanted) {
  const std::unique_ptr<Device> device = open_device(probed_device(options.device));
  std::optional<ProbeOutcome> outcome = run_probe(*device, wanted, interrupted());
  if (!outcome) {
    fmt::print(stderr, "interrupted: nothing was stored\n");
    return kInterrupted;
  }
  if (outcome->probe.values.empty()) {
    throw Error(why_nothing(outcome->probe));
  }
  StoredProbe stored{0, std::move(outcome->probe), device_row(device->info()), std::move(outcome->toolkit)};
  stored.probe.uuid = Store::new_run();
  // What was measured is shown even if it cannot be stored, and stored even if the file cannot be written.
  print_probe(stored, options);
  std::exception_ptr not_written;
  try {
    if (!options.report.empty()) {
      write_file_atomically(options.report, probe_json(stored).dump(2) + "\n");
    }
  } catch (const Error&) {
    not_written = std::current_exception();
  }
  store.add_probe(stored.probe, store.device_id(stored.device), store.toolkit_id(stored.toolkit));
  if (not_written) {
    fmt::print(stderr, "stored in {}\n", store.file().string());
    std::rethrow_exception(not_written);
  }
  fmt::print(stderr, "stored in {}{}\n", store.file().string(),
             options.report.empty() ? "" : fmt::format(", and written to {}", options.report));
  return kSuccess;
}

int probe(const ProbeCommandOptions& options) {
  const ProbeOptions wanted = probe_options(options);
  catch_interrupts();
  // What cannot be written is better known before a minute of measuring than after it.
  if (!options.report.empty()) {
    require_writable(options.report);
  }
  const std::filesystem::path database = database_path(options.database);
  const bool made_here = !std::filesystem::exists(database);
  int code = kFault;
  try {
    Store store(database, OpenMode::create);
    if (!options.report.empty()) {
      require_no_database(options.report, store.file());
    }
    code = probe_into(store, options, wanted);
  } catch (const Error&) {
    if (made_here) {
      remove_if_unused(database);
    }
    throw;
  }
  if (made_here && code != kSuccess) {
    remove_if_unused(database);
  }
  return code;
}

// Of each device the latest as text, or all as JSON.
int show_probes(const ProbeCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  const std::vector<StoredProbe> probes = store.probes(nullptr);
  if (options.as_json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const StoredProbe& stored : probes) {
      all.push_back(probe_json(stored));
    }
    fmt::print("{}\n", all.dump(2));
    return kSuccess;
  }
  if (probes.empty()) {
    fmt::print("{}: no device was probed; `pascaline probe` does that\n", store.file().string());
  }
  std::vector<DeviceRow> shown;
  for (const StoredProbe& stored : probes) {
    const auto same = [&](const DeviceRow& device) { return same_identity(device, stored.device); };
    if (std::any_of(shown.begin(), shown.end(), same)) {
      continue;
    }
    shown.push_back(stored.device);
    fmt::print("{}{}, by pascaline {}\n{}", shown.size() > 1 ? "\n" : "", utc_time(stored.probe.started_unix_ms),
               stored.probe.program_version, probe_text(stored));
  }
  return kSuccess;
}

void add_probe_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("probe", "Measure clock, rates, bandwidths and latencies of a device, in about a minute");
  const auto options = std::make_shared<ProbeCommandOptions>();
  command
      ->add_option("-d,--device", options->device.device,
                   "cuda:N, or emulator (default: cuda:0; of the emulator memory and launches only)")
      ->check(device_name());
  command
      ->add_option("--target", options->device.target,
                   "Architecture whose code is run, e.g. sm_61 (default: the device's own)")
      ->check(target_name());
  command->add_option("--nvrtc", options->device.nvrtc, "NVRTC to use: a version such as 11.8, or a library's path")
      ->transform(nvrtc_choice());
  command->add_option("--cache", options->device.cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  add_database_option(*command, options->database, "Database to store the results in; created if missing");
  command
      ->add_option("--only", options->only,
                   "Measure only these parts: clock, arithmetic, shared, l2, memory, launch, latency, conflicts")
      ->delimiter(',')
      ->check(one_of(part_names()));
  command->add_option("--time", options->time, "About how long to measure, from 5s to 1h; compiling is not counted")
      ->capture_default_str()
      ->check(duration(5, 3600));
  command->add_option("-o,--report", options->report, "Also write all results to this file, as JSON")
      ->check(not_empty())
      ->check([](const std::string& file) {
        return file == "-" ? std::string("'-' is no file; --json prints the results") : std::string();
      });
  CLI::Option* const show = command->add_flag("--show", options->show, "Measure nothing: show what the database holds");
  for (const char* measuring : {"--device", "--target", "--nvrtc", "--cache", "--only", "--time", "--report"}) {
    show->excludes(measuring);
  }
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Stored results are used in place of tables: by the model that a sweep begins with and `pascaline rank\n"
      "--device-name`, by the roofline of reports and by bench-model. Results whose spread is above 5 % are kept but "
      "not "
      "used.\n"
      "On a Pascal card it also measures what a register bank conflict costs: see docs/first_card.md.\n\n"
      "Examples:\n  pascaline probe\n  pascaline probe --report probe.json\n  pascaline probe --only memory launch "
      "--time 20s\n"
      "  pascaline probe --show");
  command->callback(
      [&action, options] { action = [options] { return options->show ? show_probes(*options) : probe(*options); }; });
}

const Command kProbeCommand(Heading::tune, 2, add_probe_command);

}  // namespace

}  // namespace pascaline::cli
