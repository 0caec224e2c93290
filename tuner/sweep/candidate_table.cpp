#include "tuner/sweep/candidate_table.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace pascaline {

CandidateTable::CandidateTable(const CompilerAxis* compilers)
    : compilers_(compilers), of_compiler_(compilers != nullptr ? compilers->count() : 0) {}

bool CandidateTable::propose(const Config& config, bool searched) {
  const auto [entry, is_new] = all_.try_emplace(config.text());
  if (is_new) {
    entry->second.config = config;
    entry->second.searched = searched;
    ++open_;
  }
  return is_new;
}

void CandidateTable::recall(const Config& config, double median_us, std::int64_t trial) {
  Candidate& candidate = all_[config.text()];
  candidate.config = config;
  candidate.stage = Candidate::Stage::settled;
  if (median_us > 0) {
    candidate.median_us = median_us;
    candidate.trial = trial;
    rank(candidate);
  }
}

const Candidate* CandidateTable::add_code(const Config& config, Binary binary, std::string run_key) {
  Candidate& candidate = at(config);
  candidate.run_key = std::move(run_key);
  Code& code = codes_[candidate.run_key];
  if (code.original != nullptr && code.original->stage == Candidate::Stage::settled) {
    return code.original;
  }
  candidate.binary = std::move(binary);
  if (code.original != nullptr) {
    candidate.stage = Candidate::Stage::twin;
    code.twins.push_back(&candidate);
    return code.original;
  }
  code.original = &candidate;
  candidate.stage = Candidate::Stage::ready;
  ready_.push_back(&candidate);
  return nullptr;
}

void CandidateTable::swap_with_twin(const Config& twin) {
  Candidate& first = at(twin);
  Code& code = codes_.at(first.run_key);
  const auto place = std::ranges::find(ready_, code.original);
  if (place == ready_.end()) {
    return;
  }
  *std::ranges::find(code.twins, &first) = code.original;
  std::swap(first.stage, code.original->stage);
  code.original = &first;
  *place = &first;
}

Candidate& CandidateTable::take(std::size_t index) {
  Candidate& candidate = *ready_.at(index);
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(index));
  candidate.stage = Candidate::Stage::measuring;
  return candidate;
}

void CandidateTable::put_back(const Config& config) {
  Candidate& candidate = at(config);
  candidate.stage = Candidate::Stage::ready;
  ready_.push_front(&candidate);
}

std::vector<const Candidate*> CandidateTable::settle(const Trial& trial, std::int64_t stored_id) {
  --open_;
  Candidate& candidate = at(trial.config);
  candidate.stage = Candidate::Stage::settled;
  settled_binaries_ += candidate.binary ? 1 : 0;
  candidate.has_own_time = trial.shared_trial == 0;
  candidate.trial = stored_id;
  if (has_time(trial.status)) {
    candidate.median_us = trial.time ? trial.time->median_us : 0;
    if (candidate.has_own_time && trial.measure_ms > 0 && !trial.samples.empty()) {
      candidate.launch_s = trial.measure_ms / 1000 / static_cast<double>(trial.samples.size());
    }
    rank(candidate);
  }
  const auto code = codes_.find(candidate.run_key);
  if (code == codes_.end() || code->second.original != &candidate) {
    return {};
  }
  candidate.result = trial;
  candidate.result->samples.clear();
  const std::vector<Candidate*> twins = std::exchange(code->second.twins, {});
  return {twins.begin(), twins.end()};
}

void CandidateTable::rank(Candidate& candidate) {
  if (candidate.has_own_time) {
    ranking_.emplace(candidate.median_us, &candidate);
    ++changes_;
  }
  if (compilers_ != nullptr) {
    of_compiler_[compilers_->index_of(candidate.config)].emplace(candidate.median_us, &candidate);
  }
}

void CandidateTable::discard(const Config& config) {
  Candidate& candidate = at(config);
  const auto is_it = [&](const auto& ranked) { return ranked.second == &candidate; };
  std::erase_if(ranking_, is_it);
  for (Ranking& ranking : of_compiler_) {
    std::erase_if(ranking, is_it);
  }
  candidate.median_us = 0;
  ++changes_;
}

void CandidateTable::drop_binaries(std::size_t fastest, const std::function<bool(const Candidate&)>& needed) {
  if (settled_binaries_ <= 2 * fastest) {
    return;
  }
  std::set<const Candidate*> kept;
  for (auto entry = ranking_.begin(); entry != ranking_.end() && kept.size() < fastest; ++entry) {
    kept.insert(entry->second);
  }
  settled_binaries_ = 0;
  for (auto& [text, candidate] : all_) {
    const bool is_over = candidate.stage == Candidate::Stage::settled && !kept.contains(&candidate);
    if (is_over && !needed(candidate)) {
      candidate.binary.reset();
    }
    settled_binaries_ += candidate.stage == Candidate::Stage::settled && candidate.binary ? 1 : 0;
  }
}

const Candidate* CandidateTable::find(const std::string& text) const {
  const auto found = all_.find(text);
  return found == all_.end() ? nullptr : &found->second;
}

const Candidate* CandidateTable::find_usable(const Config& config) const {
  const Candidate* found = find(config);
  return found != nullptr && found->median_us > 0 ? found : nullptr;
}

}  // namespace pascaline
