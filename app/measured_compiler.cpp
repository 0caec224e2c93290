#include "app/measured_compiler.hpp"

#include <algorithm>

#include "runtime/device/cuda/nvrtc.hpp"

namespace pascaline {

std::string wish_of_measured(const std::string& architecture, const std::string& version) {
  if (!nvrtc_wish({}).empty()) {
    return {};
  }
  const std::vector<NvrtcInfo> found = find_nvrtc();
  const bool is_here = std::any_of(found.begin(), found.end(), [&](const NvrtcInfo& info) {
    return info.version == version && compiles_for(info, architecture);
  });
  return is_here ? version : std::string();
}

}  // namespace pascaline
