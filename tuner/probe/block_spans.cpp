#include "tuner/probe/block_spans.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "core/error.hpp"

namespace pascaline {

LaunchClocks launch_clocks(std::span<const std::int64_t> spans, std::span<const std::int32_t> places) {
  struct Work {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double blocks = 0;
  };
  if (places.empty() || spans.size() != 2 * places.size()) {
    throw Error("a kernel of the probe told no clocks of its blocks");
  }
  std::map<std::int32_t, Work> by_sm;
  for (std::size_t block = 0; block < places.size(); ++block) {
    const std::int64_t begin = spans[2 * block];
    const std::int64_t end = spans[2 * block + 1];
    if (end <= begin || places[block] < 0) {
      throw Error("a block of a kernel of the probe told clocks that make no sense; the device may be faulty");
    }
    const auto [found, is_new] = by_sm.try_emplace(places[block], Work{begin, end, 0});
    found->second.begin = std::min(found->second.begin, begin);
    found->second.end = std::max(found->second.end, end);
    found->second.blocks += 1;
  }
  LaunchClocks clocks;
  std::vector<double> rates;
  for (const auto& [sm, work] : by_sm) {
    const auto length = static_cast<double>(work.end - work.begin);
    clocks.longest = std::max(clocks.longest, length);
    rates.push_back(work.blocks / length);
  }
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  clocks.blocks_per_clock = *middle;
  return clocks;
}

}  // namespace pascaline
