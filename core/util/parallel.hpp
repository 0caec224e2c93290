#pragma once

#include <cstddef>
#include <functional>

namespace pascaline {

/// Calls `body(begin, end)` on slices of [0, count) from all processors and waits; a slice is at least `grain` long
/// unless it is the last. The first exception thrown is rethrown.
void parallel_for(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace pascaline
