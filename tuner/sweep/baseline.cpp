#include "tuner/sweep/baseline.hpp"

#include "runtime/dispatch/closest_valid.hpp"

namespace pascaline {
namespace {

// Of a kernel that fails everywhere not all is to be tried in this order.
constexpr std::size_t kMaxStandIns = 64;

}  // namespace

std::optional<Config> Baseline::next_stand_in(const CandidateTable& table, const StopCheck& check) {
  while (!why_no_default_.empty() && no_stand_in_.size() < kMaxStandIns) {
    if (!stand_in_) {
      stand_in_ = closest_valid(bound_, no_stand_in_, check);
      if (!stand_in_) {
        return std::nullopt;
      }
    }
    const Candidate* known = table.find(*stand_in_);
    if (known == nullptr) {
      return stand_in_;
    }
    if (known->median_us > 0 || known->stage != Candidate::Stage::settled) {
      return std::nullopt;
    }
    no_stand_in_.push_back(*std::exchange(stand_in_, std::nullopt));
  }
  return std::nullopt;
}

void Baseline::note_usable(const Config& usable) {
  std::vector<std::size_t> key = closeness(bound_.space(), usable);
  if (!nearest_ || key < nearest_->first) {
    nearest_.emplace(std::move(key), usable);
  }
}

void Baseline::note_discarded(const Config& discarded, const CandidateTable& table) {
  if (nearest_ && nearest_->second == discarded) {
    nearest_.reset();
    for (const auto& [median_us, usable] : table.ranking()) {
      note_usable(usable->config);
    }
  }
}

std::optional<Config> Baseline::config(const CandidateTable& table) const {
  if (table.find_usable(default_config_) != nullptr) {
    return default_config_;
  }
  // Before the default was measured nothing replaces it.
  return why_no_default_.empty() || !nearest_ ? std::nullopt : std::optional(nearest_->second);
}

}  // namespace pascaline
