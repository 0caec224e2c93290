#pragma once

#include <optional>
#include <string>

#include "db/exchange/store_spaces.hpp"

namespace pascaline {

/// What a database knows to be best for each device, kernel and problem, as JSON (docs/exchange.md): the newest winner
/// or, where none is decided, the fastest `ok` search trial made with the newest trial's toolkit and source, with
/// `"decided": false`, as a winner from the search has it, too; nothing if it knows none of what is asked for.
/// `filter.with_samples` means nothing here. Throws StoreError.
[[nodiscard]] std::optional<std::string> wisdom_json(const Store& store, const SpaceFilter& filter = {});

}  // namespace pascaline
