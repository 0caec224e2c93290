#include "tuner/cli/progress.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "core/statistics.hpp"

namespace pascaline::cli {
namespace {

constexpr std::chrono::seconds kPlainInterval{5};

std::string clock_of(std::chrono::steady_clock::duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string time_text(double time_us) {
  return time_us >= 1000 ? fmt::format("{:.3f} ms", time_us / 1000) : fmt::format("{:.2f} us", time_us);
}

}  // namespace

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDOUT_FILENO) != 0) {}

SweepEvents Progress::events() {
  SweepEvents events;
  events.note = [this](const std::string& text) { line(text); };
  events.problem = [this](std::size_t index, std::size_t count, const SweepProblem& wanted, std::size_t known) {
    problem(index, count, wanted, known);
  };
  events.trial = [this](const Trial& trial, int done, int planned, double best_us, double default_us) {
    this->trial(trial, done, planned, best_us, default_us);
  };
  events.winner = [this](const SweepProblem& wanted, const FinalsResult& result) { winner(wanted, result); };
  return events;
}

void Progress::line(const std::string& text) {
  if (quiet_) {
    return;
  }
  fmt::print("{}{}\n", terminal_ ? "\r\033[K" : "", text);
  std::fflush(stdout);
  last_line_ = Clock::now();
}

void Progress::status(const std::string& text) {
  if (quiet_) {
    return;
  }
  if (terminal_) {
    fmt::print("\r\033[K{}", text);
    std::fflush(stdout);
  } else if (Clock::now() - last_line_ >= kPlainInterval) {
    line(text);
  }
}

void Progress::problem(std::size_t index, std::size_t count, const SweepProblem& wanted, std::size_t known) {
  heading_ = fmt::format("[{}/{}] {}", index + 1, count, wanted.problem.text());
  problem_started_ = Clock::now();
  announced_us_ = 0;
  failed_ = 0;
  line(fmt::format("{}{}{}", heading_, wanted.label.empty() ? "" : "  (" + wanted.label + ")",
                   known > 0 ? fmt::format(", {} configurations known already", known) : ""));
}

void Progress::trial(const Trial& trial, int done, int planned, double best_us, double default_us) {
  failed_ += trial.status == TrialStatus::ok ? 0 : 1;
  if (trial.status != TrialStatus::ok && trial.is_default) {
    line(fmt::format("  the default is not usable: {}: {}", name_of(trial.status), trial.reason));
  }
  const std::string gain =
      default_us > 0 && best_us > 0 ? fmt::format(", {:.2f}x the default", default_us / best_us) : "";
  if (trial.status == TrialStatus::ok && (announced_us_ == 0 || trial.time->median_us < announced_us_)) {
    announced_us_ = trial.time->median_us;
    line(fmt::format("  {:>4}  {}{}  {}", done, time_text(announced_us_), trial.is_default ? " (default)" : gain,
                     trial.is_default ? "" : trial.config.text()));
  }
  status(fmt::format("  {}/{} trials, best {}{}, {} not usable, {} elapsed", done, planned,
                     best_us > 0 ? time_text(best_us) : "none yet", gain, failed_, clock_of(Clock::now() - started_)));
}

void Progress::winner(const SweepProblem& wanted, const FinalsResult& result) {
  const Trial& best = result.trials[result.winner];
  std::string verdict = "no default to compare with";
  if (result.baseline) {
    verdict = best.is_default ? "the default stays"
                              : fmt::format("{:.2f}x the default ({}), confidence {:.3f}",
                                            result.baseline->median_us / best.time->median_us,
                                            time_text(result.baseline->median_us), result.confidence);
  }
  line(fmt::format("  => {} ± {:.1f} %, {}", time_text(best.time->median_us), 100 * relative_half_width(*best.time),
                   verdict));
  rows_.push_back(
      fmt::format("{:<58} {:>12} {:>9}", wanted.problem.text(), time_text(best.time->median_us),
                  result.baseline ? fmt::format("{:.2f}x", result.baseline->median_us / best.time->median_us) : "-"));
}

void Progress::summary(const SweepSummary& summary, const SweepOptions& options) {
  if (!rows_.empty()) {
    line("");
    line(fmt::format("{:<58} {:>12} {:>9}", "problem", "best", "gain"));
    for (const std::string& row : rows_) {
      line(row);
    }
  }
  line(fmt::format("{}session {}: {} trials ({} usable) on {} problems in {}; database {}",
                   summary.interrupted ? "interrupted; run the same command again to go on. " : "", summary.session,
                   summary.trials, summary.ok, summary.problems_done, clock_of(Clock::now() - started_),
                   options.database.string()));
}

}  // namespace pascaline::cli
