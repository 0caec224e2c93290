#pragma once

#include <string>

#include "runtime/device/dynamic_library.hpp"

namespace pascaline {

/// One nvJitLink library (CUDA 12 and newer), loaded at run time: it translates PTX to code for a GPU as the driver of
/// the same CUDA version does, but on the processor alone, so that many processes can do it before the GPU waits for
/// it.
class JitLink {
 public:
  /// Loads the library from a file; throws Error if it is none.
  explicit JitLink(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return library_.path(); }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }  ///< "13.0"

  /// A cubin for `architecture` ("sm_90") of the PTX, or nothing where the library does not translate it. With
  /// `max_registers` above 0 a thread uses no more registers.
  [[nodiscard]] std::string cubin(const std::string& ptx, const std::string& architecture, int max_registers) const;

 private:
  DynamicLibrary library_;
  std::string version_;
};

/// Path of an nvJitLink of exactly this CUDA version ("13.0"), as a driver would translate; empty if none is found
/// where NVRTC is looked for (see `find_nvrtc`). What was found is remembered.
[[nodiscard]] std::string find_jit_link(const std::string& cuda_version);

}  // namespace pascaline
