#pragma once

#include <optional>

#include "core/space/space.hpp"
#include "tuner/sweep/transfer_priors.hpp"

namespace pascaline {

// What another kernel's search measures is a prior where the spaces are much the same: parameters of the same name mean
// the same in all kernels of a family (attention_decode and attention_decode_qkv, rmsnorm and layernorm).

/// How far trials of another kernel's problem lie from a problem's own, in octaves: the Euclidean length over the
/// dimensions that both have, kOctavesOfOtherType for each type variable that both have and that differs, and
/// kOctavesOfOtherKernel. Nothing if less than kMinShared of the parameters of either space have the name of one of
/// the other's, if they have no dimension in common or differ in one that is fixed, or if the kernel is the same.
[[nodiscard]] std::optional<double> kernel_octaves(const Space& space, const Problem& problem, const Space& other_space,
                                                   const Problem& other);
inline constexpr double kOctavesOfOtherKernel = 2;
inline constexpr double kMinShared = 0.75;

/// Trials of that problem as if they were of the space: parameters by name and value, missing ones at the default,
/// those that are not valid left out, of several that become the same one the fastest. Nothing if there is no
/// `kernel_octaves` or fewer than kMinRelated are left.
[[nodiscard]] std::optional<RelatedProblem> of_other_kernel(const BoundSpace& space, const Space& other_space,
                                                            const RelatedProblem& other);

}  // namespace pascaline
