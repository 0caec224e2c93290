#include "tuner/probe/probe_kernels.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"

namespace pascaline {

ProbeKernels::ProbeKernels(CompileTarget target, const std::string& nvrtc, std::filesystem::path folder,
                           const std::filesystem::path& cache)
    : target_(std::move(target)),
      toolchain_(Toolchain::find(target_.architecture, nvrtc)),
      folder_(std::move(folder)),
      cache_(cache) {}

Binary ProbeKernels::compile(const std::string& file, const std::string& function,
                             const std::vector<std::string>& defines) {
  auto source = sources_.find(file);
  if (source == sources_.end()) {
    source = sources_.emplace(file, KernelSource::load(folder_ / (file + ".cu"))).first;
  }
  CompileRequest request;
  request.source = &source->second;
  request.function = function;
  request.defines = defines;
  request.kind = target_.kind;
  request.architecture = target_.architecture;
  CompileResult result = cache_.get(toolchain_, request);
  if (!result.ok) {
    throw Error(fmt::format("{}: the probe's kernel {} does not compile for {} with {} {}: {}",
                            source->second.file.string(), function, target_.architecture, toolchain_.compiler(),
                            toolchain_.version(), result.reason));
  }
  return std::move(result.binary);
}

}  // namespace pascaline
