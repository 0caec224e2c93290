// How many trials a search needs to come within 3 % of a recorded problem's best, with nothing known before and with
// 100 random trials of another problem of the kernel known: every pair of the problems in some databases that have 300
// recorded trials or more, medians of 10 seeds.
//
//   transfer_between_shapes --db random.db [--db more.db]

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "db/exchange/store_spaces.hpp"
#include "tuner/replay/replay.hpp"
#include "tuner/search/transfer.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMinTrials = 300;
constexpr int kKnownTrials = 100;
constexpr int kSeeds = 10;
constexpr double kDistance = 0.7;  // as of shapes that differ by a factor of two

// Gives all spaces the same values of each parameter, so that a point means the same in all of them.
void share_values(std::vector<RecordedSpace>& spaces) {
  for (std::size_t p = 0; p < spaces.front().parameters.size(); ++p) {
    std::vector<Value> values;
    for (const RecordedSpace& space : spaces) {
      for (const Value& value : space.parameters.at(p).values) {
        if (std::find(values.begin(), values.end(), value) == values.end()) {
          values.push_back(value);
        }
      }
    }
    std::sort(values.begin(), values.end());
    for (RecordedSpace& space : spaces) {
      for (RecordedTrial& trial : space.trials) {
        const Value& value = space.parameters[p].values[trial.indices[p]];
        trial.indices[p] = static_cast<std::uint16_t>(std::find(values.begin(), values.end(), value) - values.begin());
      }
      space.parameters[p].values = values;
    }
  }
}

double trials_needed(const RecordedDomain& space, const SearchOptions& options) {
  const auto searcher = make_searcher("auto", space.domain(), options);
  for (int trials = 1;; ++trials) {
    const std::vector<Point> points = searcher->propose(1);
    if (points.empty()) {
      return trials;
    }
    const Observation observation = space.observation(points.front());
    searcher->observe(points.front(), observation);
    if (observation.status == TrialStatus::ok && observation.time_us <= 1.03 * space.optimum_us()) {
      return trials;
    }
  }
}

std::vector<RelatedTrial> some_trials(const RecordedSpace& space, std::uint64_t seed) {
  SearchRandom random(seed);
  std::vector<RelatedTrial> trials;
  for (int i = 0; i < kKnownTrials; ++i) {
    const RecordedTrial& trial = space.trials[below(random, space.trials.size())];
    if (trial.status == TrialStatus::ok) {
      trials.push_back({trial.indices, trial.time_us});
    }
  }
  return trials;
}

void compare(const RecordedSpace& from, const RecordedSpace& to) {
  const RecordedDomain domain(to);
  std::vector<double> without;
  std::vector<double> with;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SearchOptions options;
    options.seed = seed;
    without.push_back(trials_needed(domain, options));
    if (auto prior = transfer_prior(domain.domain(), some_trials(from, seed), kDistance, seed)) {
      options.priors.push_back(std::move(*prior));
    }
    with.push_back(trials_needed(domain, options));
  }
  fmt::print("{:4.0f} -> {:4.0f}  {}  knowing  {}\n", quartiles(without).median, quartiles(with).median, to.name,
             from.name);
}

int command(int argc, char** argv) {
  CLI::App app{"Trials needed with nothing known before, and with trials of another shape known"};
  std::vector<std::string> files;
  app.add_option("--db", files, "Databases of random trials of one kernel")->required()->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  std::vector<RecordedSpace> spaces;
  for (const std::string& file : files) {
    for (RecordedSpace& space : recorded_spaces(Store(file, OpenMode::read_only))) {
      if (space.trials.size() >= kMinTrials) {
        spaces.push_back(std::move(space));
      }
    }
  }
  if (spaces.size() < 2) {
    fmt::print(stderr, "two problems with {} recorded trials are needed\n", kMinTrials);
    return 1;
  }
  share_values(spaces);
  for (const RecordedSpace& from : spaces) {
    for (const RecordedSpace& to : spaces) {
      if (&from != &to) {
        compare(from, to);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace pascaline

int main(int argc, char** argv) {
  try {
    return pascaline::command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transfer_between_shapes: %s\n", error.what());
    return 1;
  }
}
