#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pascaline::cli {

/// The batch script that `fleet submit --slurm` fills in, where no other is given.
[[nodiscard]] std::string_view batch_template();

/// A path as a batch script has it, for Slurm's own lines and for the shell alike. Throws Error for one that Slurm
/// cannot be told: with a line break, or a backslash.
[[nodiscard]] std::string batch_word(const std::string& path);

/// The template with each {{name}} replaced. Throws Error naming the placeholder if one of `required` is missing or one
/// is in the template that there is not; `name` stands for the template in messages.
[[nodiscard]] std::string filled_template(std::string_view text, const std::string& name,
                                          const std::vector<std::pair<std::string, std::string>>& values,
                                          const std::vector<std::string>& required);

}  // namespace pascaline::cli
