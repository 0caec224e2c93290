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
/// What `pascaline devices --json` prints.
[[nodiscard]] nlohmann::json devices_document();

struct ListedKernel {
  Space space;
  std::filesystem::path source;
};

/// Throws Error and its kinds for a kernel that is not there or is wrong.
[[nodiscard]] ListedKernel listed_kernel(KernelOptions kernel, const std::string& name);
/// Those of the folders. A space that is wrong leaves the others to be shown; `wrong` is told of each.
[[nodiscard]] std::vector<ListedKernel> all_kernels(const KernelOptions& kernel,
                                                    const std::function<void(const Error&)>& wrong);
/// What `pascaline kernels NAME --json` prints; throws Error and its kinds for a kernel that is not there or is wrong.
[[nodiscard]] nlohmann::ordered_json kernel_document(const KernelOptions& kernel, const std::string& name);

/// What `pascaline kernels --json` prints; `wrong` is told of each search space that cannot be read.
[[nodiscard]] nlohmann::ordered_json kernels_document(const KernelOptions& kernel,
                                                      const std::function<void(const Error&)>& wrong);

/// Tells of each problem of a kernel what the dispatcher plans, its launch, and what the search of the winner that it
/// takes began with, of other devices.
void explain_each(const KernelOptions& kernel, const DeviceOptions& on, const std::string& database,
                  const std::function<void(const Plan&, const Geometry&, const std::vector<std::string>&)>& tell);
/// What `pascaline explain --json` prints of the problems of a kernel; throws as it does.
[[nodiscard]] nlohmann::json explain_document(const KernelOptions& kernel, const DeviceOptions& device,
                                              const std::string& database);

}  // namespace pascaline
