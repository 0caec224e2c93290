#include "report/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/util/counted.hpp"
#include "core/util/range_text.hpp"
#include "report/document_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

std::string arithmetic_text(const ReportLimit& limit) {
  const std::size_t arithmetic = limit.ffma + limit.dp4a;
  if (!limit.has_loop) {
    return "It has no loop.";
  }
  if (arithmetic == 0) {
    return fmt::format("Hottest loop, an iteration: {}, no FFMA or dp4a.", counted(limit.instructions, "instruction"));
  }
  std::vector<std::string> parts;
  if (limit.ffma > 0) {
    parts.push_back(fmt::format("{} FFMA", limit.ffma));
  }
  if (limit.dp4a > 0) {
    parts.push_back(fmt::format("{} dp4a", limit.dp4a));
  }
  return fmt::format(
      "Hottest loop, an iteration: {} of {} instructions ({:.0f} %), {:.2f} register bank conflicts for each.",
      fmt::join(parts, " and "), limit.instructions,
      100 * static_cast<double>(arithmetic) / static_cast<double>(limit.instructions), limit.conflicts);
}

std::string limited_text(const ReportLimit& limit) {
  return limit.least_limit == limit.most_limit
             ? fmt::format("Limited by {}.", limit.most_limit)
             : fmt::format("Limited by {} at the fast end of the estimate, by {} at the slow end.", limit.least_limit,
                           limit.most_limit);
}

// "3.25 waves", "1 wave"; of less, how much of one.
std::string waves_text(double waves) {
  if (waves < 0.995) {
    return waves < 0.01 ? "less than 1 % of a wave" : fmt::format("{:.0f} % of a wave", 100 * waves);
  }
  const std::string number = fmt::format("{:.2f}", waves);
  return number == "1.00" ? "1 wave" : number + " waves";
}

struct LimitEnd {
  double time_us = 0;
  std::string limit;
};

const Fields<LimitEnd>& fields_of(const LimitEnd*) {
  static const auto fields =
      Fields<LimitEnd>("limit_end", "One end of an estimate.")
          .add("time_us", &LimitEnd::time_us, "Estimated time of a launch.", "µs")
          .add("limit", &LimitEnd::limit,
               "`issue`, `bank conflicts`, `shared memory`, `global memory`, `other units`, `other warps`, `arithmetic "
               "latency`, `code outside the loop`, `few blocks`, `device memory` or `launch`.");
  return fields;
}

// A value of an estimate; absent where the estimate is missing.
template <typename Get>
auto estimate_field(Get get) {
  return [get](const ReportLimit& limit) {
    using Given = std::remove_cvref_t<std::invoke_result_t<Get, const ReportLimit&>>;
    return IfPresent<Given>{limit.missing.empty() ? std::optional<Given>(std::invoke(get, limit)) : std::nullopt};
  };
}

}  // namespace

bool has_limits(const std::string& target) {
  for (const char* architecture : {"_50", "_52", "_53", "_60", "_61", "_62"}) {
    if (target == std::string("sm") + architecture || target == std::string("compute") + architecture) {
      return true;
    }
  }
  return false;
}

std::vector<ReportLimit> limits_of(const LimitSource& source, LimitRequest request, const std::optional<Config>& best,
                                   const std::optional<Config>& baseline) {
  std::vector<ReportLimit> limits;
  if (!source || !has_limits(request.toolkit.target)) {
    return limits;
  }
  request.config = baseline;
  ReportLimit standard = source(request);
  standard.role = baseline ? "baseline" : "default";
  if (best) {
    request.config = best;
    limits.push_back(source(request));
    const bool same = *best == standard.config;
    limits.back().role = same ? "winner, which is the " + standard.role : "winner";
    if (same) {
      return limits;
    }
  }
  limits.push_back(std::move(standard));
  return limits;
}

std::vector<std::string> limit_sentences(const ReportLimit& limit) {
  if (!limit.missing.empty()) {
    return {limit.missing};
  }
  std::vector<std::string> sentences{
      arithmetic_text(limit), limited_text(limit),
      fmt::format("{} of {} threads on an SM at a time (limited by {}), {} registers a thread, {}.",
                  counted(static_cast<std::uint64_t>(limit.blocks), "block"), limit.threads, limit.blocks_limit,
                  limit.registers, waves_text(limit.waves)),
      fmt::format("Estimated {} µs (code by {}).",
                  range_text(short_number(limit.least_us), short_number(limit.most_us)), limit.compiler)};
  if (!limit.measured_compiler.empty()) {
    sentences.push_back(
        fmt::format("What was measured was built by {}, not by this compiler.", limit.measured_compiler));
  }
  if (limit.measured_conflict) {
    sentences.push_back(
        fmt::format("A register bank conflict is taken to cost {:.2f} issue slots, as measured on this device.",
                    *limit.measured_conflict));
  }
  return sentences;
}

std::string limit_notice() {
  return "Estimates from the machine code and a model of an SM, which was not checked on a card of this architecture; "
         "a "
         "range is what is not known of it. Only what limits a kernel and how variants compare should be read from "
         "them.";
}

const Fields<ReportLimit>& fields_of(const ReportLimit*) {
  static const auto fields =
      Fields<ReportLimit>("limit", "What limits a configuration, estimated from its machine code, never measured.")
          .add("role", &ReportLimit::role,
               "`winner`, `default`, `baseline`, `winner, which is the default` or `winner, which is the baseline`.")
          .add("config", &ReportLimit::config, "The configuration.")
          .add(
              "text", [](const ReportLimit& of) { return fmt::format("{}", fmt::join(limit_sentences(of), " ")); },
              "All of it in sentences, or why the estimate is missing.")
          .add(
              "missing", [](const ReportLimit& of) { return !of.missing.empty(); }, "The estimate is missing.")
          .add("compiler", estimate_field(&ReportLimit::compiler), "Compiler of the code that is estimated.")
          .add("measured_compiler", estimate_field(unless_empty(&ReportLimit::measured_compiler)),
               "Compiler of the code that was measured, if it is another one; else null.")
          .add("instructions", estimate_field(&ReportLimit::instructions),
               "Of one round of the hottest loop; 0 without loops.")
          .add("ffma", estimate_field(&ReportLimit::ffma), "Fused multiply-add instructions among them.")
          .add("dp4a", estimate_field(&ReportLimit::dp4a), "dp4a instructions among them.")
          .add("conflicts_per_arithmetic", estimate_field(&ReportLimit::conflicts),
               "Register bank conflicts for each FFMA and dp4a.")
          .add("registers", estimate_field(&ReportLimit::registers), "Registers of a thread.")
          .add("threads", estimate_field(&ReportLimit::threads), "Threads of a block.")
          .add("resident_blocks", estimate_field(&ReportLimit::blocks), "Blocks on a multiprocessor at a time.")
          .add("resident_blocks_limit", estimate_field(&ReportLimit::blocks_limit),
               "`registers`, `shared memory`, `registers and shared memory` or `threads and blocks`.")
          .add("waves", estimate_field(&ReportLimit::waves),
               "Blocks of the launch / blocks that the GPU holds at a time.")
          .add("least", estimate_field([](const ReportLimit& of) {
                 return LimitEnd{of.least_us, of.least_limit};
               }),
               "Bank conflicts cost nothing; lanes share what they read.")
          .add("most", estimate_field([](const ReportLimit& of) {
                 return LimitEnd{of.most_us, of.most_limit};
               }),
               "A bank conflict costs a clock; lanes share nothing, unless the space states that they do.")
          .add("measured_conflict", estimate_field(&ReportLimit::measured_conflict),
               "Cost of a register bank conflict as `pascaline probe` measured it on this device; null: not measured.",
               "issue slots");
  return fields;
}

}  // namespace pascaline
