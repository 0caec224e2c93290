#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/command.hpp"

namespace pascaline::cli {

/// What `pascaline devices --json` prints.
[[nodiscard]] nlohmann::json devices_document();

/// What `pascaline kernels NAME --json` prints; throws Error and its kinds for a kernel that is not there or is wrong.
[[nodiscard]] nlohmann::ordered_json kernel_document(const KernelOptions& kernel, const std::string& name);

/// What `pascaline kernels --json` prints; `wrong` is told of each search space that cannot be read.
[[nodiscard]] nlohmann::ordered_json kernels_document(const KernelOptions& kernel,
                                                      const std::function<void(const Error&)>& wrong);

/// What `pascaline explain --json` prints of the problems of a kernel; throws as it does.
[[nodiscard]] nlohmann::json explain_document(const KernelOptions& kernel, const DeviceOptions& device,
                                              const std::string& database);

}  // namespace pascaline::cli
