#include "core/util/sweep_clock.hpp"

#include <algorithm>
#include <cstdint>

namespace pascaline {

void MachineClock::wait_until(TimePoint time, std::vector<pollfd> wakeups) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - now());
  ::poll(wakeups.data(), wakeups.size(), static_cast<int>(std::max<std::int64_t>(0, left.count())));
}

}  // namespace pascaline
