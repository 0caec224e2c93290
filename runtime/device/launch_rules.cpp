#include "runtime/device/launch_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pascaline {

std::string no_kernel_text(std::string_view file, std::string_view function, const std::vector<std::string>& kernels) {
  return fmt::format("{}: error: it has no extern \"C\" __global__ function {}{}", file, function,
                     kernels.empty() ? std::string() : fmt::format("; its kernels are: {}", fmt::join(kernels, ", ")));
}

std::string no_c_linkage_text(std::string_view file, std::string_view function) {
  return fmt::format("{}: error: {} is not extern \"C\"; declare it extern \"C\" __global__, so that it keeps its name",
                     file, function);
}

std::string launch_bounds_text(std::string_view file, std::string_view function, std::int64_t bounds,
                               std::int64_t threads) {
  return fmt::format("{}: error: {} has __launch_bounds__ of {} threads, but its blocks have {}", file, function,
                     bounds, threads);
}

}  // namespace pascaline
