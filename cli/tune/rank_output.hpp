#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/tune/rank_card.hpp"
#include "core/space/space.hpp"
#include "tuner/static_model/ranking.hpp"

namespace pascaline::cli {

/// A ranking as an entry of `problems` in the JSON of `pascaline rank`.
[[nodiscard]] nlohmann::json ranking_json(const Ranking& ranking, const BoundSpace& bound);

/// Prints a ranking as a table. `names_compilers`: with a column that names each binary's compiler.
void print_ranking(const Ranking& ranking, const BoundSpace& bound, const RankCard& card, bool names_compilers);

}  // namespace pascaline::cli
