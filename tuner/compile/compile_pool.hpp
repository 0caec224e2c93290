#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/device/cubin_cache.hpp"
#include "tuner/compile/builder.hpp"
#include "tuner/ipc/frames.hpp"
#include "tuner/ipc/worker_process.hpp"

namespace pascaline {

/// How the compile pool is set up.
struct CompilePoolOptions {
  std::size_t workers = 1;
  std::filesystem::path program;  ///< the pascaline executable; empty: this process's own
  std::filesystem::path cache_folder;
  std::string architecture;  ///< as for Toolchain::find
  std::string nvrtc;         ///< path of the library for requests that name no compiler; empty for the emulator
  std::chrono::milliseconds deadline{120'000};  ///< a variant; a worker past it is killed
  std::uint64_t memory_bytes = 0;               ///< address space a worker may use; 0: no cap
};

/// Worker processes that compile ahead of measurement, into the cache they share. A worker that crashes or hangs
/// costs its own variant only and is replaced. Processes, because threads of one compiler process gain at most 2x.
class CompilePool final : public Builder {
 public:
  explicit CompilePool(CompilePoolOptions options);

  void submit(std::uint64_t id, CompileRequest request) override;
  [[nodiscard]] std::optional<Compiled> take() override { return wait(std::chrono::milliseconds(0)); }
  /// The next finished compilation in any order; waits up to `timeout` (0: not at all), nothing if none finished.
  [[nodiscard]] std::optional<Compiled> wait(std::chrono::milliseconds timeout);
  [[nodiscard]] std::size_t pending() const noexcept override;
  [[nodiscard]] std::size_t workers() const noexcept override { return workers_.size(); }
  [[nodiscard]] std::size_t busy() const noexcept override;
  [[nodiscard]] std::vector<pollfd> wakeups() const override;
  /// Process ids of the live workers.
  [[nodiscard]] std::vector<int> worker_processes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::uint64_t id = 0;
    CompileRequest request;
    bool again = false;  ///< its result was removed from the cache before it was read
  };
  struct Worker {
    WorkerProcess process;
    FrameReader reader;
    std::string output;                ///< not yet in its pipe
    std::vector<std::string> sources;  ///< hashes of the sources it was sent
    std::optional<Job> job;
    Clock::time_point deadline;
  };

  void start(Worker& worker) const;
  void feed();
  [[nodiscard]] bool try_start(Worker& worker);
  bool send(Worker& worker) const;
  void read_reply(Worker& worker);
  void take_reply(Worker& worker, const nlohmann::json& reply);
  bool read_replies(std::chrono::milliseconds timeout);
  void lose(Worker& worker, TrialStatus status, std::string reason);
  [[nodiscard]] std::string crash_reason(const std::string& ending) const;
  void kill_overdue();

  CompilePoolOptions options_;
  CubinCache cache_;
  std::vector<Worker> workers_;
  static constexpr int kMaxFailedStarts = 30;
  int failed_starts_ = 0;
  Clock::time_point start_at_{};  ///< no worker is started before
  std::deque<Job> queue_;
  std::deque<Compiled> finished_;
};

/// The loop of a worker process: frames on stdin and stdout (`compile_messages.hpp`) until stdin ends. Returns the
/// process's exit code. `memory_bytes`: see CompilePoolOptions.
int run_compile_worker(const std::filesystem::path& cache_folder, const std::string& architecture,
                       const std::string& nvrtc, std::uint64_t memory_bytes);

}  // namespace pascaline
