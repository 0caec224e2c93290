#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/signature.hpp"

namespace pascaline {

/// What is wrong with the order of the arguments where the parameters that a source gives `function` have their names,
/// but in another order; nothing where a name is only on one side, or the source cannot be understood.
[[nodiscard]] std::optional<std::string> parameter_order_fault(std::string_view source, const std::string& function,
                                                               const std::vector<LaunchedArgument>& arguments);

}  // namespace pascaline
