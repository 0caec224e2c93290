#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dispatch/kernel_name.hpp"
#include "runtime/dispatch/planner.hpp"
#include "runtime/dispatch/prepared.hpp"

namespace pascaline {

/// Kernels of a dispatcher by name, read from their two files when first asked for. A kernel already read is found
/// without a lock; every method may be called from several threads. What was handed out lives as long as the registry.
class KernelRegistry {
 public:
  static constexpr std::size_t kMaxKernels = 256;

  /// `winners`: of every kernel, by any objective, for the device in use.
  KernelRegistry(std::filesystem::path kernels, std::filesystem::path spaces, std::vector<Winner> winners,
                 std::vector<ToolkitRow> here);

  /// Throws Error (SpaceError) if `NAME.json` or `NAME.cu` is missing or wrong.
  [[nodiscard]] KernelHandle open(KernelName name) const;
  /// Adds a kernel that is not in those files, for its plans alone; a second time nothing happens. `name` is that of
  /// the space, and must outlive the registry.
  void add(KernelName name, const Space& space, const KernelSource& source) const;
  [[nodiscard]] const std::filesystem::path& kernels_folder() const noexcept { return kernels_; }
  /// `handle` came from `open`. After a `replace` it is the kernel with its new winners.
  [[nodiscard]] const TunedKernel& at(KernelHandle handle) const noexcept;
  /// See `missing_compilers` in planner.hpp; only of kernels whose source is there.
  [[nodiscard]] std::vector<std::string> missing_compilers() const;
  /// Whether there are winners by that objective, of whatever source.
  [[nodiscard]] bool has_winners_by(Objective objective) const;
  /// Puts others in the place of all winners; handles stay what they are.
  void replace(std::vector<Winner> winners);

 private:
  [[nodiscard]] std::optional<KernelHandle> find(KernelName name) const noexcept;
  [[nodiscard]] std::vector<Winner> winners_of(const std::string& name) const;
  void publish(std::size_t index, const Space& space, const KernelSource& source) const;
  void append(KernelName name, const Space& space, const KernelSource& source) const;

  std::filesystem::path kernels_;
  std::filesystem::path spaces_;
  std::map<std::string, std::vector<Winner>> winners_;
  std::vector<ToolkitRow> here_;
  mutable std::mutex mutex_;  // of those who add
  mutable std::vector<std::unique_ptr<const TunedKernel>> kept_;
  mutable std::array<std::atomic<std::uint64_t>, kMaxKernels> hashes_{};   // of the names
  mutable std::array<std::atomic<const char*>, kMaxKernels> opened_by_{};  // the text that each was first opened by
  mutable std::array<std::atomic<const TunedKernel*>, kMaxKernels> known_{};
  mutable std::atomic<std::uint32_t> count_{0};  // entries below it are complete
};

}  // namespace pascaline
