#pragma once

#include <functional>

#include "core/problem.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/executor.hpp"
#include "model/fusion/fusion_mode.hpp"
#include "model/residency/residency_options.hpp"
#include "tests/model/golden.hpp"

namespace pascaline::testing {

/// How far logits may be from those in float64.
struct GoldenTolerance {
  ElementType weights = ElementType::float32;  ///< which hold the hashed weights exactly in either type
  ElementType cache = ElementType::float32;
  float logits = 1e-4F;
  ResidencyOptions residency{};
  FusionFile fusion_file{};  ///< how sites are computed
};

/// Runs both prompts of the model and what follows them, read in one pass, in chunks and token by token; every logit
/// known must agree.
void check_golden(Executor& executor, const GoldenModel& golden, const GoldenTolerance& tolerance = {});
/// The same with the hashed weights as `open` gives them.
void check_golden(Executor& executor, const GoldenModel& golden, const GoldenTolerance& tolerance,
                  const std::function<WeightSource()>& open);

}  // namespace pascaline::testing
