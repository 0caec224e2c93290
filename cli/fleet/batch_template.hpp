#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pascaline::cli {

/// The batch script that `fleet submit --slurm` fills in, where no other is given.
[[nodiscard]] std::string_view batch_template();

/// The template with each {{name}} replaced. Throws Error naming the placeholder if one of `required` is missing or one
/// is in the template that there is not; `name` stands for the template in messages.
[[nodiscard]] std::string filled_template(std::string_view text, const std::string& name,
                                          const std::vector<std::pair<std::string, std::string>>& values,
                                          const std::vector<std::string>& required);

}  // namespace pascaline::cli
