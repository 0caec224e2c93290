#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

// What every compiler says of a kernel that cannot be launched, in the same words.

/// The source has no kernel of that name; `kernels` are those it has, if that is known.
[[nodiscard]] std::string no_kernel_text(std::string_view file, std::string_view function,
                                         const std::vector<std::string>& kernels);

/// A compiler's message about the function's name as such: that it is overloaded, a template without all arguments,
/// no kernel, or has arguments that the source does not know.
[[nodiscard]] std::string wrong_name_text(std::string_view file, std::string_view function, bool is_template,
                                          std::string_view message);

/// Its __launch_bounds__ allow fewer threads than a block has.
[[nodiscard]] std::string launch_bounds_text(std::string_view file, std::string_view function, std::int64_t bounds,
                                             std::int64_t threads);

}  // namespace pascaline
