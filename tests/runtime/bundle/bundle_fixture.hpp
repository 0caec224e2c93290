#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/bundle/bundle.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::testing {

/// A bundle of kernel `scale` (tests/runtime/dispatch/scale_kernel.hpp, written to `folder`) for a device of the host,
/// with a winner of 8 x 20 values (BLOCK=32 STEPS=2) and code for it and for the default; the code is any bytes.
[[nodiscard]] Bundle scale_bundle(const std::filesystem::path& folder, const DeviceInfo& device);

/// Code of the kernel for a configuration; it is any bytes.
[[nodiscard]] BundleCode scale_code(const std::filesystem::path& folder, const Config& config);

/// The bundle with a manifest that `change` was at, hashed again; its code stays as it is.
[[nodiscard]] std::string with_manifest(const std::string& bytes, const std::function<void(nlohmann::json&)>& change);
[[nodiscard]] nlohmann::json manifest_of(const std::string& bytes);
/// The file of this manifest and the code of `bytes`.
[[nodiscard]] std::string with_manifest_text(const std::string& bytes, const std::string& manifest);

}  // namespace pascaline::testing
