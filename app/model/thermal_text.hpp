#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "app/options.hpp"
#include "model/session/session.hpp"

namespace pascaline {

/// `auto`, `off` or the file of a policy.
[[nodiscard]] CLI::Validator thermal_choice();

/// What `--thermal` and `--sensors` say. A policy that does not hold gets a warning on stderr, and the default one is
/// used. Throws SpaceError for a trace that cannot be read.
[[nodiscard]] ThermalOptions thermal_options(const std::string& thermal, const std::string& sensors);

/// What the session did about the card's temperature so far; null where it does not watch it.
[[nodiscard]] nlohmann::json thermal_json(const ModelSession& session);

/// The same in a line, which it ends; empty where it does not watch it.
[[nodiscard]] std::string thermal_line(const ModelSession& session);

/// A line on stderr for each change of the state, and for each sensor that fell silent or is heard again, since this
/// was last called; after what stdout has so far, so never within a line of it if called between two answers.
void tell_thermal_events(const ModelSession& session);

/// `tell_thermal_events`, and the line of `thermal_line` on stderr if the state ever changed.
void note_thermal(const ModelSession& session);

}  // namespace pascaline
