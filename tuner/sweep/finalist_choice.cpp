#include "tuner/sweep/finalist_choice.hpp"

#include <algorithm>
#include <map>

namespace pascaline {
namespace {

// Adds a configuration to a list unless the list has it or it is the baseline, which comes last.
class Chosen {
 public:
  explicit Chosen(const std::optional<Config>& baseline) : baseline_(baseline) {}

  void add(const Config& config) {
    if (config != baseline_ && std::ranges::find(configs_, config) == configs_.end()) {
      configs_.push_back(config);
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(configs_.size()); }
  [[nodiscard]] std::vector<Config> with_baseline() && {
    if (baseline_) {
      configs_.push_back(*baseline_);
    }
    return std::move(configs_);
  }

 private:
  const std::optional<Config>& baseline_;
  std::vector<Config> configs_{};
};

}  // namespace

void FinalistChoice::prefer_low_energy(EnergyEstimator estimator) {
  energy_ = std::move(estimator);
  low_energy_.first = -1;
}

std::vector<Config> FinalistChoice::found(const CandidateTable& table, const std::optional<Config>& baseline,
                                          const Config& default_config) const {
  Chosen chosen(baseline);
  const auto add_fastest = [&](int most) {
    for (auto entry = table.ranking().begin(); entry != table.ranking().end() && chosen.count() < most; ++entry) {
      chosen.add(entry->second->config);
    }
  };
  if (energy_) {
    add_fastest(std::max(std::min(most_, kMinFastest), most_ - most_ / 2));
    const std::vector<Config>& efficient = by_energy(table);
    for (auto config = efficient.begin(); config != efficient.end() && chosen.count() < most_; ++config) {
      chosen.add(*config);
    }
  }
  add_fastest(most_);
  // What is used where the winner's compiler is missing is decided in the same finals.
  for (std::size_t compiler = 0; compiler < table.rankings_of_compilers().size(); ++compiler) {
    const CandidateTable::Ranking& ranking = table.rankings_of_compilers()[compiler];
    if (ranking.empty()) {
      continue;
    }
    chosen.add(ranking.begin()->second->config);
    const Config standard = compilers_->with(compilers_->without(default_config), compiler);
    if (table.find_usable(standard) != nullptr) {
      chosen.add(standard);
    }
  }
  return std::move(chosen).with_baseline();
}

// Next to the best, so that they are left out last where there is little time.
std::vector<Config> FinalistChoice::all(const CandidateTable& table, const std::optional<Config>& baseline,
                                        const Config& default_config) const {
  std::vector<Config> chosen = found(table, baseline, default_config);
  for (const Config& winner : standing_) {
    if (winner == baseline || table.find_usable(winner) == nullptr) {
      continue;
    }
    const auto found = std::ranges::find(chosen, winner);
    if (found == chosen.end()) {
      chosen.insert(chosen.begin() + std::min<std::ptrdiff_t>(1, std::ssize(chosen)), winner);
    } else if (found - chosen.begin() > 1) {
      std::rotate(chosen.begin() + 1, found, found + 1);
    }
  }
  return chosen;
}

// Asked for often between two changes of the ranking.
const std::vector<Config>& FinalistChoice::by_energy(const CandidateTable& table) const {
  if (low_energy_.first != table.changes()) {
    std::multimap<double, const Config*> ordered;
    for (const auto& [median_us, candidate] : table.ranking()) {
      if (median_us > kMaxSlowdown * table.best_us()) {
        break;
      }
      if (const auto energy = energy_(candidate->config, median_us)) {
        ordered.emplace(*energy, &candidate->config);
      }
    }
    low_energy_ = {table.changes(), {}};
    for (const auto& [energy, config] : ordered) {
      low_energy_.second.push_back(*config);
    }
  }
  return low_energy_.second;
}

}  // namespace pascaline
