#pragma once

#include <filesystem>
#include <string>

namespace pascaline {

/// Says to other processes of this machine that a device is being measured on, whatever database they use. Held by a
/// lock on a file, which the system takes away from a process that ends. Move-only.
class DeviceClaim {
 public:
  /// Claims the device of that UUID unless another process has it. `folder` is made if it is not there; where it cannot
  /// be written nothing is claimed, and nobody is known.
  DeviceClaim(const std::filesystem::path& folder, const std::string& uuid, const std::string& database);
  DeviceClaim(DeviceClaim&& other) noexcept;
  DeviceClaim& operator=(DeviceClaim&&) = delete;
  DeviceClaim(const DeviceClaim&) = delete;
  DeviceClaim& operator=(const DeviceClaim&) = delete;
  ~DeviceClaim();

  /// "process 123, into /home/me/tuned.db", of whoever has it; empty if nobody else has.
  [[nodiscard]] const std::string& other() const noexcept { return other_; }

  /// Where claims of this user's processes are: the runtime folder, or that for compiled kernels where there is none.
  [[nodiscard]] static std::filesystem::path usual_folder();

 private:
  int descriptor_ = -1;
  std::string other_;
};

}  // namespace pascaline
