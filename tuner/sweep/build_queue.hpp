#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "core/config.hpp"
#include "runtime/device/compile.hpp"
#include "tuner/compile/builder.hpp"

namespace pascaline {

struct SweepTask;

/// What is built for the tasks of a plan, and for what.
class BuildQueue {
 public:
  enum class Purpose : std::uint8_t { search, reference, finals };
  struct Job {
    SweepTask* task = nullptr;
    Purpose purpose = Purpose::search;
    Config config{};
    int tries = 0;
  };
  struct Built {
    Job job{};
    Compiled compiled{};
  };

  /// `target` must outlive it.
  BuildQueue(std::unique_ptr<Builder> builder, const CompileTarget& target)
      : builder_(std::move(builder)), target_(target) {}

  /// Has a task's configuration, or its reference in that configuration, built. References and finalists come first,
  /// then the searches of tasks that a device has, then others, each in the order of submission.
  void submit(Job job);
  /// Returns a finished build; nothing if there is none now. If the compiler itself crashed, a reference or a finalist
  /// is built once more: without its reference a problem is lost, and a finalist has compiled before.
  [[nodiscard]] std::optional<Built> take();

  [[nodiscard]] const Builder& builder() const noexcept { return *builder_; }
  /// Whether the workers have enough to do.
  [[nodiscard]] bool full() const noexcept { return pending() >= 2 * builder_->workers(); }
  /// Submitted and not yet taken.
  [[nodiscard]] std::size_t pending() const noexcept { return waiting_.size() + builder_->pending(); }
  /// All compilers together, so far.
  [[nodiscard]] double compile_ms() const noexcept { return compile_ms_; }
  /// Seconds of a worker for one configuration: the mean so far, or a guess.
  [[nodiscard]] double mean_build_s() const noexcept;

 private:
  struct Waiting {
    std::uint64_t id = 0;
    CompileRequest request{};
  };

  void feed();

  std::unique_ptr<Builder> builder_;
  const CompileTarget& target_;
  std::map<std::uint64_t, Job> jobs_{};
  std::deque<Waiting> waiting_{};   ///< for a worker
  std::deque<Compiled> at_once_{};  ///< needed no compiler, and wait to be taken
  std::uint64_t next_id_ = 1;
  double compile_ms_ = 0;
  int compiled_ = 0;
};

}  // namespace pascaline
