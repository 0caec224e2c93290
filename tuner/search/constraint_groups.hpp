#pragma once

#include <vector>

#include "core/space/space.hpp"
#include "core/util/stop_check.hpp"
#include "tuner/search/tuple_list.hpp"

namespace pascaline {

/// A bound space cut into parameters that constraints tie together: configurations are the product of the groups'
/// tuples. Chains of parameters as in Rasch et al., "Efficient Auto-Tuning of Parallel Programs with Interdependent
/// Tuning Parameters via Auto-Tuning Framework (ATF)", ACM TACO 2021, without the tree.
struct ConstraintGroups {
  std::vector<TupleList> groups;
  /// Whether every combination of tuples is valid. If not, some group was too large to be listed whole: the parameters
  /// left over stand in groups of their own, and combinations are to be checked.
  bool exact = true;
};

/// Lists at most `most_tuples` tuples a group; of a larger group, the largest part that can be listed. A group without
/// tuples means that nothing is valid. Throws what `check` throws.
[[nodiscard]] ConstraintGroups constraint_groups(const BoundSpace& space, std::size_t most_tuples,
                                                 StopCheck check = {});

}  // namespace pascaline
