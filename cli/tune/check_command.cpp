#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/util/process.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/emulator/emulated_device.hpp"
#include "runtime/device/emulator/sanitized_run.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/compile/target_verdicts.hpp"
#include "tuner/measure/agreement.hpp"
#include "tuner/measure/problem_memory.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kCheckLimit{10};  // of one configuration
constexpr const char* kTarget = "sm_61";         // whose limits the emulated device has

struct CheckCommandOptions {
  KernelOptions kernel;
  std::uint64_t limit = 0;
  std::uint64_t seed = 1;
  bool as_json = false;
  std::vector<std::string> wrong;  ///< JSON of configurations with wrong results, for the child
};

struct Verdict {
  Config config;
  bool good = false;
  std::string text;
  TrialStatus status = TrialStatus::crashed;
  std::string agrees_with{};  ///< text of the first configuration with the same wrong result
  std::string note{};         ///< how it was compared
  std::vector<std::string> weak_checks{};
};

// Compiles for the emulated device.
Compiled compile_here(const std::string& architecture, CompileRequest request, bool sanitized) {
  request.address_sanitizer = sanitized;
  Compiled compiled;
  compiled.result = CubinCache(cache_folder()).get(Toolchain::find(architecture), request);
  compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
  return compiled;
}

struct CompiledReference {
  std::optional<ReferenceRun> run;
  std::string why_not_default;  ///< it cannot be compiled with the default
};

// With the untuned configuration, else with the closest one with which it compiles.
CompiledReference compile_reference(const BoundSpace& bound, const std::function<Compiled(const Config&)>& compile) {
  CompiledReference reference;
  std::vector<Config> failed;
  try {
    while (failed.size() < kMaxReferences) {
      Config config = plan_untuned(bound, failed, {}).config;
      Compiled compiled = compile(config);
      if (compiled.status == TrialStatus::ok) {
        reference.run = {std::move(compiled.result.binary), std::move(config)};
        break;
      }
      if (failed.empty()) {
        const Reference& of_space = bound.space().reference;
        reference.why_not_default =
            fmt::format("{} does not compile: {}",
                        of_space.kernel ? fmt::format("the reference kernel '{}'", of_space.kernel->function)
                                        : "the default configuration, which results are compared with,",
                        compiled.result.reason);
      }
      failed.push_back(std::move(config));
    }
  } catch (const NoConfigError&) {
    if (failed.empty()) {
      throw;
    }
  }
  return reference;
}

// Of the configurations that are known to be wrong, the one that gives the same as the last one of `runner`, or that
// one itself; nothing if it is not wrong, or incomparably so.
std::optional<Config> agreement(TrialRunner& runner, const std::vector<std::string>& wrong,
                                const std::function<Compiled(const Config&)>& compile) {
  std::optional<Config> own = runner.agrees_with();
  for (const std::string& text : own ? wrong : std::vector<std::string>()) {
    Config other = Config::from_json(json::parse(text));
    (void)runner.run(other, compile(other), 0);
    if (runner.agrees_with() == own) {
      return other;
    }
  }
  return own;
}

// Runs in the child: one configuration, compiled with AddressSanitizer and verified on the emulated device.
int check_one(const CheckCommandOptions& options) {
  end_session_with_parent();
  const Space space = options.kernel.load_space();
  const auto device = open_device("emulator");
  const DeviceInfo& info = device->info();
  const BoundSpace bound(space, options.kernel.load_problems(space).front(), info.limits);
  const Config config = options.kernel.load_config(bound);
  const KernelSource source = KernelSource::load(kernel_file(options.kernel.kernels(), space.kernel, ".cu"), space);
  const auto request = [&](const Config& of) {
    return compile_request(bound, of, source, BinaryKind::host_object, info.architecture);
  };
  const auto compile = [&](const Config& of) { return compile_here(info.architecture, request(of), true); };
  Compiled compiled = compile(config);
  CompiledReference reference;
  if (compiled.status == TrialStatus::ok) {
    reference = compile_reference(bound, [&](const Config& of) {
      return compile_here(info.architecture, reference_request_of(space, request(of)), true);
    });
    if (!reference.run) {
      compiled.status = TrialStatus::rejected;
      compiled.result.reason = reference.why_not_default;
    }
  }
  const std::string reference_config = reference.run ? reference.run->config.text() : "";
  MeasureOptions once;
  once.warm_up = 0;
  once.min_samples = 1;
  once.max_samples = 1;
  once.cold_cache = false;
  DeviceMonitor monitor(*device, {.passive = true});
  TrialRunner runner(monitor, bound, std::move(reference.run), once, options.seed);
  runner.run_whole_shape();
  runner.give(GivenData(options.kernel.given(), bound));
  Trial trial = runner.run(config, compiled, 0);
  // Under AddressSanitizer static shared memory holds what the block before left, or zeros: it is not spoilt.
  if (trial.status == TrialStatus::ok && compiled.result.binary.resources.static_shared_bytes > 0) {
    trial = runner.run(config, compile_here(info.architecture, request(config), false), 0);
  }
  const std::optional<Config> alike = agreement(runner, options.wrong, compile);
  fmt::print("{}\n", json{{"agrees_with", alike ? alike->text() : ""},
                          {"note", !reference_config.empty() && !reference.why_not_default.empty()
                                       ? fmt::format("{}; results are compared with those of {} instead",
                                                     reference.why_not_default, reference_config)
                                       : ""},
                          {"reason", trial.reason},
                          {"status", name_of(trial.status)},
                          {"weak_checks", runner.weak_checks()}}
                         .dump(-1, ' ', false, json::error_handler_t::replace));
  return trial.status == TrialStatus::ok ? kSuccess : kNegative;
}

std::vector<std::string> child_command(const CheckCommandOptions& options, const Problem& problem, const Config& config,
                                       const std::vector<Config>& wrong) {
  std::vector<std::string> command{"/proc/self/exe",      "check-worker", "--kernel",
                                   options.kernel.kernel, "--seed",       std::to_string(options.seed)};
  if (!options.kernel.kernels_folder.empty()) {
    command.insert(command.end(), {"--kernels", options.kernel.kernels_folder});
  }
  if (!options.kernel.spaces_folder.empty()) {
    command.insert(command.end(), {"--spaces", options.kernel.spaces_folder});
  }
  std::string shape;
  for (const auto& [name, value] : problem.dimensions) {
    shape += fmt::format("{}{}={}", shape.empty() ? "" : ",", name, value);
  }
  for (const auto& [name, type] : problem.types) {
    shape += fmt::format(",{}={}", name, name_of(type));
  }
  if (!shape.empty()) {  // a kernel without dimensions and types has but one
    command.insert(command.end(), {"--problem", shape});
  }
  for (const std::string& input : options.kernel.inputs) {
    command.insert(command.end(), {"--input", input});
  }
  for (const std::string& answer : options.kernel.answers) {
    command.insert(command.end(), {"--answer", answer});
  }
  for (const auto& [name, value] : config.settings()) {
    command.insert(command.end(), {"--set", name + "=" + setting_text(value)});
  }
  for (const Config& other : wrong) {
    command.insert(command.end(), {"--wrong", other.json().dump()});
  }
  return command;
}

Verdict judge(const SanitizedRun& run, Config config) {
  Verdict verdict{.config = std::move(config), .text = {}};
  if (run.report) {
    verdict.text = fmt::format("{}: {} at {} in {}", run.report->kind, run.report->access, run.report->location,
                               run.report->function);
    return verdict;
  }
  if (run.timed_out) {
    verdict.text = "did not finish in time";
    return verdict;
  }
  constexpr std::string_view kFaultLine = "pascaline: ";
  const std::size_t fault = run.output.rfind(kFaultLine);
  if (run.exit_code == kFault && fault != std::string::npos) {  // nothing was checked
    const std::size_t begin = fault + kFaultLine.size();
    throw Error(run.output.substr(begin, run.output.find('\n', begin) - begin));
  }
  const std::size_t start = run.output.rfind("{\"agrees_with\"");
  const json reply = start == std::string::npos ? json() : json::parse(run.output.substr(start), nullptr, false);
  if (reply.is_object()) {
    verdict.good = reply.value("status", "") == "ok";
    verdict.status = trial_status_from(reply.value("status", "")).value_or(verdict.status);
    verdict.agrees_with = reply.value("agrees_with", "");
    verdict.note = reply.value("note", "");
    verdict.weak_checks = reply.value("weak_checks", std::vector<std::string>());
    verdict.text = verdict.good ? "ok" : reply.value("status", "") + ": " + reply.value("reason", "");
  } else {
    verdict.text =
        fmt::format("ended with exit code {}: {}", run.exit_code, run.output.substr(0, run.output.find('\n')));
  }
  return verdict;
}

// The configuration given; without --set what the dispatcher would use for an untuned shape.
Plan first_plan(const CheckCommandOptions& options, const BoundSpace& bound) {
  if (options.kernel.settings.empty()) {
    return plan_untuned(bound, {}, {});
  }
  Plan plan;
  plan.config = options.kernel.load_config(bound);
  if (const auto why = bound.why_invalid(plan.config)) {
    throw Error(fmt::format("the configuration {} is not valid: {}", plan.config.text(), *why));
  }
  return plan;
}

std::vector<Config> configurations(const CheckCommandOptions& options, const BoundSpace& bound, const Config& first) {
  std::vector<Config> configs{first};
  if (options.limit > 1) {
    const SearchDomain domain(bound, SearchDomain::kMaxTuples, stop_check(interrupted()));
    SearchOptions search;
    search.seed = options.seed;
    for (const Point& point : make_searcher("random", domain, search)->propose(options.limit)) {
      Config config = bound.space().config_at(point);
      if (configs.size() < options.limit && config != configs.front()) {
        configs.push_back(std::move(config));
      }
    }
  }
  return configs;
}

// Runs one configuration on the emulated device and compares it with the target's verdict, which ends the run where it
// is a refusal. Nothing if this was interrupted.
std::optional<Verdict> check_config(const HostCompiler& compiler, const std::vector<std::string>& command,
                                    TargetVerdicts& target, std::size_t index, const Config& config) {
  const SanitizedRun run =
      run_sanitized(compiler, command, kCheckLimit, [&] { return interrupted().load() || target.refuses(index); });
  if (const auto refused = target.refusal(index, interrupted())) {
    return Verdict{.config = config,
                   .text = fmt::format("{}: {}", name_of(refused->status), refused->reason),
                   .status = refused->status};
  }
  return run.stopped || interrupted() ? std::nullopt : std::optional(judge(run, config));
}

// Checks one problem's configurations; adds a row each. Returns how many are bad.
int check_problem(const CheckCommandOptions& options, const HostCompiler& compiler, const BoundSpace& bound,
                  TargetVerdicts& target, json& rows, std::set<std::string>& weak_checks) {
  const Plan first = first_plan(options, bound);
  const bool fallback = first.provenance == Provenance::fallback;
  if (fallback && !options.as_json) {
    fmt::print("{}: {}; checking the closest valid configuration instead\n", bound.problem().text(),
               clean_line(first.reason));
  }
  require_problem_memory(*open_device("emulator"), bound);
  int bad = 0;
  Agreement agreement;
  bool told = false;          // how they are compared
  std::vector<Config> wrong;  // the first with each result that is not the reference's
  const std::vector<Config> configs = configurations(options, bound, first.config);
  target.begin(bound, configs);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Config& config = configs[i];
    const std::optional<Verdict> checked =
        interrupted()
            ? std::nullopt
            : check_config(compiler, child_command(options, bound.problem(), config, wrong), target, i, config);
    if (!checked) {
      return bad;
    }
    const Verdict& verdict = *checked;
    bad += verdict.good ? 0 : 1;
    agreement.add(static_cast<std::int64_t>(i) + 1, verdict.status, verdict.agrees_with);
    if (!verdict.note.empty() && !std::exchange(told, true)) {
      fmt::print(options.as_json ? stderr : stdout, "{}: {}\n", bound.problem().text(), clean_line(verdict.note));
    }
    for (const std::string& weak : verdict.weak_checks) {
      if (weak_checks.insert(weak).second) {
        fmt::print(stderr, "pascaline: warning: {}: {}\n", clean_line(bound.problem().text()), clean_line(weak));
      }
    }
    if (verdict.agrees_with == config.text() && wrong.size() < kMaxWrongResults) {
      wrong.push_back(config);
    }
    if (!options.as_json) {
      fmt::print("{}  {}\n    {}\n", clean_line(bound.problem().text()), clean_line(config.text()),
                 clean_lines(verdict.text));
      std::fflush(stdout);
      continue;
    }
    rows.push_back({{"problem", bound.problem().text()},
                    {"config", config.json()},
                    {"ok", verdict.good},
                    {"result", verdict.text}});
    if (fallback && config == first.config) {
      rows.back()["reason"] = first.reason;
    }
  }
  if (const std::string doubt = agreement.doubt(bound.space().reference); !doubt.empty()) {
    fmt::print(options.as_json ? stderr : stdout, "{}: {}\n", bound.problem().text(), clean_line(doubt));
  }
  return bad;
}

int check(const CheckCommandOptions& options) {
  catch_interrupts();
  const Space space = options.kernel.load_space();
  const HostCompiler compiler = HostCompiler::find();
  const DeviceLimits limits = emulated_device_info().limits;
  const KernelSource source = KernelSource::load(kernel_file(options.kernel.kernels(), space.kernel, ".cu"), space);
  TargetVerdicts target(kTarget, source, cache_folder());
  json rows = json::array();
  int bad = 0;
  std::set<std::string> weak_checks;  // told of the first shape that has them
  for (const Problem& problem : options.kernel.load_problems(space)) {
    const BoundSpace bound(space, problem, limits);
    std::ignore = GivenData(options.kernel.given(), bound);  // refuses a file that does not fit, once
    bad += check_problem(options, compiler, bound, target, rows, weak_checks);
    if (interrupted()) {
      return kInterrupted;
    }
  }
  if (options.as_json) {
    fmt::print("{}\n", rows.dump(2));
  }
  if (!target.why_not().empty()) {
    fmt::print(options.as_json ? stderr : stdout, "not compiled for {}: {}\n", kTarget, clean_line(target.why_not()));
  }
  return bad == 0 ? kSuccess : kNegative;
}

void add_check_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("check",
                                         "Compile configurations for sm_61, run them on the emulated device under "
                                         "AddressSanitizer and verify their results");
  const auto options = std::make_shared<CheckCommandOptions>();
  options->kernel.add_kernel_to(*command);
  options->kernel.add_problems_to(*command);
  options->kernel.add_settings_to(*command);
  options->kernel.add_given_to(*command);
  command
      ->add_option("-n,--limit", options->limit,
                   "Check this many configurations: the one given, the rest drawn at random")
      ->transform(whole_number(0));
  command->add_option("--seed", options->seed, "Seed of the draw and of the inputs")
      ->capture_default_str()
      ->transform(any_unsigned());
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Choose small shapes: threads are emulated one by one. Without --set the default is checked or, where it is not\n"
      "valid, the valid configuration closest to it. A configuration that NVRTC refuses for sm_61 is a fault; where "
      "no\n"
      "NVRTC is found, the last line says so. Exit code 3 if a fault is found.\n\nExamples:\n"
      "  pascaline check --problem M=33,N=65,K=17\n"
      "  pascaline check --kernels my/kernels --spaces my/spaces --kernel saxpy --problem N=1000 --limit 10");
  command->callback([&action, options] { action = [options] { return check(*options); }; });

  CLI::App* worker = app.add_subcommand("check-worker", "Check one configuration in this process")->group("");
  const auto inner = std::make_shared<CheckCommandOptions>();
  inner->kernel.add_kernel_to(*worker);
  inner->kernel.add_problems_to(*worker);
  inner->kernel.add_settings_to(*worker);
  inner->kernel.add_given_to(*worker);
  worker->add_option("--seed", inner->seed)->transform(any_unsigned());
  worker->add_option("--wrong", inner->wrong)->allow_extra_args(false);
  worker->callback([&action, inner] { action = [inner] { return check_one(*inner); }; });
}

const Command kCheckCommand(Heading::tune, 8, add_check_command);

}  // namespace

}  // namespace pascaline::cli
