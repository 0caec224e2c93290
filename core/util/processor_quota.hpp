#pragma once

#include <filesystem>
#include <optional>

namespace pascaline {

/// How many processors' time Linux allows this process (the control group's limit on processor time, of version 1 or 2;
/// the least of those of the groups around it), e.g. 1.5; nothing where there is no limit. More threads than that
/// stand still for most of each tenth of a second once its time is used up. `root` is where /proc and /sys are.
[[nodiscard]] std::optional<double> processor_quota(const std::filesystem::path& root = "/");

}  // namespace pascaline
