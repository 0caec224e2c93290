#include "tests/runtime/bundle/bundle_fixture.hpp"

#include "core/space/space.hpp"
#include "runtime/bundle/bundle_format.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

std::uint64_t manifest_bytes(const std::string& bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 8; i-- > 0;) {
    size = size << 8U | static_cast<unsigned char>(bytes.at(16 + i));
  }
  return size;
}

}  // namespace

BundleCode scale_code(const std::filesystem::path& folder, const Config& config) {
  const Space space = Space::load(folder / "scale.json");
  const BoundSpace bound(space, scale_problem(8, 20), DeviceLimits{});
  BundleCode code;
  code.defines = bound.defines(config);
  code.options = bound.options(config);
  code.code = "code of " + config.text();
  return code;
}

Bundle scale_bundle(const std::filesystem::path& folder, const DeviceInfo& device) {
  Bundle bundle;
  bundle.program_version = "1";
  bundle.architecture = "host";
  bundle.kind = BinaryKind::host_object;
  bundle.toolkits = {old_toolkit()};
  bundle.limits = device.limits;
  bundle.device = device_row(device);
  bundle.device->limits_json.clear();
  BundleKernel& kernel = bundle.kernels.emplace_back();
  kernel.name = kernel.function = "scale";
  kernel.source_hash = KernelSource::load(folder / "scale.cu").hash;
  kernel.space_hash = Space::load(folder / "scale.json").hash;
  kernel.winners.push_back({scale_problem(8, 20), scale_config(32, 2), {10, 9, 11, 30}, 0.9, old_toolkit()});
  kernel.codes.push_back(scale_code(folder, scale_config(32, 2)));
  kernel.codes.push_back(scale_code(folder, scale_config(64)));
  return bundle;
}

std::string with_manifest_text(const std::string& bytes, const std::string& manifest) {
  const std::uint64_t begin = bundle_format::aligned(bundle_format::kHeaderBytes + manifest_bytes(bytes));
  return bundle_format::assemble(manifest, std::string_view(bytes).substr(begin));
}

nlohmann::json manifest_of(const std::string& bytes) {
  return nlohmann::json::parse(bytes.substr(bundle_format::kHeaderBytes, manifest_bytes(bytes)));
}

std::string with_manifest(const std::string& bytes, const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json manifest = manifest_of(bytes);
  change(manifest);
  return with_manifest_text(bytes, manifest.dump());
}

}  // namespace pascaline::testing
