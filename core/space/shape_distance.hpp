#pragma once

#include <optional>

#include "core/space/space.hpp"

namespace pascaline {

/// How far two problems of the space's kernel lie apart, in octaves: the Euclidean length over their dimensions of the
/// differences of the logarithms (base 2), where 0 counts as half of 1. Nothing if they differ in a fixed dimension or
/// an element type, or are not of the same kernel and dimensions.
///
/// The dispatcher takes the nearest winner by it, a search the nearest measured problems. It is Euclidean since a shape
/// that is a little off in two dimensions is closer in kind (waves of blocks, tiles that are cut) than one that is far
/// off in one: with the sum of the differences both would be equally far.
[[nodiscard]] std::optional<double> shape_distance(const Space& space, const Problem& a, const Problem& b);

}  // namespace pascaline
