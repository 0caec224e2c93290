#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output_folder.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/counted.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/sm61/kernel_code.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct CompileCommandOptions {
  KernelOptions kernel;
  VariantOptions variants;
  std::string architecture = "sm_61";
  std::string cache;
  std::string emit;
  int sm_count = 0;  // 0: the architecture's
  bool as_json = false;
};

/// Counts over the variants seen.
struct Totals {
  std::uint64_t seen = 0;
  std::uint64_t ok = 0;
  std::uint64_t spilling = 0;
  std::uint64_t cached = 0;
  double compile_ms = 0;
};

// A binary's machine code; nothing where it is not read.
std::optional<sm61::KernelCode> code_of(const Binary& binary, int sm) {
  if (binary.kind != BinaryKind::cubin || binary.code.empty() || !sm61::reads_architecture(sm)) {
    return std::nullopt;
  }
  try {
    return sm61::read_kernel(binary.code, binary.function);
  } catch (const Error&) {
    return std::nullopt;  // larger than what is read; the variant is none the worse for it
  }
}

// What the loop costs in which most time is likely to go. None for binaries whose code is not read, and without loops.
std::optional<sm61::IssueCost> hottest_loop_cost(const Binary& binary, int sm) {
  const std::optional<sm61::KernelCode> kernel = code_of(binary, sm);
  return kernel && kernel->hottest ? std::optional(kernel->costs[*kernel->hottest].own) : std::nullopt;
}

json to_json(const sm61::IssueCost& cost) {
  const auto bytes = [&cost](sm61::Space space) {
    return json{{"loaded", cost.of(space).loaded_bytes}, {"stored", cost.of(space).stored_bytes}};
  };
  return {{"instructions", cost.instructions},
          {"ffma", cost.of(sm61::Kind::ffma)},
          {"dp4a", cost.of(sm61::Kind::dp4a)},
          {"dual_issues", cost.dual_issues},
          {"bank_conflicts", cost.bank_conflicts},
          {"stall_clocks", cost.stall_clocks},
          {"arithmetic_share", cost.arithmetic_share()},
          {"conflicts_per_arithmetic", cost.conflicts_per_arithmetic()},
          {"arithmetic_per_slot", cost.arithmetic_per_slot()},
          {"bytes_per_thread",
           {{"global", bytes(sm61::Space::global)},
            {"shared", bytes(sm61::Space::shared)},
            {"local", bytes(sm61::Space::local)}}}};
}

// All loops, outer ones before those in them, each without those.
json loops_json(const sm61::KernelCode& kernel) {
  json loops = json::array();
  for (std::size_t i = 0; i < kernel.flow.loops.size(); ++i) {
    const sm61::Loop& loop = kernel.flow.loops[i];
    json out = to_json(kernel.costs[i].own);
    out["depth"] = loop.depth;
    out["parent"] = loop.parent == sm61::Block::kNone ? json() : json(loop.parent);
    loops.push_back(std::move(out));
  }
  return loops;
}

json to_json(const CompiledVariant& variant, int sm) {
  const Resources used = resources_of_launches(variant.binary);
  json out{{"status", name_of(variant.status)},
           {"config", variant.config.json()},
           {"compiler", variant.compiler.compiler},
           {"version", variant.compiler.version}};
  if (!variant.reason.empty()) {
    out["reason"] = variant.reason;
  }
  if (variant.binary.code.empty()) {
    return out;
  }
  out.update({{"registers", used.registers},
              {"shared_bytes", used.static_shared_bytes},
              {"local_bytes", used.local_bytes},
              {"local_loads", used.local_loads},
              {"local_stores", used.local_stores},
              {"instructions", used.instructions},
              {"ffma", used.ffma},
              {"occupancy", variant.occupancy},
              {"compile_ms", variant.binary.compile_ms},
              {"from_cache", variant.binary.from_cache}});
  if (const auto kernel = code_of(variant.binary, sm)) {
    out["loops"] = loops_json(*kernel);
    if (kernel->hottest) {
      out["hottest_loop"] = to_json(kernel->costs[*kernel->hottest].own);
    }
  }
  return out;
}

// The columns of the hottest loop, for architectures whose code is read.
std::string loop_columns(const CompiledVariant& variant, int sm) {
  if (!sm61::reads_architecture(sm)) {
    return {};
  }
  const auto loop = hottest_loop_cost(variant.binary, sm);
  return loop && loop->arithmetic() > 0 ? fmt::format("  {:>4.0f}% {:>5.2f} {:>5.2f}", 100 * loop->arithmetic_share(),
                                                      loop->conflicts_per_arithmetic(), loop->arithmetic_per_slot())
                                        : fmt::format("  {:>5} {:>5} {:>5}", "-", "-", "-");
}

// `compiler`: the column that says which one it was; empty where there is one.
void print_row(const CompiledVariant& variant, int sm, const std::string& compiler) {
  const Resources used = resources_of_launches(variant.binary);
  if (variant.status == TrialStatus::ok) {
    fmt::print("{}{:<14} {:>4} {:>6} {:>6} {:>4}/{:<4} {:>5.0f}% {:>6} {:>5.0f}%{}  {}\n", compiler,
               name_of(variant.status), used.registers, used.static_shared_bytes, used.local_bytes, used.local_loads,
               used.local_stores, 100 * variant.occupancy, used.instructions,
               used.instructions > 0 ? 100.0 * used.ffma / used.instructions : 0.0, loop_columns(variant, sm),
               variant.config.text());
  } else {
    fmt::print("{}{:<14} {}  {}\n", compiler, name_of(variant.status), clean_line(variant.reason),
               variant.config.text());
  }
}

void count(Totals& totals, const CompiledVariant& variant) {
  ++totals.seen;
  totals.ok += variant.status == TrialStatus::ok ? 1 : 0;
  const Resources used = resources_of_launches(variant.binary);
  totals.spilling += used.local_loads + used.local_stores > 0 ? 1 : 0;
  totals.cached += variant.binary.from_cache ? 1 : 0;
  totals.compile_ms += variant.binary.compile_ms;
}

// 61 for "sm_61", 0 for the emulated device.
int sm_of_architecture(const std::string& architecture) {
  int sm = 0;
  const std::string_view digits = std::string_view(architecture).substr(std::min<std::size_t>(3, architecture.size()));
  std::from_chars(digits.data(), digits.data() + digits.size(), sm);
  return architecture.starts_with("sm_") ? sm : 0;
}

// Names its files by a hash, as configurations make names that are longer than file systems take, and keeps an index of
// them, a line of JSON each.
class EmittedFiles {
 public:
  static constexpr const char* kIndex = "index.jsonl";

  explicit EmittedFiles(const CompileCommandOptions& options) : options_(options), folder_(options.emit) {
    if (folder_.empty()) {
      return;
    }
    make_output_folder(folder_, "give another folder with --emit");
    std::error_code unseen;
    if (std::filesystem::exists(folder_ / kIndex, unseen)) {
      std::istringstream earlier(read_file(folder_ / kIndex));
      for (std::string line; std::getline(earlier, line);) {
        lines_.insert(line);
      }
    }
  }

  void add(const std::string& problem, const CompiledVariant& variant) {
    if (folder_.empty() || variant.binary.code.empty()) {
      return;
    }
    FieldHash identity;
    for (const std::string& field : {problem, options_.architecture, variant.compiler.name(), variant.config.text()}) {
      identity.add(field);
    }
    constexpr std::size_t kKernel = 60;
    constexpr std::size_t kDigits = 16;
    json line{{"problem", problem},
              {"architecture", shown_architecture(options_.architecture)},
              {"compiler", variant.compiler.compiler},
              {"version", variant.compiler.version},
              {"config", variant.config.json()}};
    const std::string stem =
        fmt::format("{}-{}", options_.kernel.kernel.substr(0, kKernel), identity.hex().substr(0, kDigits));
    const char* const ending = variant.binary.kind == BinaryKind::cubin ? "cubin" : "so";
    for (std::size_t i = 0; i <= variant.binary.then.size(); ++i) {
      const std::string file =
          i == 0 ? fmt::format("{}.{}", stem, ending) : fmt::format("{}-{}.{}", stem, i + 1, ending);
      write_file_atomically(folder_ / file, variant.binary.of_launch(i).code);
      (i == 0 ? line["file"] : line["then"].emplace_back()) = file;
    }
    changed_ = lines_.insert(line.dump()).second || changed_;
  }

  /// Writes the index, with what earlier runs left in the folder.
  void write_index() {
    if (changed_) {
      write_file_atomically(folder_ / kIndex, fmt::format("{}\n", fmt::join(lines_, "\n")));
      changed_ = false;
    }
  }

 private:
  const CompileCommandOptions& options_;
  std::filesystem::path folder_;  // empty: nothing is written
  std::set<std::string> lines_;   // of the index
  bool changed_ = false;
};

class Printer {
 public:
  /// `first`: of several problems; what is true of them all is told once.
  Printer(const CompileCommandOptions& options, const KernelSource& source, const Problem& problem, bool first,
          EmittedFiles& emitted)
      : options_(options),
        source_(source),
        problem_(problem.text()),
        first_(first),
        emitted_(emitted),
        sm_(sm_of_architecture(options.architecture)) {}

  void begin(const VariantCount& plan) {
    plan_ = plan;
    for (const CompilerInfo& compiler : plan.compilers.found) {
      compilers_ += (compilers_.empty() ? "" : " and ") + compiler.text();
      widest_ = std::max(widest_, compiler.text().size());
    }
    if (first_) {
      tell_left_out();
    }
    if (options_.as_json) {
      return;
    }
    fmt::print("{} for {}: {} with {}\n", problem_, shown_architecture(options_.architecture),
               counted(plan.variants, "variant"), compilers_);
    const bool read = sm61::reads_architecture(sm_);
    fmt::print("{}{:<14} {:>4} {:>6} {:>6} {:>9} {:>6} {:>6} {:>6}{}  {}\n", column("compiler"), "status", "regs",
               "shared", "local", "LDL/STL", "occup", "instr", "FFMA",
               read ? fmt::format("  {:>5} {:>5} {:>5}", "loop", "confl", "issue") : "", "configuration");
  }

  void each(const CompiledVariant& variant) {
    count(totals_, variant);
    emitted_.add(problem_, variant);
    if (options_.as_json) {
      variants_.push_back(to_json(variant, sm_));
    } else {
      print_row(variant, sm_, column(variant.compiler.text()));
    }
    if (::isatty(STDERR_FILENO) != 0 && ::isatty(STDOUT_FILENO) == 0) {
      fmt::print(stderr, "\r{}/{} compiled", totals_.seen, plan_.variants);
    }
  }

  int end() {
    emitted_.write_index();
    if (options_.as_json) {
      fmt::print("{}\n", json{{"kernel", options_.kernel.kernel},
                              {"problem", problem_},
                              {"source", source_.hash},
                              {"architecture", shown_architecture(options_.architecture)},
                              {"compiler", plan_.compilers.found.front().compiler},
                              {"version", plan_.compilers.found.front().version},
                              {"compilers", compilers_json()},
                              {"planned", plan_.variants},
                              {"variants", variants_}}
                             .dump(1));
    } else {
      fmt::print(
          "{}: {} usable, {} with local memory traffic, {} not usable; {} from the cache, {:.0f} ms of "
          "compile time per variant\n",
          counted(totals_.seen, "variant"), totals_.ok, totals_.spilling, totals_.seen - totals_.ok, totals_.cached,
          totals_.seen > totals_.cached ? totals_.compile_ms / static_cast<double>(totals_.seen - totals_.cached)
                                        : 0.0);
      if (sm61::reads_architecture(sm_)) {
        fmt::print(
            "loop: FFMA and dp4a per instruction of the hottest loop; confl: register bank conflicts for each of them; "
            "issue: FFMA and dp4a\nper issue slot. Estimated from the machine code.\n");
      }
    }
    if (interrupted()) {
      return kInterrupted;
    }
    return totals_.ok > 0 ? kSuccess : kNegative;
  }

 private:
  [[nodiscard]] bool several() const { return plan_.compilers.found.size() > 1; }
  // Empty where there is one compiler.
  [[nodiscard]] std::string column(const std::string& text) const {
    return several() ? fmt::format("{:<{}}  ", text, widest_) : "";
  }
  void tell_left_out() const {
    for (const std::string& line : plan_.compilers.left_out) {
      fmt::print(stderr, "pascaline: note: {}\n", line);
    }
    if (asks_for_compilers(options_.variants.nvrtc) && !several()) {
      fmt::print(stderr, "pascaline: note: there is one compiler to use here: {}\n", compilers_);
    }
  }
  [[nodiscard]] json compilers_json() const {
    json out = json::array();
    for (const CompilerInfo& compiler : plan_.compilers.found) {
      out.push_back({{"compiler", compiler.compiler}, {"version", compiler.version}});
    }
    return out;
  }

  const CompileCommandOptions& options_;
  const KernelSource& source_;
  std::string problem_;
  bool first_;
  EmittedFiles& emitted_;
  int sm_;  ///< 0 on the emulated device
  VariantCount plan_;
  std::string compilers_;                    ///< "nvrtc 12.9 and nvrtc 11.8"
  std::size_t widest_ = sizeof("compiler");  ///< of the compiler's column
  Totals totals_;
  json variants_ = json::array();
};

// One configuration given with --set.
void compile_one(const BoundSpace& bound, const CompileCommandOptions& options, Printer& printer) {
  const Config config = options.kernel.load_config(bound);
  if (const auto why = bound.why_invalid(config)) {
    throw Error(
        fmt::format("the configuration {} is not valid for {}: {}", config.text(), bound.problem().text(), *why));
  }
  const CompilerChoice compilers = variant_compilers(options.architecture, options.variants.nvrtc);
  printer.begin({compilers, compilers.found.size()});
  VariantOptions one = options.variants;
  one.jobs = 1;
  compile_variants(
      bound, one, {config}, [&](const CompiledVariant& variant) { printer.each(variant); }, interrupted());
}

int compile(CompileCommandOptions options) {
  catch_interrupts();
  const std::string& nvrtc = options.variants.nvrtc;
  if (is_emulator_name(options.architecture) && !nvrtc.empty() && !asks_for_compilers(nvrtc)) {
    throw UsageError("the emulator's code is made by a C++ compiler: leave --nvrtc out, or give --nvrtc all");
  }
  const Space space = options.kernel.load_space();
  options.architecture = stored_architecture(options.architecture);
  options.variants.architecture = options.architecture;
  options.variants.kernels = options.kernel.kernels();
  options.variants.cache = options.cache.empty() ? cache_folder() : std::filesystem::path(options.cache);
  DeviceLimits limits =
      limits_of_architecture(is_emulator_name(options.architecture) ? "sm_61" : options.architecture).value();
  if (options.sm_count > 0) {
    limits.sm_count = options.sm_count;
  }
  const std::vector<Problem> problems = options.kernel.load_problems(space);
  const KernelSource source = KernelSource::load(kernel_file(options.variants.kernels, space.kernel, ".cu"), space);
  int code = kSuccess;
  EmittedFiles emitted(options);
  for (const Problem& problem : problems) {
    const BoundSpace bound(space, problem, limits);
    Printer printer(options, source, problem, &problem == &problems.front(), emitted);
    if (options.kernel.settings.empty()) {
      compile_variants(
          bound, options.variants, [&](const VariantCount& plan) { printer.begin(plan); },
          [&](const CompiledVariant& variant) { printer.each(variant); }, interrupted());
    } else {
      compile_one(bound, options, printer);
    }
    code = std::max(code, printer.end());
  }
  return code;
}

// Options that would be ignored are refused: what the user meant was something else.
void refuse_what_compile_ignores(CLI::App& command) {
  for (const char* drawing : {"--limit", "--seed", "--jobs"}) {
    command.get_option("--set")->excludes(drawing);
  }
  command.get_option("--seed")->needs("--limit");
}

void add_compile_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("compile", "Compile variants for an architecture (no GPU needed) and show what they use");
  const auto options = std::make_shared<CompileCommandOptions>();
  options->variants.jobs = default_jobs();
  options->kernel.add_kernel_to(*command);
  options->kernel.add_problems_to(*command);
  options->kernel.add_settings_to(*command);
  command->add_option("-a,--arch", options->architecture, "Architecture, e.g. sm_61, or emulator")
      ->capture_default_str()
      ->check(architecture_name(true));
  command
      ->add_option("--sm-count", options->sm_count,
                   "Multiprocessors of the card, which splits and so the code depend on (default: 20 for sm_61)")
      ->transform(whole_number(1, 1024));
  command
      ->add_option("-n,--limit", options->variants.limit, "Compile this many variants drawn at random (default: all)")
      ->transform(whole_number(0));
  command->add_option("--seed", options->variants.seed, "Seed of the draw")
      ->capture_default_str()
      ->transform(any_unsigned());
  command->add_option("-j,--jobs", options->variants.jobs, "Compile workers (default: every processor)")
      ->transform(whole_number(1, 1024));
  command->add_option("--nvrtc", options->variants.nvrtc, kNvrtcChoiceHelp)->transform(nvrtc_choice());
  command->add_option("--cache", options->cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  command->add_option("--emit", options->emit,
                      "Also write each binary to this folder, and index.jsonl, which says which is which");
  command->add_flag("--json", options->as_json, "Print JSON");
  refuse_what_compile_ignores(*command);
  command->footer(
      "Registers, shared and local memory and instruction counts are read from the cubin itself; LDL/STL are its\n"
      "local-memory instructions (spills). For sm_50 to sm_62, loop, confl and issue estimate from the machine code "
      "of\n"
      "the hottest loop what it costs to issue: FFMA and dp4a per instruction, register bank conflicts for each of "
      "them,\n"
      "and how many of them there are per issue slot.\n\nExamples:\n"
      "  pascaline compile --kernel matmul --arch sm_61 --limit 200\n"
      "  pascaline compile --arch sm_61 --nvrtc 11.8 --set BLOCK_M=64,BLOCK_N=64 --emit cubins\n"
      "  pascaline compile --arch sm_61 --nvrtc all --limit 20\n"
      "  pascaline compile --arch sm_61 --limit 50 --json | jq '.variants[] | select(.local_stores > 0)'");
  command->callback([&action, options] { action = [options] { return compile(*options); }; });
}

const Command kCompileCommand(Heading::tune, 9, add_compile_command);

}  // namespace

}  // namespace pascaline::cli
