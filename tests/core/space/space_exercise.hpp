#pragma once

#include "core/space/space.hpp"

namespace pascaline::testing {

/// Evaluates everything a space can be asked, for two problems; Error is an answer, anything else is not.
void exercise(const Space& space);

}  // namespace pascaline::testing
