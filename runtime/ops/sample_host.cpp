#include "runtime/ops/sample_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"

namespace pascaline::ops {
namespace {

// As kernel_templates/common/sampling.cuh: integers, and single float32 operations.

constexpr float kHottest = 1'048'576.0F;
constexpr int kBins = 43;
constexpr int kFractionBits = 24;
constexpr int kMassBits = 23;
constexpr int kWeightShift = 20;

std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32U);
}

std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a_low = a & 0xFFFFFFFFU;
  const std::uint64_t b_low = b & 0xFFFFFFFFU;
  const std::uint64_t middle = (a >> 32U) * b_low + (a_low * b_low >> 32U);
  return (a >> 32U) * (b >> 32U) + (middle >> 32U) + ((a_low * (b >> 32U) + (middle & 0xFFFFFFFFU)) >> 32U);
}

std::uint64_t rank_of(float logit, std::size_t id) {
  const std::uint32_t bits = logit == 0.0F ? 0U : std::bit_cast<std::uint32_t>(logit);
  const std::uint32_t key = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{key} << 32U | static_cast<std::uint32_t>(~id);
}

std::int32_t id_of(std::uint64_t rank) { return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank)); }

// log2 of the logit's mass, times 2^24.
std::int64_t power_of(float logit, float scale) {
  constexpr float kFar = 536'870'912.0F;
  return std::llrint(std::clamp(logit * scale, -kFar, kFar) * 16'777'216.0F);
}

std::uint32_t mass_of(std::int64_t power) {
  const auto x = static_cast<std::uint32_t>(power) << 8U;
  std::uint32_t sum = 3'840'493U;
  for (const std::uint32_t coefficient : {19'755'534U, 119'522'614U, 515'841'022U, 1'488'523'067U}) {
    sum = coefficient + high_product(sum, x);
  }
  return std::min((1U << 22U) + (high_product(sum, x) >> 9U), (1U << std::uint32_t{kMassBits}) - 1);
}

struct Candidate {
  std::uint64_t rank;
  std::uint32_t mass;
  int bin;
};

// Tokens by the exponents of their masses, bin 0 being that of the largest logit.
struct Bins {
  std::vector<Candidate> candidates;
  std::array<std::uint64_t, kBins> tokens{};
  std::array<std::uint64_t, kBins> masses{};
};

std::uint64_t weight_in(std::uint64_t mass, int bin) { return mass << kWeightShift >> static_cast<unsigned>(bin); }

// Where, going down the ranks, a target is reached.
struct Place {
  std::uint64_t rank = 0;
  std::uint64_t before = 0;   // weight of the tokens above
  std::uint64_t through = 0;  // and with this one
};

Place find(const Bins& bins, std::uint64_t target, bool by_weight) {
  std::uint64_t above = 0;
  int bin = 0;
  for (; bin < kBins - 1; ++bin) {
    const auto i = static_cast<std::size_t>(bin);
    const std::uint64_t weight = weight_in(bins.masses[i], bin);
    const std::uint64_t measure = by_weight ? weight : bins.tokens[i];
    if (measure >= target) {
      break;
    }
    target -= measure;
    above += weight;
  }
  std::vector<Candidate> inside;
  std::copy_if(bins.candidates.begin(), bins.candidates.end(), std::back_inserter(inside),
               [&](const Candidate& candidate) { return candidate.bin == bin; });
  std::sort(inside.begin(), inside.end(), [](const Candidate& a, const Candidate& b) { return a.rank > b.rank; });
  std::uint64_t mass = 0;
  std::uint64_t tokens = 0;
  for (const Candidate& candidate : inside) {
    const std::uint64_t before = weight_in(mass, bin);
    mass += candidate.mass;
    ++tokens;
    const std::uint64_t through = weight_in(mass, bin);
    if ((by_weight ? through : tokens) >= target) {
      return {candidate.rank, above + before, above + through};
    }
  }
  throw Error("sample: a target beyond all tokens; this is a bug");
}

std::uint64_t share_of(float share, std::uint64_t whole) {
  const std::uint64_t part = share > 0.0F ? static_cast<std::uint64_t>(share * 4'294'967'296.0F) : 0;
  const std::uint64_t target = (whole >> 32U) * part + (((whole & 0xFFFFFFFFU) * part + 0xFFFFFFFFU) >> 32U);
  return std::max<std::uint64_t>(target, 1);
}

// Weight of the tokens whose own is at least `part` of the largest logit's.
std::uint64_t likely_weight(const Bins& bins, float part) {
  const auto by_rank = [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; };
  const Candidate& first = *std::max_element(bins.candidates.begin(), bins.candidates.end(), by_rank);
  const std::uint64_t least = share_of(std::min(part, 1.0F), weight_in(first.mass, 0));
  std::array<std::uint64_t, kBins> masses{};
  for (const Candidate& candidate : bins.candidates) {
    if (weight_in(candidate.mass, candidate.bin) >= least) {
      masses[static_cast<std::size_t>(candidate.bin)] += candidate.mass;
    }
  }
  std::uint64_t weight = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    weight += weight_in(masses[bin], static_cast<int>(bin));
  }
  return weight;
}

SampledToken draw(const Bins& bins, const SamplingSettings& settings, std::uint64_t random) {
  std::uint64_t tokens = 0;
  std::uint64_t kept = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    tokens += bins.tokens[bin];
    kept += weight_in(bins.masses[bin], static_cast<int>(bin));
  }
  if (settings.top_k > 0 && static_cast<std::uint64_t>(settings.top_k) < tokens) {
    kept = find(bins, static_cast<std::uint64_t>(settings.top_k), false).through;
  }
  if (settings.top_p < 1.0F) {
    kept = find(bins, share_of(settings.top_p, kept), true).through;
  }
  if (settings.min_p > 0.0F) {
    kept = std::min(kept, likely_weight(bins, settings.min_p));
  }
  const Place place = find(bins, high_product(random, kept) + 1, true);
  const double probability = static_cast<double>(place.through - place.before) / static_cast<double>(kept);
  return {id_of(place.rank), static_cast<float>(probability)};
}

// Logits after the penalties.
std::vector<float> penalised(std::span<const float> logits, const SamplingSettings& settings,
                             std::span<const std::int32_t> seen) {
  std::vector<float> result(logits.begin(), logits.end());
  if (settings.repetition == 1.0F && settings.presence == 0.0F) {
    return result;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] > 0) {
      result[i] = result[i] > 0.0F ? result[i] / settings.repetition : result[i] * settings.repetition;
    }
  }
  // A loop of its own, so that no compiler makes one operation of product and difference.
  for (std::size_t i = 0; i < seen.size(); ++i) {
    result[i] = seen[i] > 0 ? result[i] - settings.presence : result[i];
  }
  return result;
}

Bins sort_into_bins(std::span<const float> logits, float scale, int top) {
  Bins bins;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      continue;
    }
    const std::int64_t power = power_of(logits[i], scale);
    const int bin = top - static_cast<int>(power >> kFractionBits);
    if (bin < kBins) {
      const std::uint32_t mass = mass_of(power);
      bins.candidates.push_back({rank_of(logits[i], i), mass, bin});
      bins.tokens[static_cast<std::size_t>(bin)] += 1;
      bins.masses[static_cast<std::size_t>(bin)] += mass;
    }
  }
  return bins;
}

void require_finite(float value, const char* name) {
  if (!std::isfinite(value)) {
    throw Error(fmt::format("sampling: {} is {}; it must be a finite number", name, value));
  }
}

}  // namespace

void check_settings(const SamplingSettings& settings) {
  require_finite(settings.temperature, "temperature");
  require_finite(settings.repetition, "repetition penalty");
  require_finite(settings.presence, "presence penalty");
  require_finite(settings.top_p, "top_p");
  require_finite(settings.min_p, "min_p");
  if (settings.temperature < 0) {
    throw Error(fmt::format("sampling: temperature is {}; it must be 0 (the most probable token) or greater",
                            settings.temperature));
  }
  if (settings.repetition <= 0) {
    throw Error(fmt::format("sampling: repetition penalty is {}; it must be above 0, and 1 changes nothing",
                            settings.repetition));
  }
  if (settings.top_k < 0) {
    throw Error(fmt::format("sampling: top_k is {}; it must be 0 (all tokens) or above", settings.top_k));
  }
  if (settings.top_p < 0 || settings.top_p > 1) {
    throw Error(fmt::format("sampling: top_p is {}; it must be from 0 to 1", settings.top_p));
  }
  if (settings.min_p < 0 || settings.min_p > 1) {
    throw Error(fmt::format("sampling: min_p is {}; it must be from 0 (all tokens) to 1", settings.min_p));
  }
}

std::array<float, 5> device_settings(const SamplingSettings& settings) noexcept {
  return {settings.temperature, settings.top_p, settings.repetition, settings.presence, settings.min_p};
}

SampledToken sample_on_host(std::span<const float> logits, const SamplingSettings& settings,
                            std::span<std::int32_t> seen, std::uint64_t& step) {
  if (logits.empty() || logits.size() > static_cast<std::size_t>(kMaxVocabulary)) {
    throw Error(
        fmt::format("sampling: there are {} logits; there must be from 1 to {}", logits.size(), kMaxVocabulary));
  }
  if (!seen.empty() && seen.size() != logits.size()) {
    throw Error(
        fmt::format("sampling: there are {} counts of seen tokens for {} logits; there must be as many, or none",
                    seen.size(), logits.size()));
  }
  const std::vector<float> values = penalised(logits, settings, seen);
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::isnan(values[i]) ? largest : std::max(largest, rank_of(values[i], i));
  }
  const std::uint64_t number = step++;
  if (largest == 0) {
    return {};
  }
  SampledToken chosen{id_of(largest), 1.0F};
  if (settings.temperature >= kColdestTemperature && settings.top_k != 1) {
    const float scale = 1.44269504F / std::min(settings.temperature, kHottest);
    const float most = values[static_cast<std::size_t>(chosen.token)];
    const int top = static_cast<int>(power_of(most, scale) >> kFractionBits);
    chosen = draw(sort_into_bins(values, scale, top), settings, philox(settings.seed, number));
  }
  if (!seen.empty()) {
    std::int32_t& count = seen[static_cast<std::size_t>(chosen.token)];
    count += count < std::numeric_limits<std::int32_t>::max() ? 1 : 0;
  }
  return chosen;
}

std::uint64_t philox(std::uint64_t seed, std::uint64_t step) noexcept {
  std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32U), 0, 0};
  auto key = static_cast<std::uint32_t>(seed);
  auto second_key = static_cast<std::uint32_t>(seed >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32U) ^ counter[1] ^ key, static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32U) ^ counter[3] ^ second_key, static_cast<std::uint32_t>(first)};
    key += 0x9E3779B9U;
    second_key += 0xBB67AE85U;
  }
  return std::uint64_t{counter[0]} << 32U | counter[1];
}

}  // namespace pascaline::ops
