#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dispatch/kernel_registry.hpp"
#include "runtime/dispatch/kernel_supply.hpp"
#include "runtime/dispatch/plan.hpp"
#include "runtime/dispatch/prepared_table.hpp"
#include "runtime/thermal/thermal_policy.hpp"
#include "runtime/thermal/thermal_watcher.hpp"

namespace pascaline {

/// Called instead of a launch that it must time: with the problem and the time of this one launch.
using LaunchObserver = std::function<void(const Prepared& prepared, double time_us)>;

/// What a dispatcher did about its device's temperature so far.
struct ThermalReport {
  ThermalSnapshot snapshot;                              ///< cool, without switches, where nothing is watched
  std::array<std::uint64_t, kThermalStates> launches{};  ///< by state, those of graphs among them
  std::size_t problems = 0;                              ///< prepared ones that are launched differently in some state
};

/// Answers for every problem with the best variant known for this device, compiled and ready to launch. It takes the
/// database or bundle as it is when constructed, or a database when `reload` is called.
///
/// `plan`, `kernel`, `find`, `prepare`, `reload` and `misses` may be called from several threads. `prepare` and
/// `launch` use the device, which takes one thread at a time: while one thread launches, no other may launch or
/// prepare. A problem must be prepared before its launch is recorded (`Device::record`): preparing compiles, loads and
/// allocates. A `Device::reset` makes every Prepared useless: make a new dispatcher.
///
/// Where the database has winners by objectives that the thermal policy names, a prepared problem has a variant for
/// each thermal state, and from the first such problem on a thread watches the device's sensors: `launch` looks up the
/// state and starts that state's variant. Without such winners nothing is watched.
class Dispatcher {
 public:
  /// Arguments a kernel may have.
  static constexpr std::size_t kMaxArguments = 32;

  /// `device` must outlive it. Throws Error and its kinds for a missing toolchain, folder or database, and for a bundle
  /// that is damaged, or not for this device or these kernels; of such a bundle nothing is loaded. `memory` is what
  /// kernels' scratch and the buffers of those who use the dispatcher come from; it is the device's own if it is null,
  /// and must outlive it otherwise.
  Dispatcher(Device& device, const DispatcherOptions& options, DeviceMemory* memory = nullptr);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// How the problem would be run; touches neither compiler nor device. Throws Error if it does not fit the kernel
  /// or nothing can run it.
  [[nodiscard]] Plan plan(const Problem& problem) const;
  /// Lets `plan` answer for something that is tuned as a kernel is and is none; see KernelRegistry::add.
  void add_planned(KernelName name, const Space& space, const KernelSource& source) const {
    registry_.add(name, space, source);
  }
  [[nodiscard]] const std::filesystem::path& kernels_folder() const noexcept { return registry_.kernels_folder(); }
  /// The handle of a kernel, which is read when first asked for; takes no lock once it is.
  [[nodiscard]] KernelHandle kernel(KernelName name) const { return registry_.open(name); }
  [[nodiscard]] const Space& space(KernelHandle handle) const noexcept { return registry_.at(handle).space; }

  /// The prepared problem with these dimensions and types (in the space's order), or nullptr. The hot path: no lock,
  /// no allocation.
  [[nodiscard]] const Prepared* find(KernelHandle handle, std::span<const std::int64_t> dimensions,
                                     std::span<const ElementType> types) const noexcept {
    return table_.find(handle, dimensions, types);
  }
  /// Plans, compiles and loads the problem unless that is done; the result lives as long as the dispatcher. If the
  /// planned kernel cannot be built, the default and then the configuration closest to it are tried, with a warning
  /// on stderr. Throws Error with all reasons if none can, and at once, with nothing prepared, if the device lacks
  /// the memory now, is lost, or records and the problem is not prepared yet; it may be called again afterwards.
  const Prepared& prepare(const Problem& problem);
  /// Starts the problem's variant for the present thermal state on the buffers that are not scratch, in argument order;
  /// does not wait. Throws as `Device::launch`, and Error if the number of buffers is wrong.
  void launch(const Prepared& prepared, std::span<void* const> buffers);

  /// How warm the device is; `cool` where nothing is watched.
  [[nodiscard]] ThermalState thermal_state() const noexcept {
    return static_cast<ThermalState>(thermal_state_.load(std::memory_order_relaxed));
  }
  /// The first state in which everything prepared so far is launched as in this one: what is recorded for one of the
  /// two serves the other. For the thread that uses the device.
  [[nodiscard]] ThermalState launches_as(ThermalState state) const noexcept;
  /// Runs `work`, which records launches, with all of them as in that state and none of them counted. For the thread
  /// that uses the device.
  template <typename Work>
  void record_as(ThermalState state, const Work& work) {
    const HeldState held(*this, state);
    work();
  }
  /// A graph with so many launches was launched in that state.
  void count_launches(ThermalState state, std::uint64_t launches) noexcept {
    launches_[static_cast<std::size_t>(state)] += launches;
  }
  /// Whether sensors are read; see `thermal`.
  [[nodiscard]] bool watches() const noexcept { return watcher_ != nullptr && watcher_->watches(); }
  [[nodiscard]] const ThermalPolicy& thermal_policy() const noexcept { return thermal_.policy; }
  /// For the thread that uses the device.
  [[nodiscard]] ThermalReport thermal() const;
  /// What became of the state and of sensors since this was last asked for, in order; of a great many the latest. For
  /// the thread that uses the device.
  [[nodiscard]] std::vector<ThermalEvent> take_thermal_events() const {
    return watcher_ ? watcher_->take_events() : std::vector<ThermalEvent>{};
  }

  /// Reads a database again, or another one: problems are planned again when they are next asked for, and compiled if
  /// their configuration changed. What was prepared or recorded before stays usable as it is. The misses start over.
  /// Throws as the constructor does, and Error for a dispatcher on a bundle, and changes nothing then.
  void reload(const std::optional<std::filesystem::path>& database);

  /// Problems prepared without a winner of their own, in the order they came.
  [[nodiscard]] std::vector<Miss> misses() const;
  /// A line for each compiler that is missing and built faster winners than those that are used: what to tell a user.
  [[nodiscard]] std::vector<std::string> missing_compilers() const { return registry_.missing_compilers(); }
  /// Everything prepared since the last `reload`, in the order it came, for the thread that uses the device.
  [[nodiscard]] std::vector<const Prepared*> prepared() const;
  /// From now on every launch is timed by itself and waited for, and `observer` is told; an empty one ends that.
  /// Nothing can be recorded meanwhile.
  void observe(LaunchObserver observer) { observer_ = std::move(observer); }

  [[nodiscard]] Device& device() const noexcept { return *device_; }
  [[nodiscard]] DeviceMemory& memory() const noexcept { return *memory_; }
  [[nodiscard]] const CompileTarget& target() const noexcept { return supply_.target(); }
  /// What makes the code of problems that are not tuned, and where a winner's compiler is not here.
  [[nodiscard]] const ToolkitRow& toolkit() const noexcept { return supply_.toolkits().front(); }
  /// Everything that can make code here, that one first.
  [[nodiscard]] const std::vector<ToolkitRow>& toolkits() const noexcept { return supply_.toolkits(); }

 private:
  using StateCell = std::atomic<std::uint8_t>;
  using LaunchCounts = std::array<std::uint64_t, kThermalStates>;
  // While it lives, launches look into another cell and count elsewhere.
  class HeldState {
   public:
    HeldState(Dispatcher& dispatcher, ThermalState state) : dispatcher_(dispatcher) {
      dispatcher_.held_state_.store(static_cast<std::uint8_t>(state), std::memory_order_relaxed);
      dispatcher_.state_cell_ = &dispatcher_.held_state_;
      dispatcher_.counts_ = &uncounted_;
    }
    HeldState(const HeldState&) = delete;
    HeldState& operator=(const HeldState&) = delete;
    ~HeldState() {
      dispatcher_.state_cell_ = &dispatcher_.thermal_state_;
      dispatcher_.counts_ = &dispatcher_.launches_;
    }

   private:
    Dispatcher& dispatcher_;
    LaunchCounts uncounted_{};
  };

  [[nodiscard]] Prepared build(const TunedKernel& kernel, const BoundSpace& space, Plan plan);
  [[nodiscard]] Prepared build_or_fall_back(const TunedKernel& kernel, const BoundSpace& space);
  void add_variants(const TunedKernel& kernel, Prepared& prepared);
  [[nodiscard]] const Prepared* add_variant(const TunedKernel& kernel, Objective objective, Prepared& prepared);
  void note_differences(const Prepared& prepared);
  void warn_of_policy() const;
  [[nodiscard]] const std::vector<Kernel>& load(const TunedKernel& kernel, const BoundSpace& space, const Plan& plan);

  Device* device_;
  DeviceMemory* memory_;
  KernelSupply supply_;
  KernelRegistry registry_;
  PreparedTable table_;

  mutable std::mutex prepare_mutex_;                   // guards what follows, and writing to the table
  std::map<std::string, std::vector<Kernel>> loaded_;  // by cache key
  ScratchPool scratch_{*memory_};
  std::vector<std::unique_ptr<const Prepared>> prepared_;
  std::size_t first_since_reload_ = 0;  // of prepared_
  bool told_of_lacking_ = false;        // code, by a bundle

  mutable std::mutex misses_mutex_;
  std::vector<Miss> misses_;

  LaunchObserver observer_;

  ThermalOptions thermal_;
  StateCell thermal_state_{0};
  StateCell held_state_{0};
  const StateCell* state_cell_ = &thermal_state_;  // that launches look into
  LaunchCounts launches_{};
  LaunchCounts* counts_ = &launches_;
  // Which states launch all that was ever prepared in the same way: every state, as long as nothing is.
  std::array<std::array<bool, kThermalStates>, kThermalStates> alike_{
      {{true, true, true}, {true, true, true}, {true, true, true}}};
  std::size_t differing_ = 0;                // problems, since the last `reload`
  std::unique_ptr<ThermalWatcher> watcher_;  // writes to thermal_state_: destroyed before it
};

}  // namespace pascaline
