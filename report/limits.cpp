#include "report/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/util/counted.hpp"
#include "core/util/range_text.hpp"
#include "report/json_values.hpp"
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

nlohmann::ordered_json end_json(double time_us, const std::string& limit) {
  return {{"time_us", json_number(time_us)}, {"limit", json_text(limit)}};
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

nlohmann::ordered_json limit_json(const ReportLimit& limit) {
  nlohmann::ordered_json out{{"role", json_text(limit.role)},
                             {"config", json_config(limit.config)},
                             {"text", json_text(fmt::format("{}", fmt::join(limit_sentences(limit), " ")))},
                             {"missing", !limit.missing.empty()}};
  if (!limit.missing.empty()) {
    return out;
  }
  out.update({{"compiler", json_text(limit.compiler)},
              {"measured_compiler", limit.measured_compiler.empty()
                                        ? nlohmann::ordered_json(nullptr)
                                        : nlohmann::ordered_json(json_text(limit.measured_compiler))},
              {"instructions", limit.instructions},
              {"ffma", limit.ffma},
              {"dp4a", limit.dp4a},
              {"conflicts_per_arithmetic", json_number(limit.conflicts)},
              {"registers", limit.registers},
              {"threads", limit.threads},
              {"resident_blocks", limit.blocks},
              {"resident_blocks_limit", json_text(limit.blocks_limit)},
              {"waves", json_number(limit.waves)},
              {"least", end_json(limit.least_us, limit.least_limit)},
              {"most", end_json(limit.most_us, limit.most_limit)},
              {"measured_conflict", json_number(limit.measured_conflict)}});
  return out;
}

}  // namespace pascaline
