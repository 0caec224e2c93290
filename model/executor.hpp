#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/util/stop_check.hpp"
#include "model/host_copies.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/operation.hpp"

namespace pascaline {

/// Called with what an operation asks of its kernel.
using OperationObserver = std::function<void(const ops::KernelProblem& problem)>;

/// Runs a model's operations on a device, each launch chosen by a dispatcher; or on the processor. An operation whose
/// kernel cannot be built or launched falls back to the processor with one warning, and stays there: its operands are
/// brought there and back, and everything before it is waited for. One thread at a time.
class Executor {
 public:
  /// On the dispatcher's device. Both must outlive it. `warnings` may be null.
  explicit Executor(Dispatcher& dispatcher, std::FILE* warnings = stderr);
  /// On the processor, with the memory of the emulated device, or with `memory` over it, which must outlive it.
  explicit Executor(Device& host, DeviceMemory* memory = nullptr);
  /// Only tells the observer of operations, which neither device nor processor then runs. `memory` may have nothing
  /// behind it. Both must outlive it.
  struct ObserveOnly {};
  Executor(ObserveOnly /*mode*/, Device& device, DeviceMemory& memory);

  [[nodiscard]] Device& device() const noexcept { return *device_; }
  /// The dispatcher's.
  [[nodiscard]] DeviceMemory& memory() const noexcept { return *memory_; }
  /// Null on the processor, and where operations are only observed.
  [[nodiscard]] Dispatcher* dispatcher() const noexcept { return dispatcher_; }
  [[nodiscard]] bool observes_only() const noexcept { return observes_only_; }
  [[nodiscard]] bool on_processor() const noexcept { return dispatcher_ == nullptr && !observes_only_; }
  /// Whether any operation so far fell back; whether the one of that name did.
  [[nodiscard]] bool fell_back() const noexcept { return !fallen_back_.empty(); }
  [[nodiscard]] bool fell_back(std::string_view operation) const noexcept;
  /// How many operations have.
  [[nodiscard]] std::size_t fallbacks() const noexcept { return fallen_back_.size(); }
  /// Operations that the processor has computed so far. What runs between two equal numbers was launched on the device
  /// as a whole, and can be recorded.
  [[nodiscard]] std::uint64_t computed() const noexcept { return computed_; }
  /// Operations that were launched, or recorded to be, on the device so far.
  [[nodiscard]] std::uint64_t launched() const noexcept { return launched_; }

  /// From now on `observer` is told of every operation before it runs, as a problem of its kernel, wherever it runs; an
  /// empty one ends that. What a graph repeats is not told again.
  void observe(OperationObserver observer) { observer_ = std::move(observer); }
  /// From now on the observer of `other`, which must outlive it, is told instead.
  void report_to(const Executor& other) { reports_to_ = &other; }
  /// An operation that was not run, and the problem of its kernel.
  struct UnrunLaunch {
    const char* operation;
    ops::KernelProblem problem;
  };
  /// What `work`, which runs operations, would launch: nothing of it is launched, computed or told to the observer.
  /// Throws what the checks of the operations do.
  template <typename Work>
  [[nodiscard]] std::vector<UnrunLaunch> launches_of(const Work& work) {
    std::vector<UnrunLaunch> launches;
    planned_ = &launches;
    try {
      work();
    } catch (...) {
      planned_ = nullptr;
      throw;
    }
    planned_ = nullptr;
    return launches;
  }
  /// A line on the stream of warnings, if there is one.
  void warn(const std::string& text) const;
  /// The same, unless a line about that was told before.
  void warn_once(std::string_view about, const std::string& text);

  /// Runs the operation; on a device it does not wait. Throws Error for arguments that do not fit, want of memory, a
  /// device that is lost, and while the device records also where the operation would have to fall back, or has.
  template <ops::Operation Op>
  void run(const Op& op) {
    if (!ops::is_needed(op)) {
      return;
    }
    if (planned_ != nullptr) [[unlikely]] {
      planned_->push_back({Op::kName, op.problem()});
      return;
    }
    if (const OperationObserver& observer = this->observer()) [[unlikely]] {
      if constexpr (requires { op.observed(); }) {
        observer(op.observed());
      } else {
        observer(op.problem());
      }
    }
    if (dispatcher_ == nullptr) {
      if (observes_only_) {
        return;
      }
      op.compute();
      ++computed_;
      return;
    }
    std::string reason;
    bool lacks_code = false;
    if (!fell_back(Op::kName)) {
      try {
        ops::launch(*dispatcher_, op);
        ++launched_;
        return;
      } catch (const StoppedError&) {
        throw;
      } catch (const Error& error) {
        require_replaceable(error);
        reason = error.what();
        lacks_code = dynamic_cast<const MissingCodeError*>(&error) != nullptr;
      }
    }
    compute_on_copies(op);
    if (!reason.empty()) {
      fall_back(Op::kName, reason, lacks_code);
    }
  }

 private:
  [[nodiscard]] const OperationObserver& observer() const noexcept {
    return reports_to_ != nullptr ? reports_to_->observer_ : observer_;
  }
  void require_replaceable(const Error& error) const;
  void wait_for_device(const char* operation) const;
  void fall_back(const char* operation, const std::string& reason, bool lacks_code);

  template <ops::Operation Op>
  void compute_on_copies(const Op& op) {
    wait_for_device(Op::kName);
    Op there = op;
    HostCopies copies(device_->memory());
    Op::operands(there, copies);
    there.compute();
    copies.bring_back();
    ++computed_;
  }

  Device* device_;
  DeviceMemory* memory_;
  Dispatcher* dispatcher_ = nullptr;
  bool observes_only_ = false;
  std::FILE* warnings_ = nullptr;
  std::vector<std::string_view> fallen_back_;
  bool told_of_lacking_ = false;  // code, by a bundle
  std::vector<std::string> told_of_;
  std::uint64_t computed_ = 0;
  std::uint64_t launched_ = 0;
  OperationObserver observer_;
  const Executor* reports_to_ = nullptr;
  std::vector<UnrunLaunch>* planned_ = nullptr;  // where operations are only noted
};

}  // namespace pascaline
