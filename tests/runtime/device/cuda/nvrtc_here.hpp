#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/device/compile.hpp"

namespace pascaline::testing {

/// Every NVRTC of this machine that compiles for the architecture.
inline std::vector<NvrtcInfo> nvrtc_for(const std::string& architecture) {
  std::vector<NvrtcInfo> found;
  for (const NvrtcInfo& info : find_nvrtc()) {
    for (const std::string& supported : info.architectures) {
      if (supported == architecture) {
        found.push_back(info);
      }
    }
  }
  return found;
}

}  // namespace pascaline::testing

/// Skips the test if `list` is empty.
#define PASCALINE_NEED_NVRTC(list) \
  if ((list).empty()) GTEST_SKIP() << "no NVRTC that compiles for it; run ./scripts/setup.sh"
