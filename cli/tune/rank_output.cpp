#include "cli/tune/rank_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/util/range_text.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json rank_json(const CodeTime& time) {
  return {{"time_us", time.time_us},
          {"loops_us", time.loops_us},
          {"outside_us", time.outside_us},
          {"arithmetic", time.arithmetic},
          {"limit", name_of(time.limit)}};
}

json rank_json(const CodeEstimate& code) {
  return {{"time_us", code.time_us()},
          {"least", rank_json(code.least)},
          {"most", rank_json(code.most)},
          {"memory_us", code.memory_us},
          {"trips", code.trips},
          {"waves", code.waves},
          {"measured_conflict", code.measured_conflict ? json(*code.measured_conflict) : json(nullptr)},
          {"resident_blocks", code.resident_blocks},
          {"resident_blocks_limit", name_of(code.residency)}};
}

json rank_json(const RankedConfig& ranked) {
  const Estimate& e = ranked.estimate;
  json out{{"config", ranked.config.json()},     {"time_us", number(e.time_us)},
           {"compute_us", number(e.compute_us)}, {"shared_us", number(e.shared_us)},
           {"global_us", number(e.global_us)},   {"latency_us", number(e.latency_us)},
           {"occupancy", e.occupancy},           {"waves", e.waves},
           {"registers", e.registers},           {"resident_blocks", e.resident_blocks}};
  if (ranked.resources) {
    out["local_loads"] = ranked.resources->local_loads;
    out["local_stores"] = ranked.resources->local_stores;
    out["instructions"] = ranked.resources->instructions;
    out["ffma"] = ranked.resources->ffma;
    out["compiler"] = ranked.compiler;
  }
  if (ranked.code) {
    out["code"] = rank_json(*ranked.code);
  }
  return out;
}

// "12.1 to 14.0", and what limits the launch at the slow end.
std::string code_columns(const std::optional<CodeEstimate>& code) {
  if (!code) {
    return fmt::format("  {:>9} {:>19} {:<21}", "-", "-", "-");
  }
  const std::string least = fmt::format("{:.2f}", code->least.time_us);
  const std::string most = fmt::format("{:.2f}", code->most.time_us);
  const std::string range = least == most && code->measured_conflict ? "measured" : range_text(least, most);
  return fmt::format("  {:>9.2f} {:>19} {:<21}", code->time_us(), range, name_of(code->most.limit));
}

// What the columns of the estimates from code are, and what is not known in them.
std::string code_note(const RankCard& card) {
  const std::string start =
      "code us, range, limit: estimated from the machine code by a model of an SM that was not checked on a card\n";
  return card.sm_rates.measured_conflict
             ? fmt::format(
                   "{}of this architecture. A register bank conflict costs {:.2f} issue slots there, as measured; the "
                   "range is what is\nnot known of shared memory, and \"measured\" where nothing is left of it.\n",
                   start, card.sm_rates.conflict)
             : start +
                   "of this architecture; the range is what is not known of register bank conflicts and shared "
                   "memory.\n";
}

}  // namespace

json ranking_json(const Ranking& ranking, const BoundSpace& bound) {
  json best = json::array();
  for (const RankedConfig& ranked : ranking.best) {
    best.push_back(rank_json(ranked));
  }
  return {{"problem", bound.problem().text()},
          {"valid", ranking.valid ? json(*ranking.valid) : json(nullptr)},
          {"ranked", ranking.ranked},
          {"best", best}};
}

void print_ranking(const Ranking& ranking, const BoundSpace& bound, const RankCard& card, bool names_compilers) {
  const DeviceRates& rates = card.rates;
  fmt::print("{} for {} with {} SMs at {:.0f} MHz and {:.0f} GB/s{}: {} of {} configurations ranked{}\n",
             bound.problem().text(), card.architecture, rates.limits.sm_count, rates.clock_mhz, rates.memory_gbps,
             card.probed ? " (" + source_of(rates, card.architecture) + ")" : "", ranking.ranked,
             ranking.valid ? std::to_string(*ranking.valid) : "more than can be counted",
             bound.space().model ? "" : ", by occupancy, waves and work alone");
  const bool from_code = std::any_of(ranking.best.begin(), ranking.best.end(),
                                     [](const RankedConfig& ranked) { return ranked.code.has_value(); });
  const auto column = [&](const std::string& compiler) {
    return names_compilers ? fmt::format("{:<14}  ", compiler) : std::string();
  };
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>7} {:>5} {:>9}{}  {}{}\n", "time us", "compute", "shared",
             "global", "latency", "occup", "waves", "regs", "LDL/STL",
             from_code ? fmt::format("  {:>9} {:>19} {:<21}", "code us", "range", "limit") : "", column("compiler"),
             "configuration");
  for (const RankedConfig& ranked : ranking.best) {
    const Estimate& e = ranked.estimate;
    const std::string spills =
        ranked.resources ? fmt::format("{}/{}", ranked.resources->local_loads, ranked.resources->local_stores) : "-";
    fmt::print("{:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>5.0f}% {:>7.2f} {:>5} {:>9}{}  {}{}\n", e.time_us,
               e.compute_us, e.shared_us, e.global_us, e.latency_us, 100 * e.occupancy, e.waves, e.registers, spills,
               from_code ? code_columns(ranked.code) : "", column(ranked.compiler), ranked.config.text());
  }
  if (from_code) {
    fmt::print("{}", code_note(card));
  }
}

}  // namespace pascaline::cli
