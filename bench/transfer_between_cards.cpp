// How many trials a search needs to come within 1 % of a recorded space's best, with nothing known before and with what
// a search on another card measured of the same kernel and problem: every pair of the files whose names begin with the
// same kernel (KERNEL__CARD.csv.gz), medians over seeds. What is known of the other card are the trials of a search
// there; its best one is proposed first, as a sweep does, and `--octaves` are tried as how far away the card is.
// `reversed` is another card whose order of configurations is the opposite of this one's, as the worst that can be.
//
//   transfer_between_cards [--octaves 0,1,2,3] [--seeds 20] [--known 100] FOLDER

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "db/exchange/read.hpp"
#include "tuner/replay/replay.hpp"
#include "tuner/search/transfer.hpp"

namespace pascaline {
namespace {

constexpr double kNear = 1.01;

struct Settings {
  std::string folder;
  std::vector<double> octaves{0, 1, 2, 3};
  int seeds = 20;
  int known = 100;
  int most = 1000;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
};

std::string kernel_of(const RecordedSpace& space) { return space.name.substr(0, space.name.find("__")); }

// What of the other card's search is told to this one's.
enum class Told { nothing, prior, winner, both };

struct Case {
  const RecordedSpace* from = nullptr;  ///< nullptr: the reversed order of `to`
  const RecordedSpace* to = nullptr;
  Told told = Told::nothing;
  double octaves = 0;
  std::vector<double> trials{};  ///< by seed
};

std::vector<RelatedTrial> trials_of_search(const RecordedDomain& from, std::uint64_t seed, int most) {
  SearchOptions options;
  options.seed = seed + 1000;  // not the draws of the search that is told of it
  const auto searcher = make_searcher("auto", from.domain(), options);
  std::vector<RelatedTrial> trials;
  for (int i = 0; i < most; ++i) {
    const std::vector<Point> points = searcher->propose(1);
    if (points.empty()) {
      break;
    }
    const Observation observation = from.observation(points.front());
    searcher->observe(points.front(), observation);
    if (has_time(observation.status)) {
      trials.push_back({points.front(), observation.time_us});
    }
  }
  return trials;
}

// Of two spaces whose values are numbered differently: the other's points in this one's numbers.
std::vector<RelatedTrial> renumbered(const RecordedSpace& from, const RecordedSpace& to,
                                     const std::vector<RelatedTrial>& trials) {
  std::vector<RelatedTrial> out;
  for (const RelatedTrial& trial : trials) {
    RelatedTrial moved = trial;
    bool known = true;
    for (std::size_t p = 0; p < to.parameters.size() && known; ++p) {
      const auto& values = to.parameters[p].values;
      const auto at = std::find(values.begin(), values.end(), from.parameters.at(p).values[trial.point[p]]);
      known = at != values.end();
      moved.point[p] = static_cast<std::uint16_t>(at - values.begin());
    }
    if (known) {
      out.push_back(std::move(moved));
    }
  }
  return out;
}

// The opposite order: the slowest becomes the fastest.
RecordedSpace reversed(RecordedSpace space) {
  double product = 0;
  for (const RecordedTrial& trial : space.trials) {
    if (trial.status == TrialStatus::ok) {
      product = product == 0 ? trial.time_us : std::max(product, trial.time_us);
    }
  }
  for (RecordedTrial& trial : space.trials) {
    if (trial.status == TrialStatus::ok) {
      trial.time_us = product * product / trial.time_us;
    }
  }
  return space;
}

double trials_needed(const RecordedDomain& space, const SearchOptions& options, const std::vector<Point>& first,
                     int most) {
  const auto searcher = make_searcher("auto", space.domain(), options);
  for (int trials = 1; trials <= most; ++trials) {
    const auto early = static_cast<std::size_t>(trials - 1);
    const std::vector<Point> points = early < first.size() ? std::vector<Point>{first[early]} : searcher->propose(1);
    if (points.empty()) {
      return trials;
    }
    const Observation observation = space.observation(points.front());
    searcher->observe(points.front(), observation);
    if (has_time(observation.status) && observation.time_us <= kNear * space.optimum_us()) {
      return trials;
    }
  }
  return most;
}

bool has_point(const RecordedDomain& domain, const Point& point) {
  return std::any_of(domain.trials().begin(), domain.trials().end(),
                     [&](const RecordedTrial& trial) { return trial.indices == point; });
}

double run(const Case& wanted, int seed, const Settings& settings) {
  const RecordedDomain domain(*wanted.to);
  SearchOptions options;
  options.seed = static_cast<std::uint64_t>(seed);
  std::vector<Point> first;
  if (wanted.told != Told::nothing) {
    const RecordedSpace other = wanted.from != nullptr ? *wanted.from : reversed(*wanted.to);
    auto known = renumbered(other, *wanted.to, trials_of_search(RecordedDomain(other), options.seed, settings.known));
    std::stable_sort(known.begin(), known.end(),
                     [](const RelatedTrial& a, const RelatedTrial& b) { return a.time_us < b.time_us; });
    if (wanted.told != Told::prior && !known.empty() && has_point(domain, known.front().point)) {
      first.push_back(known.front().point);
    }
    if (wanted.told != Told::winner) {
      const double distance = wanted.octaves * std::numbers::ln2;
      if (auto prior = transfer_prior(domain.domain(), known, distance, options.seed)) {
        options.priors.push_back(std::move(*prior));
      }
    }
  }
  return trials_needed(domain, options, first, settings.most);
}

std::vector<Case> cases_of(const std::vector<RecordedSpace>& spaces, const Settings& settings) {
  std::vector<Case> cases;
  for (const RecordedSpace& to : spaces) {
    cases.push_back({nullptr, &to, Told::nothing, 0});
    for (const RecordedSpace& from : spaces) {
      if (kernel_of(from) != kernel_of(to)) {
        continue;
      }
      const RecordedSpace* other = &from == &to ? nullptr : &from;
      cases.push_back({other, &to, Told::winner, 0});
      for (const double octaves : settings.octaves) {
        cases.push_back({other, &to, Told::prior, octaves});
        cases.push_back({other, &to, Told::both, octaves});
      }
    }
  }
  return cases;
}

void run_all(std::vector<Case>& cases, const Settings& settings) {
  const auto seeds = static_cast<std::size_t>(settings.seeds);
  for (Case& one : cases) {
    one.trials.resize(seeds);
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < settings.jobs; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < cases.size() * seeds; at = next++) {
        cases[at / seeds].trials[at % seeds] = run(cases[at / seeds], static_cast<int>(at % seeds) + 1, settings);
      }
    });
  }
}

std::string label(Told told, double octaves) {
  switch (told) {
    case Told::nothing:
      return "nothing";
    case Told::winner:
      return "winner first";
    case Told::prior:
      return fmt::format("prior, {} octaves", octaves);
    case Told::both:
      return fmt::format("both, {} octaves", octaves);
  }
  return {};
}

double median_of(const std::vector<Case>& cases, const RecordedSpace* from, const RecordedSpace* to, Told told,
                 double octaves) {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& one) {
    return one.to == to && one.told == told && (told == Told::nothing || one.from == from) &&
           ((told == Told::nothing || told == Told::winner) || one.octaves == octaves);
  });
  return found == cases.end() ? std::numeric_limits<double>::quiet_NaN() : quartiles(found->trials).median;
}

void print(const std::vector<Case>& cases, const Settings& settings) {
  std::vector<std::pair<Told, double>> columns{{Told::nothing, 0}, {Told::winner, 0}};
  for (const double octaves : settings.octaves) {
    columns.emplace_back(Told::prior, octaves);
    columns.emplace_back(Told::both, octaves);
  }
  std::string head = "| To | Known |";
  for (const auto& [told, octaves] : columns) {
    head += fmt::format(" {} |", label(told, octaves));
  }
  fmt::print("{}\n", head);
  for (const bool misleading : {false, true}) {
    std::vector<double> logs(columns.size());
    std::vector<int> worse(columns.size());
    int pairs = 0;
    for (const Case& one : cases) {
      if (one.told != Told::winner || (one.from == nullptr) != misleading) {
        continue;
      }
      std::string line = fmt::format("| {} | {} |", one.to->name, one.from == nullptr ? "reversed" : one.from->name);
      const double without = median_of(cases, nullptr, one.to, Told::nothing, 0);
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const double with = median_of(cases, one.from, one.to, columns[c].first, columns[c].second);
        line += fmt::format(" {:.0f} |", with);
        logs[c] += std::log(with / without);
        worse[c] += with > without ? 1 : 0;
      }
      fmt::print("{}\n", line);
      ++pairs;
    }
    std::string line = fmt::format("| geometric mean of {} pairs, with/without (pairs worse) | |", pairs);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      line += fmt::format(" {:.2f} ({}) |", std::exp(logs[c] / std::max(1, pairs)), worse[c]);
    }
    fmt::print("{}\n", line);
  }
}

int command(int argc, char** argv) {
  CLI::App app{"Trials needed with nothing known before, and with what another card measured known"};
  Settings settings;
  app.add_option("FOLDER", settings.folder, "Recorded spaces KERNEL__CARD.csv.gz")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--octaves", settings.octaves, "Distances of the other card to try")->delimiter(',');
  app.add_option("--seeds", settings.seeds, "Repeats");
  app.add_option("--known", settings.known, "Trials of the search on the other card");
  app.add_option("--most", settings.most, "Trials after which a search is given up, and counts with that many");
  app.add_option("--jobs", settings.jobs, "Threads");
  CLI11_PARSE(app, argc, argv);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(settings.folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<RecordedSpace> spaces;
  for (const std::filesystem::path& file : files) {
    spaces.push_back(read_recorded_space(file));
  }
  std::vector<Case> cases = cases_of(spaces, settings);
  run_all(cases, settings);
  print(cases, settings);
  return 0;
}

}  // namespace
}  // namespace pascaline

int main(int argc, char** argv) {
  try {
    return pascaline::command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transfer_between_cards: %s\n", error.what());
    return 1;
  }
}
