#pragma once

#include <filesystem>
#include <string>

#include "runtime/bundle/bundle.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// How code of the bundle is run on the device: the architecture and kind are the bundle's, the limits the tighter of
/// both, multiprocessors and L2 as the bundle was made for. Throws Error naming `file` if the device cannot run the
/// code, or is not of the kind that the winners were measured on (unless `any_device`).
[[nodiscard]] CompileTarget check_bundle_device(const Bundle& bundle, const std::string& file, const DeviceInfo& device,
                                                bool any_device);

/// Holds every kernel of the bundle against those in the folders: same source and space, every winner a problem and a
/// valid configuration of the space under these limits, every macro and option of code one that the space gives.
/// Throws Error naming `file`, the kernel and what is wrong.
void check_bundle_kernels(const Bundle& bundle, const std::string& file, const std::filesystem::path& kernels,
                          const std::filesystem::path& spaces, const DeviceLimits& limits);

}  // namespace pascaline
