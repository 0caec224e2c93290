#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

/// Fewest characters to insert, delete or replace, and neighbours to swap, that turn one text into the other ("optimal
/// string alignment"). Letters of ASCII count as equal in either case.
[[nodiscard]] std::size_t edit_distance(std::string_view from, std::string_view to);

/// The one of `known` that `given` was probably meant to be: the nearest of those that differ in a third of the
/// characters at most, the first of several; else the only one that begins with `given`, of three characters or more;
/// else an empty text.
[[nodiscard]] std::string closest_name(std::string_view given, const std::vector<std::string>& known);

/// " (did you mean 'NAME'?)" with the closest name, to be put after the name that is not known; empty without one.
[[nodiscard]] std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace pascaline
