#include "runtime/device/launch_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/space/code_words.hpp"

namespace pascaline {

std::string no_kernel_text(std::string_view file, std::string_view function, const std::vector<std::string>& kernels) {
  return fmt::format("{}: error: it has no __global__ function {}{}", file, function,
                     kernels.empty() ? std::string() : fmt::format("; its kernels are: {}", fmt::join(kernels, ", ")));
}

std::string wrong_name_text(std::string_view file, std::string_view function, bool is_template,
                            std::string_view message) {
  const auto says = [&](std::string_view words) { return message.find(words) != std::string_view::npos; };
  if (is_template && (says("overloaded function") || says("function template") || says("no matches converting"))) {
    const std::string_view name = function.substr(0, function.find('<'));
    return fmt::format("{}: error: {} is a template; name it with all its arguments, such as {}<…>", file, function,
                       name);
  }
  if (says("overloaded function")) {
    return fmt::format("{}: error: {} is overloaded; give each kernel a name of its own", file, function);
  }
  const auto parts = scopes_of(function.substr(0, function.find('<')));
  const bool is_its_own = std::ranges::any_of(parts, [&](std::string_view part) {
    return says(fmt::format("\"{}\"", part)) || says(fmt::format("'{}'", part)) || says(fmt::format("::{}'", part));
  });
  const bool is_unknown = says("undefined") || says("not declared") || says("not been declared") ||
                          says("undeclared") || says("no member") || says("not a member");
  if (says("non-__global__") || says("must form address") || says("must be a class or namespace") ||
      (is_unknown && is_its_own)) {
    return no_kernel_text(file, function, {});
  }
  constexpr std::string_view kError = "error: ";
  const std::size_t at = message.find(kError);
  return fmt::format("{}: error: the name {}: {}", file, function,
                     at == std::string_view::npos ? message : message.substr(at + kError.size()));
}

std::string launch_bounds_text(std::string_view file, std::string_view function, std::int64_t bounds,
                               std::int64_t threads) {
  return fmt::format("{}: error: {} has __launch_bounds__ of {} threads, but its blocks have {}", file, function,
                     bounds, threads);
}

}  // namespace pascaline
