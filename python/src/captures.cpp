#include "python/src/captures.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "python/src/errors.hpp"

namespace pascaline::python {
namespace {

using Counts = std::vector<std::pair<Problem, std::int64_t>>;

struct Captures {
  std::mutex mutex;
  std::atomic<int> open{0};
  std::map<int, Counts> by_number;
  int last = 0;
};

// Never destroyed: other threads may still count.
Captures& all_captures() {
  static Captures& all = *new Captures;
  return all;
}

}  // namespace

int begin_capture() {
  Captures& all = all_captures();
  const std::lock_guard lock(all.mutex);
  all.by_number[++all.last];
  ++all.open;
  return all.last;
}

std::string end_capture(int capture) {
  Captures& all = all_captures();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_number.find(capture);
  if (found == all.by_number.end()) {
    throw ArgumentError("there is no such capture, or it has ended");
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [problem, count] : found->second) {
    nlohmann::ordered_json dimensions = nlohmann::ordered_json::object();
    for (const auto& [name, value] : problem.dimensions) {
      dimensions[name] = value;
    }
    nlohmann::ordered_json types = nlohmann::ordered_json::object();
    for (const auto& [name, type] : problem.types) {
      types[name] = name_of(type);
    }
    list.push_back({{"kernel", problem.kernel}, {"dimensions", dimensions}, {"types", types}, {"count", count}});
  }
  all.by_number.erase(found);
  --all.open;
  return list.dump();
}

void count_call(const ops::KernelProblem& problem) {
  const Problem named = problem.named();
  Captures& all = all_captures();
  const std::lock_guard lock(all.mutex);
  for (auto& [number, counts] : all.by_number) {
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&named](const auto& counted) { return counted.first == named; });
    if (known == counts.end()) {
      counts.emplace_back(named, 1);
    } else {
      ++known->second;
    }
  }
}

bool captures() noexcept { return all_captures().open.load(std::memory_order_relaxed) > 0; }

}  // namespace pascaline::python
