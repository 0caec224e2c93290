#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/options.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/plan.hpp"

namespace pascaline {

/// A device's sensors; none of one that cannot be opened now.
[[nodiscard]] Sensors sensors_of(const std::string& device);
/// The compiler that would be used for an architecture, or why there is none.
[[nodiscard]] std::string chosen_compiler(const std::string& architecture);
/// The document that `pascaline devices --json` prints.
[[nodiscard]] nlohmann::json devices_document();

struct ListedKernel {
  Space space;
  std::filesystem::path source;
};

/// Throws Error and its kinds for a kernel that is not there or is wrong.
[[nodiscard]] ListedKernel listed_kernel(KernelOptions kernel, const std::string& name);
/// All kernels of the folders. A space that is wrong leaves the others to be shown; `wrong` is called for each.
[[nodiscard]] std::vector<ListedKernel> all_kernels(const KernelOptions& kernel,
                                                    const std::function<void(const Error&)>& wrong);
/// The document that `pascaline kernels NAME --json` prints; throws as `listed_kernel`.
[[nodiscard]] nlohmann::ordered_json kernel_document(const KernelOptions& kernel, const std::string& name);

/// The document that `pascaline kernels --json` prints; `wrong` is called for each search space that cannot be read.
[[nodiscard]] nlohmann::ordered_json kernels_document(const KernelOptions& kernel,
                                                      const std::function<void(const Error&)>& wrong);

/// Calls `show` for each problem of a kernel: with the dispatcher's plan, its launch, and the winners of other devices
/// that the search of its winner began with.
void explain_each(const KernelOptions& kernel, const DeviceOptions& on, const std::string& database,
                  const std::function<void(const Plan&, const Geometry&, const std::vector<std::string>&)>& show);
/// The document that `pascaline explain --json` prints of the problems of a kernel; throws as it does.
[[nodiscard]] nlohmann::json explain_document(const KernelOptions& kernel, const DeviceOptions& device,
                                              const std::string& database);

}  // namespace pascaline
