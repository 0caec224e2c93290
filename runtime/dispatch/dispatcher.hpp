#pragma once

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

namespace pascaline {

/// Called instead of a launch that it must time: with the problem and the time of this one launch.
using LaunchObserver = std::function<void(const Prepared& prepared, double time_us)>;

/// Answers for every problem with the best variant known for this device, compiled and ready to launch. It takes the
/// database or bundle as it is when constructed, or a database when `reload` is called.
///
/// `plan`, `kernel`, `find`, `prepare`, `reload` and `misses` may be called from several threads. `prepare` and
/// `launch` use the device, which takes one thread at a time: while one thread launches, no other may launch or
/// prepare. A problem must be prepared before its launch is recorded (`Device::record`): preparing compiles, loads and
/// allocates. A `Device::reset` makes every Prepared useless: make a new dispatcher.
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
  void add_planned(KernelName name, Space space, KernelSource source) const {
    registry_.add(name, std::move(space), std::move(source));
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
  /// Starts the kernel on the buffers that are not scratch, in argument order; does not wait. Throws as
  /// `Device::launch`, and Error if the number of buffers is wrong.
  void launch(const Prepared& prepared, std::span<void* const> buffers);

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
  [[nodiscard]] const TargetPlan& target() const noexcept { return supply_.target(); }
  /// What makes the code of problems that are not tuned, and where a winner's compiler is not here.
  [[nodiscard]] const ToolkitRow& toolkit() const noexcept { return supply_.toolkits().front(); }
  /// Everything that can make code here, that one first.
  [[nodiscard]] const std::vector<ToolkitRow>& toolkits() const noexcept { return supply_.toolkits(); }

 private:
  [[nodiscard]] Prepared build(const TunedKernel& kernel, const BoundSpace& space, Plan plan);
  [[nodiscard]] Prepared build_or_fall_back(const TunedKernel& kernel, const BoundSpace& space);
  [[nodiscard]] const Kernel& load(const TunedKernel& kernel, const BoundSpace& space, const Plan& plan);

  Device* device_;
  DeviceMemory* memory_;
  KernelSupply supply_;
  KernelRegistry registry_;
  PreparedTable table_;

  mutable std::mutex prepare_mutex_;                       // guards what follows, and writing to the table
  std::map<std::string, std::unique_ptr<Kernel>> loaded_;  // by cache key
  ScratchPool scratch_{*memory_};
  std::vector<std::unique_ptr<const Prepared>> prepared_;
  std::size_t first_since_reload_ = 0;  // of prepared_
  bool told_of_lacking_ = false;        // code, by a bundle

  mutable std::mutex misses_mutex_;
  std::vector<Miss> misses_;

  LaunchObserver observer_;
};

}  // namespace pascaline
