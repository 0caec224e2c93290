#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/bundle/bundle.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/device/device.hpp"
#include "runtime/thermal/thermal_policy.hpp"

namespace pascaline {

/// Where a dispatcher finds what it needs; an empty path means the default place.
struct DispatcherOptions {
  std::optional<std::filesystem::path> database{};  ///< must exist if given; without one nothing is tuned
  std::filesystem::path kernels{};                  ///< default: data_folder("kernel_templates")
  std::filesystem::path spaces{};                   ///< default: data_folder("search_spaces")
  std::string target{};                             ///< as for `compile_target`; empty: the device's own
  std::string nvrtc{};                              ///< as for `compilers_at_hand`; empty: any, as winners want it
  std::filesystem::path cache{};                    ///< of compiled kernels; default: cache_folder()
  /// Winners and code in one file, instead of a database, target, compiler and cache.
  std::optional<std::filesystem::path> bundle{};
  bool any_device = false;  ///< with a bundle: also on another device of its architecture than it was tuned on
  /// With a database that has winners by other objectives than time: which are launched at which temperature.
  ThermalOptions thermal{};
};

/// Checks of the bundle, if one is given, all that needs no device. Throws Error as `Dispatcher` does.
void check_bundle(const DispatcherOptions& options);

/// Winners from a database, code from a compiler and its cache.
class CompilerSupply {
 public:
  CompilerSupply(const DeviceInfo& device, const DispatcherOptions& options);
  [[nodiscard]] const CompileTarget& target() const noexcept { return target_; }
  [[nodiscard]] const std::vector<ToolkitRow>& toolkits() const noexcept { return toolkits_; }
  [[nodiscard]] std::vector<Winner> winners() const { return winners_in(database_); }
  [[nodiscard]] std::vector<Winner> winners_in(const std::optional<std::filesystem::path>& database) const;
  [[nodiscard]] std::string key(const CompileRequest& request, const ToolkitRow& toolkit) const;
  [[nodiscard]] Binary code(const CompileRequest& request, const ToolkitRow& toolkit) const;

 private:
  /// Compilers that were needed so far: a library takes memory as long as it is open.
  struct Opened {
    std::mutex mutex;
    std::map<std::string, Toolchain> by_path;
  };
  [[nodiscard]] const Toolchain& toolchain_of(const ToolkitRow& toolkit) const;

  std::optional<std::filesystem::path> database_;
  DeviceRow device_;
  CompileTarget target_;
  std::vector<CompilerInfo> compilers_;
  std::vector<ToolkitRow> toolkits_;  ///< of these
  std::unique_ptr<Opened> opened_ = std::make_unique<Opened>();
  CubinCache cache_;
};

/// Winners and code from a bundle, which is checked whole before anything of it is used.
class BundleSupply {
 public:
  BundleSupply(const DeviceInfo& device, const DispatcherOptions& options);
  BundleSupply(BundleSupply&&) = default;
  BundleSupply& operator=(BundleSupply&&) = default;
  BundleSupply(const BundleSupply&) = delete;
  BundleSupply& operator=(const BundleSupply&) = delete;
  ~BundleSupply() = default;
  [[nodiscard]] const CompileTarget& target() const noexcept { return target_; }
  [[nodiscard]] const std::vector<ToolkitRow>& toolkits() const noexcept { return toolkits_; }
  [[nodiscard]] std::vector<Winner> winners() const { return winners_of(bundle_); }
  [[nodiscard]] std::vector<Winner> winners_in(const std::optional<std::filesystem::path>& database) const;
  [[nodiscard]] std::string key(const CompileRequest& request, const ToolkitRow& toolkit) const;
  [[nodiscard]] Binary code(const CompileRequest& request, const ToolkitRow& toolkit) const;

 private:
  std::filesystem::path file_;
  Bundle bundle_;
  std::vector<ToolkitRow> toolkits_;
  CompileTarget target_;
  // By key; neither moves when the bundle does.
  std::map<std::string, std::pair<const BundleKernel*, const BundleCode*>> codes_;
};

/// Where a dispatcher has winners and code from. Several threads may use it at once.
class KernelSupply {
 public:
  /// Throws Error and its kinds for a missing toolchain, folder, database, and for a bundle that may not be used here.
  KernelSupply(const DeviceInfo& device, const DispatcherOptions& options);

  [[nodiscard]] const CompileTarget& target() const noexcept;
  /// What makes the code, or made it: at least one, that of kernels that are not tuned first.
  [[nodiscard]] const std::vector<ToolkitRow>& toolkits() const noexcept;
  /// Of every kernel and by every objective, for the device. Throws as Store does.
  [[nodiscard]] std::vector<Winner> winners() const;
  /// The winners of another database, or none; throws Error where there is a bundle.
  [[nodiscard]] std::vector<Winner> winners_in(const std::optional<std::filesystem::path>& database) const;
  /// Equal for requests that get the same code. `toolkit`: one of `toolkits()`.
  [[nodiscard]] std::string key(const CompileRequest& request, const ToolkitRow& toolkit) const;
  /// Throws Error saying why there is none.
  [[nodiscard]] Binary code(const CompileRequest& request, const ToolkitRow& toolkit) const;

 private:
  std::variant<CompilerSupply, BundleSupply> supply_;
};

}  // namespace pascaline
