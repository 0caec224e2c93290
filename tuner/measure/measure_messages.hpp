#pragma once

#include "tuner/finals/finals_decision.hpp"
#include "tuner/ipc/messages.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/monitor/governor.hpp"

// What goes between a sweep and its measurement worker besides, as JSON values.
namespace pascaline {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasureOptions, cold_cache, warm_up, min_samples, max_samples, target_half_width,
                                   budget_ms, race_error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GovernorOptions, passive, margin_c, resume_c, limit_c, clock_tolerance,
                                   canary_tolerance, normalise_from, preheat_limit_s, steady_s, steady_c, settle_s,
                                   pause_limit_s, tolerated_throttle)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ObjectiveOptions, objective, contender_factor, min_rounds, max_rounds,
                                   rounds_per_look, rounds_of_all, p_value, tie_width, sustain_first_s, sustain_again_s,
                                   sustain_window_s, max_temperature_c)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Contender, trial, values)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ObjectiveDecision, objective, contenders, winner, score, baseline_score, confidence,
                                   tie, out_of_time, undecided)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StandingDecision, config, time, baseline, baseline_config, canary_us, confidence)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KnownEnergies, of_configs, canary_us, sm_clock_mhz, temperature_c)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FinalsOptions, rounds, min_rounds, rounds_per_look, launches, p_value, tie_width,
                                   energy_window_ms, objective, stand_in, standing, energies)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FinalsResult, trials, failed, winner, baseline_trial, baseline, confidence, tie,
                                   rounds, gave_up, out_of_time, by_objective, stays, energies_again)

}  // namespace pascaline
