#include "tuner/sweep/build_queue.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "tuner/compile/compile_variants.hpp"
#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {
namespace {

// Builds that the workers have beside the present ones, as it takes a moment to give them the next.
constexpr std::size_t kBuildsAhead = 2;
constexpr int kMaxRetries = 3;
constexpr double kBuildSeconds = 0.5;  // of what was not measured yet

}  // namespace

void BuildQueue::submit(Job job) {
  const Tunable& tunable = job.task->tunable;
  std::variant<CompileRequest, Binary> build = tunable.build(job.task->rows.own_bound, job.config, target_);
  const std::uint64_t id = next_id_++;
  if (CompileRequest* request = std::get_if<CompileRequest>(&build)) {
    const bool is_reference = job.purpose == Purpose::reference;
    waiting_.push_back(
        {id, is_reference ? reference_request_of(*tunable.own_space, std::move(*request)) : std::move(*request)});
  } else {
    Compiled& compiled = at_once_.emplace_back();
    compiled.id = id;
    compiled.result.ok = true;
    compiled.result.binary = std::move(std::get<Binary>(build));
  }
  jobs_.emplace(id, std::move(job));
  feed();
}

// A task may have been taken since its builds were submitted.
void BuildQueue::feed() {
  const auto rank = [&](const Waiting& waiting) {
    const Job& job = jobs_.at(waiting.id);
    return job.purpose != Purpose::search ? 0 : job.task->state.taken() ? 1 : 2;
  };
  while (!waiting_.empty() && builder_->pending() < builder_->workers() + kBuildsAhead) {
    const auto next = std::ranges::min_element(waiting_, {}, rank);
    builder_->submit(next->id, std::move(next->request));
    waiting_.erase(next);
  }
}

std::optional<BuildQueue::Built> BuildQueue::take() {
  for (;;) {
    std::optional<Compiled> compiled;
    if (at_once_.empty()) {
      compiled = builder_->take();
      feed();
    } else {
      compiled = std::move(at_once_.front());
      at_once_.pop_front();
    }
    if (!compiled) {
      return std::nullopt;
    }
    const auto found = jobs_.find(compiled->id);
    Job job = std::move(found->second);
    jobs_.erase(found);
    compile_ms_ += compiled->result.binary.compile_ms;
    compiled_ += compiled->result.binary.compile_ms > 0 ? 1 : 0;
    const bool again = job.purpose != Purpose::search && compiled->status == TrialStatus::crashed;
    if (!again || job.tries >= kMaxRetries) {
      return Built{std::move(job), std::move(*compiled)};
    }
    ++job.tries;
    submit(std::move(job));
  }
}

double BuildQueue::mean_build_s() const noexcept {
  return compiled_ > 0 ? compile_ms_ / 1000 / compiled_ : kBuildSeconds;
}

}  // namespace pascaline
