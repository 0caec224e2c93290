#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "db/store.hpp"

namespace pascaline {

enum class ShowWhat : std::uint8_t { sessions, winners, trials, pareto };

/// What `show` lists.
struct ShowOptions {
  ShowWhat what = ShowWhat::winners;
  TrialFilter filter{};  ///< trials: all of it; winners: kernel and problem; sessions: session_id
  std::optional<Objective> objective = Objective::time;  ///< of winners; nothing: all
  std::size_t limit = 20;                                ///< rows, of `pareto` problems; 0 = all
};

/// Aligned columns for a terminal: sessions and winners newest first; trials fastest first, then those without a
/// time, newest first; energy and notes only where some row has them. `pareto`: a table a problem, of the
/// configurations whose time and energy are both known, the fastest first, and a sentence. Throws StoreError.
[[nodiscard]] std::string show_text(const Store& store, const ShowOptions& options);

/// Rows, of `pareto` problems, that there are without a limit.
[[nodiscard]] std::size_t count_shown(const Store& store, ShowOptions options);

/// The same rows as an array of objects, keyed by column; of `pareto` an object a problem with its `points`. Throws
/// StoreError.
[[nodiscard]] nlohmann::json show_json(const Store& store, const ShowOptions& options);

}  // namespace pascaline
