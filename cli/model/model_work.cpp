#include "cli/model/model_work.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "core/space/code_words.hpp"

namespace pascaline::cli {

PassWork work_of(const Space& space, Problem problem, const DeviceLimits& limits, std::int64_t cached) {
  if (problem.kernel == "attention_decode" || problem.kernel == "attention_decode_qkv") {
    for (auto& [name, value] : problem.dimensions) {
      value = name == "KEYS" ? std::min(value, cached) : value;
    }
  }
  const BoundSpace bound(space, std::move(problem), limits);
  return {bound.flops(), bound.bytes(), is_int8_work(space.arithmetic, bound.problem()) ? bound.flops() : 0};
}

PassWork observed_work(Executor& executor, const std::filesystem::path& spaces, const std::function<void()>& pass,
                       std::int64_t cached) {
  std::vector<Problem> problems;
  executor.observe([&](const ops::KernelProblem& problem) { problems.push_back(problem.named()); });
  try {
    pass();
  } catch (...) {
    executor.observe({});
    throw;
  }
  executor.observe({});
  std::map<std::string, Space> known;
  PassWork sum;
  for (const Problem& problem : problems) {
    auto found = known.find(problem.kernel);
    if (found == known.end()) {
      found = known.emplace(problem.kernel, Space::load(kernel_file(spaces, problem.kernel, ".json"))).first;
    }
    const PassWork work = work_of(found->second, problem, executor.device().info().limits, cached);
    sum.flops += work.flops;
    sum.bytes += work.bytes;
    sum.int8_ops += work.int8_ops;
  }
  return sum;
}

}  // namespace pascaline::cli
