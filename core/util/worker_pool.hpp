#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace pascaline {

/// Threads that wait for work between operations, so that handing out an operation costs far less than starting them:
/// a decode step has some 200. A thread that has nothing to do looks for work for some microseconds, then sleeps.
class WorkerPool {
 public:
  /// OpenBLAS has room for the buffers of as many callers in every build of it.
  static constexpr int kMaxThreads = 64;

  /// `threads` counts the caller of `run`; throws Error unless it is from 1 to kMaxThreads, or if the system has no
  /// more.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] int threads() const noexcept { return threads_.load(std::memory_order_relaxed); }
  /// Waits for what runs and goes on with that many; not from within `run`. Throws as the constructor: with as many as
  /// before if the number is wrong, with the caller alone if the system has no more.
  void resize(int threads);

  /// Calls `body(begin, end)` on slices of [0, count), each `grain` long but for the last, and waits for all. The
  /// caller works too; where it is alone (one slice, one thread, the pool is taken by another caller or this is a call
  /// within a call) it does the whole range at once. The first exception thrown is rethrown. Allocates nothing.
  template <std::integral Count, std::integral Grain, typename Body>
  void run(Count count, Grain grain, const Body& body) {
    Job job;
    job.body = &body;
    job.call = [](const void* of, std::int64_t begin, std::int64_t end) {
      (*static_cast<const Body*>(of))(begin, end);
    };
    job.count = static_cast<std::int64_t>(count);
    job.grain = grain < 1 ? 1 : static_cast<std::int64_t>(grain);
    run_job(job);
  }

 private:
  struct Job {
    const void* body = nullptr;
    void (*call)(const void*, std::int64_t, std::int64_t) = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
    std::atomic<std::int64_t> next{0};  ///< first element that nobody has taken
    std::mutex failure_mutex;
    std::exception_ptr failure;
  };

  static void work(Job& job) noexcept;
  void run_job(Job& job);
  void offer(Job& job) noexcept;
  void serve();
  [[nodiscard]] std::uint64_t wait_for_other(std::uint64_t generation) const noexcept;
  [[nodiscard]] bool join(std::uint64_t generation) noexcept;
  void start(int threads);
  void stop() noexcept;

  std::atomic_flag taken_;  ///< a job is being run, or the threads are being changed
  /// Number of the job, whether it is open to be joined, and how many threads have joined it.
  std::atomic<std::uint64_t> state_{0};
  Job* job_ = nullptr;  ///< valid while the job is open or somebody has joined it
  std::atomic<bool> stopping_{false};
  std::atomic<int> threads_{1};
  std::vector<std::thread> workers_;
};

/// Threads for so many processors of which a quota allows the time of so many: no more than either, and kMaxThreads.
[[nodiscard]] int threads_within(int processors, std::optional<double> quota) noexcept;

/// The pool of this process's operations on the processor: a thread for each processor that it may use, as far as a
/// quota allows as much time, until changed.
[[nodiscard]] WorkerPool& worker_pool();

}  // namespace pascaline
