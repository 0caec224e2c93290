#include "core/util/worker_pool.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/util/processor_quota.hpp"

namespace pascaline {
namespace {

// Parts of the state.
constexpr std::uint64_t kJoined = 0xFFFF;
constexpr std::uint64_t kOpen = 0x10000;
constexpr unsigned kGenerationShift = 17;

// Some ten microseconds: more than lies between two operations of a decode step.
constexpr int kSpins = 1000;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Those that this process may use, which the standard library does not ask.
int usable_processors() noexcept {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const bool known = ::sched_getaffinity(0, sizeof usable, &usable) == 0;
  const int count = known ? CPU_COUNT(&usable) : static_cast<int>(std::thread::hardware_concurrency());
  return threads_within(count, processor_quota());
}

void check_threads(int threads) {
  if (threads < 1 || threads > WorkerPool::kMaxThreads) {
    throw Error(
        fmt::format("cannot compute with {} threads; it must be from 1 to {}", threads, WorkerPool::kMaxThreads));
  }
}

}  // namespace

int threads_within(int processors, std::optional<double> quota) noexcept {
  const double most = std::min<double>(processors, WorkerPool::kMaxThreads);
  return std::max(1, static_cast<int>(quota ? std::min(most, std::ceil(*quota)) : most));
}

WorkerPool::WorkerPool(int threads) {
  check_threads(threads);
  start(threads);
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::start(int threads) {
  try {
    for (int i = 1; i < threads; ++i) {
      workers_.emplace_back([this] { serve(); });
    }
  } catch (const std::exception& error) {
    const std::size_t started = workers_.size() + 1;
    stop();
    throw Error(fmt::format("cannot start {} computing threads, {} is the maximum at present ({}); ask for fewer",
                            threads, started, error.what()));
  }
  threads_ = threads;
}

// Only while nothing runs.
void WorkerPool::stop() noexcept {
  stopping_ = true;
  state_ = ((state_.load() >> kGenerationShift) + 1) << kGenerationShift;
  state_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
  workers_.clear();
  stopping_ = false;
  threads_ = 1;
}

void WorkerPool::resize(int threads) {
  check_threads(threads);
  while (taken_.test_and_set(std::memory_order_acquire)) {
    taken_.wait(true);
  }
  struct Release {
    std::atomic_flag& taken;
    ~Release() {
      taken.clear(std::memory_order_release);
      taken.notify_all();
    }
  } const release{taken_};
  stop();
  start(threads);
}

void WorkerPool::run_job(Job& job) {
  if (job.count <= 0) {
    return;
  }
  if (job.count <= job.grain || threads() == 1 || taken_.test_and_set(std::memory_order_acquire)) {
    job.call(job.body, 0, job.count);
    return;
  }
  offer(job);
  taken_.clear(std::memory_order_release);
  taken_.notify_one();
  if (job.failure) {
    std::rethrow_exception(job.failure);
  }
}

// A worker that comes late finds the job closed, so nobody waits for one that the system has not yet woken.
void WorkerPool::offer(Job& job) noexcept {
  job_ = &job;
  const std::uint64_t generation = (state_.load(std::memory_order_relaxed) >> kGenerationShift) + 1;
  state_.store(generation << kGenerationShift | kOpen, std::memory_order_release);
  state_.notify_all();
  work(job);
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; (state_.load(std::memory_order_acquire) & kJoined) != 0; ++spins) {
    if (spins < kSpins) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
}

void WorkerPool::work(Job& job) noexcept {
  for (std::int64_t begin = job.next.fetch_add(job.grain); begin < job.count; begin = job.next.fetch_add(job.grain)) {
    try {
      job.call(job.body, begin, std::min(job.count, begin + job.grain));
    } catch (...) {
      const std::scoped_lock lock(job.failure_mutex);
      job.failure = job.failure ? job.failure : std::current_exception();
      job.next = job.count;
    }
  }
}

// The state as soon as it is of another job than `generation`.
std::uint64_t WorkerPool::wait_for_other(std::uint64_t generation) const noexcept {
  for (int spins = 0;; ++spins) {
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    if (state >> kGenerationShift != generation) {
      return state;
    }
    if (spins < kSpins) {
      pause_briefly();
    } else {
      state_.wait(state, std::memory_order_acquire);
    }
  }
}

bool WorkerPool::join(std::uint64_t generation) noexcept {
  std::uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & kOpen) != 0 && state >> kGenerationShift == generation) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

void WorkerPool::serve() {
  std::uint64_t generation = 0;
  while (!stopping_) {
    generation = wait_for_other(generation) >> kGenerationShift;
    if (join(generation)) {
      work(*job_);
      state_.fetch_sub(1, std::memory_order_release);
    }
  }
}

WorkerPool& worker_pool() {
  static WorkerPool pool(usable_processors());
  return pool;
}

}  // namespace pascaline
