#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tuner/measure/measure.hpp"
#include "tuner/replay/recorded_domain.hpp"

namespace pascaline {

/// Which of a configuration's recorded samples a replayed search takes.
enum class SampleRule : std::uint8_t {
  all,        ///< every one
  precision,  ///< until the median is known to `MeasureOptions::target_half_width`
  race,       ///< … or the configuration is found slower than the best so far
};

/// How a recorded space is searched.
struct RecordedRace {
  std::string searcher;      ///< a name `make_searcher` knows
  std::uint64_t seed = 1;    ///< of the searcher, and of the order in which samples are drawn
  std::size_t trials = 200;  ///< at most
  std::size_t finalists = 5;
  MeasureOptions measure{};
};

/// Milliseconds that launches take, the warm-up's among them, until the best found is within 1 % of the space's
/// optimum, by the medians of all samples; infinity if `trials` configurations do not lead there. The search sees the
/// median of what was sampled. As in a sweep, the fastest `finalists` are compared in the end: what is left of their
/// samples is counted, too. Samples are drawn without replacement: within a configuration's record clocks may have
/// drifted, which a sweep would have waited out. A record that ends before the rule is content is taken as it is.
/// `space` has a best median (RecordedDomain::best_median_us). Throws what make_searcher throws.
[[nodiscard]] double sampling_ms_to_1_percent(const RecordedDomain& space, const RecordedRace& race, SampleRule rule);

}  // namespace pascaline
