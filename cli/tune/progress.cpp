#include "cli/tune/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "app/sweep/phase_table.hpp"
#include "app/text.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/util/statistics.hpp"
#include "report/text.hpp"

namespace pascaline::cli {
namespace {

// "time per trial: 41.2 ms: check 31 %, load 24 %, …", the largest parts first; nothing without trials.
std::string trial_times_text(const TrialTimes& times) {
  const double all_ms = total_ms(times);
  if (times.trials == 0 || !(all_ms > 0)) {
    return {};
  }
  std::vector<std::pair<double, std::string>> parts;
  for_each_part(times, [&](const char* name, double part_ms) {
    const double percent = std::round(100 * part_ms / all_ms);
    if (percent > 0) {
      parts.emplace_back(percent, fmt::format("{} {:.0f} %", name, percent));
    }
  });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text =
      fmt::format("time per trial: {:.1f} ms on the device:", all_ms / static_cast<double>(times.trials));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? " " : ", ") + parts[i].second;
  }
  return text;
}

constexpr double kTied = 0.5;  // the confidence in what cannot be told from the default

// "by energy: TILE=8, 12.1 mJ, 10.2 % less than the default, confidence 0.999, at 3.1 % more time than the winner by
// time"
std::string objective_text(const FinalsResult& result) {
  const ObjectiveDecision& decision = *result.by_objective;
  const Trial& best = result.trials[decision.winner];
  const double more = 100 * (best.time->median_us / result.trials[result.winner].time->median_us - 1);
  std::string text = fmt::format("by {}: {}, {:.4g} {}", phrase_of(decision.objective),
                                 decision.winner == result.winner ? "the same" : best.config.text(), decision.score,
                                 unit_of(decision.objective));
  if (decision.winner == result.baseline_trial) {
    text += ", the default stays";
  } else if (decision.baseline_score && (decision.confidence <= kTied || decision.score >= *decision.baseline_score)) {
    text += ", as nothing is significantly better than the default: the winner by time stays";
  } else if (decision.baseline_score) {
    text += fmt::format(", {:.1f} % less than the default, confidence {:.3f}",
                        100 * (1 - decision.score / *decision.baseline_score), decision.confidence);
  }
  return decision.winner == result.winner ? text
                                          : fmt::format("{}, at {:.1f} % {} time than the winner by time", text,
                                                        std::abs(more), more < 0 ? "less" : "more");
}

// Options for more time than there was: by estimate, the time for the rest.
std::string longer_limit(const SweepSummary& summary, const SweepOptions& options) {
  if (options.until || !options.budget_s) {
    return " --until LATER";
  }
  const double wanted_s = *options.budget_s + std::max(summary.forecast.missing_s.value_or(0), *options.budget_s);
  return fmt::format(" --budget {:.0f}m", std::ceil(wanted_s / 60));
}

}  // namespace

SweepEvents Progress::events() {
  SweepEvents events;
  events.note = [this](const std::string& text) { view_.line(text); };
  events.problem = [this](const std::string& device, const SweepProblem& wanted, std::size_t known) {
    problem(device, wanted, known);
  };
  events.trial = [this](const Trial& trial, int done, int /*planned*/, double best_us, double default_us) {
    this->trial(trial, done, best_us, default_us);
  };
  events.winner = [this](const std::string& device, const SweepProblem& wanted, const FinalsResult& result,
                         int trials) { winner(device, wanted, result, trials); };
  events.view = [this](const SweepView& view) { view_.update(view); };
  return events;
}

void Progress::problem(const std::string& device, const SweepProblem& wanted, std::size_t known) {
  const std::string line =
      fmt::format("{}: {}{}{}", device, wanted.problem.text(), wanted.label.empty() ? "" : "  (" + wanted.label + ")",
                  known > 0 ? fmt::format(", {} already known", counted(known, "configuration")) : "");
  if (headings_.insert(line).second) {
    view_.line(line);
  } else {
    again_[wanted.problem.text()] = line;
  }
}

void Progress::tell_of(const std::string& problem, const std::string& line) {
  if (const auto heading = again_.extract(problem)) {
    view_.line(heading.mapped());
  }
  view_.line(line);
}

void Progress::trial(const Trial& trial, int done, double best_us, double default_us) {
  const std::string problem = trial.problem.text();
  if (!has_time(trial.status) && trial.is_default) {
    tell_of(problem, fmt::format("  the default is not usable: {}: {}", name_of(trial.status), trial.reason));
  }
  auto told = std::find_if(announced_us_.begin(), announced_us_.end(),
                           [&](const auto& entry) { return entry.first == problem; });
  if (told == announced_us_.end()) {
    announced_us_.emplace_back(problem, 0);
    told = announced_us_.end() - 1;
  }
  // Only what beats everything known so far, earlier nights included, is an improvement.
  if (trial.status == TrialStatus::ok && trial.time->median_us <= best_us &&
      (told->second == 0 || trial.time->median_us < told->second)) {
    told->second = trial.time->median_us;
    const std::string speedup =
        default_us > 0 && best_us > 0 ? fmt::format(", {:.2f}x the default", default_us / best_us) : "";
    tell_of(problem, fmt::format("  {:>4}  {}{}", done, time_text(told->second),
                                 trial.is_default ? " (default)" : speedup + "  " + trial.config.text()));
  }
}

void Progress::winner(const std::string& device, const SweepProblem& wanted, const FinalsResult& result, int trials) {
  const Trial& best = result.trials[result.winner];
  const TimeSummary time = result.shown.standing ? result.shown.standing->time : *best.time;
  const std::optional<TimeSummary> baseline = result.shown.standing ? result.shown.standing->baseline : result.baseline;
  SummaryRow row;
  row.problem = wanted.problem.text();
  row.device = device;
  row.count = wanted.count;
  row.default_us = baseline ? baseline->median_us : 0;
  row.best_us = time.median_us;
  row.speedup = baseline ? row.default_us / row.best_us : 0;
  row.confidence = result.shown.standing ? result.shown.standing->confidence : result.confidence;
  row.tie = result.baseline_trial == result.winner;
  row.provisional = result.from_search;
  row.trials = trials;
  row.config = best.config.text();
  row.compiler = result.shown.compiler;
  std::string standard = "default";
  if (result.baseline_trial && !result.trials[*result.baseline_trial].is_default) {
    row.baseline = result.trials[*result.baseline_trial].config.text();
    row.baseline_why = result.shown.baseline_why;
    standard = "baseline";
  }
  std::string verdict = "no default to compare with";
  if (baseline) {
    verdict = row.tie ? fmt::format("the {} stays", standard)
                      : fmt::format("{:.2f}x the {} ({}), confidence {:.3f}", row.speedup, standard,
                                    time_text(row.default_us), row.confidence);
  }
  view_.line(fmt::format("  => {}: {} ± {:.1f} %, {}{}{}{}", row.problem, time_text(row.best_us),
                         100 * relative_half_width(time), verdict, row.compiler.empty() ? "" : ", by " + row.compiler,
                         row.provisional ? ", provisional" : "",
                         result.shown.standing ? ", the earlier finals were more precise; their result is kept" : ""));
  if (result.by_objective && result.by_objective->undecided.empty()) {
    view_.line("     " + objective_text(result));
  }
  if (!row.baseline.empty()) {
    view_.line(fmt::format("     the baseline is {}, the usable configuration nearest to the default; the default: {}",
                           row.baseline, default_fate(row.baseline_why)));
  }
  std::erase_if(
      rows_, [&](const SummaryRow& earlier) { return earlier.problem == row.problem && earlier.device == row.device; });
  rows_.push_back(std::move(row));
}

void Progress::summary(const SweepSummary& summary, const SweepOptions& options) {
  view_.finish();
  if (const std::string table = summary_table(rows_); !table.empty()) {
    view_.line("\n" + table);
  }
  if (!summary.phases.empty()) {
    if (const std::string table = phase_table(summary.phases, summary.models); !table.empty()) {
      view_.line(table);
    }
  }
  view_.line(fmt::format("session {}: {}; {} in {}; {}", summary.session, counts_text(summary),
                         counted(summary.problems.done, "problem"), clock_text(summary.times.wall_s),
                         options.database.string()));
  for (const std::string& doubt : summary.problems.doubts) {
    view_.line(doubt);
  }
  if (const std::string times = trial_times_text(summary.times.trials); !times.empty()) {
    view_.line(times);
  }
  if (summary.problems.exhausted > 0) {
    view_.line(fmt::format("{}: no further trial was expected to be faster than the best by {:g} % (--min-gain)",
                           counted(static_cast<std::size_t>(summary.problems.exhausted), "problem"),
                           100 * options.search.min_gain));
  }
  const DeepeningCounts& deepening = summary.deepening;
  if (deepening.finals + deepening.neighbours + deepening.shapes > 0) {
    view_.line(fmt::format(
        "time left: finals again {} (another winner in {}), {} near winners (a faster one in {}), {} in between; {}",
        counted(deepening.finals, "time"), deepening.winners_changed, counted(deepening.neighbours, "configuration"),
        counted(deepening.neighbours_faster, "turn"), counted(deepening.shapes, "shape"),
        clock_text(deepening.spent_s)));
  }
  if (!summary.problems.left_out.empty()) {
    view_.line(fmt::format("left out, as they cannot be tuned here ({}):", summary.problems.left_out.size()));
    for (const std::string& problem : summary.problems.left_out) {
      view_.line("  " + problem);
    }
  }
  if (summary.times.paused_s >= 1) {
    view_.line(fmt::format("paused for {} of it while others used the machine (--polite)",
                           clock_text(summary.times.paused_s)));
  }
  for (const std::string& line : model_lines(summary.models)) {
    view_.line(line);
  }
  const std::string resume = resume_command(options.database.string(), options.record.paths, summary.end.remedy);
  if (std::string left = left_text(summary); !left.empty()) {
    if (!summary.interrupted && has_time_limit(options)) {
      left += "; to reach more: " + resume + longer_limit(summary, options);
    }
    view_.line(left);
  }
  if (summary.interrupted) {
    view_.line("interrupted; resume with: " + resume);
  }
}

}  // namespace pascaline::cli
