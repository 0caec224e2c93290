#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "model/session/session.hpp"

namespace pascaline {

/// For `--plan`: bytes by part, where each part runs, what was measured, and how fast that is expected to be. Lines,
/// each with its end.
[[nodiscard]] std::string plan_text(const SessionEstimate& plan);
/// The same as one object.
[[nodiscard]] nlohmann::json plan_json(const SessionEstimate& plan);
/// Prints one of them.
void print_plan(const SessionEstimate& plan, bool as_json);

}  // namespace pascaline
