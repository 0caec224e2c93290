#pragma once

#include <string>
#include <vector>

namespace pascaline {

/// Names of the searchers, the default one first.
[[nodiscard]] std::vector<std::string> searcher_list();

/// The searchers with what each does, for the help of `--searcher`.
[[nodiscard]] std::string searchers_help();

}  // namespace pascaline
