#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "db/store.hpp"
#include "tuner/sweep/transfer_priors.hpp"

namespace pascaline {

// What the same device measured of a kernel with other element types is a prior of a search, too: less than that of the
// types themselves, and only while there are too few trials of the shape itself.

/// Problems of other element types that a search begins with, and winners of theirs that it tries first, at most.
inline constexpr std::size_t kMaxOtherTypes = 2;

/// How far trials of another problem of the kernel lie from a problem's own, in octaves: `shape_distance` of the
/// shapes, and kOctavesOfOtherType more for each type variable that differs. Nothing where the shapes tell nothing
/// about each other. Found with estimates from machine code (docs/results.md).
[[nodiscard]] std::optional<double> transfer_octaves(const Space& space, const Problem& problem, const Problem& other);
inline constexpr double kOctavesOfOtherType = 2;

/// Those of the related problems that have other element types, enough trials and tell something about the problem,
/// with only the configurations that are valid for it: the nearest first, kMaxOtherTypes at most.
[[nodiscard]] std::vector<RelatedProblem> nearest_of_other_types(const BoundSpace& space,
                                                                 const std::vector<RelatedProblem>& related);

/// Winners of the same shape with other element types on that device, of each such problem the one decided last: those
/// of the nearest problems first. `winners` as Store::winners gives them, which must outlive the result.
[[nodiscard]] std::vector<const Winner*> winners_of_other_types(const Space& space, const Problem& problem,
                                                                const DeviceRow& device,
                                                                const std::vector<Winner>& winners);

}  // namespace pascaline
