#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace pascaline {

/// Base of every fault Pascaline reports: wrong input or a broken environment, never a bad candidate.
/// `what()` is one line that says what was being done, with what, and what to do now.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int code = 0) : std::runtime_error(message), code_(code) {}
  /// The numeric code of the library that failed (CUresult, nvrtcResult, SQLite code, errno), 0 if none.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A call of the CUDA driver or of NVML failed; `code()` is the CUresult or nvmlReturn_t.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// A kernel's fault took the device from this process for good; what is left to do needs a new process.
class DeviceLostError : public CudaError {
 public:
  using CudaError::CudaError;
};

/// NVRTC is missing or failed as a library (a kernel that does not compile is a `CompileResult`, not this).
class NvrtcError : public Error {
 public:
  explicit NvrtcError(const std::string& message, int code = 0, std::string log = {})
      : Error(message, code), log_(std::move(log)) {}
  /// The compiler's log, whole; empty if it wrote none.
  [[nodiscard]] const std::string& log() const noexcept { return log_; }

 private:
  std::string log_;
};

/// The emulated device (compiler, loader or a fiber of a kernel) failed.
class EmulatorError : public Error {
 public:
  using Error::Error;
};

/// A device, or the limit that was set for its use, has too little memory. Less work at once may fit.
class OutOfMemoryError : public Error {
 public:
  OutOfMemoryError(const std::string& message, std::uint64_t needed_bytes, std::uint64_t free_bytes)
      : Error(message), needed_bytes_(needed_bytes), free_bytes_(free_bytes) {}
  [[nodiscard]] std::uint64_t needed_bytes() const noexcept { return needed_bytes_; }  ///< of the device
  [[nodiscard]] std::uint64_t free_bytes() const noexcept { return free_bytes_; }      ///< what could be had

 private:
  std::uint64_t needed_bytes_;
  std::uint64_t free_bytes_;
};

/// A bundle has no code for what is to run.
class MissingCodeError : public Error {
 public:
  using Error::Error;
};

/// The database could not be opened, read or written; `code()` is SQLite's extended result code.
class StoreError : public Error {
 public:
  using Error::Error;
};

/// The database was locked by another process for longer than the store waits. Nothing was changed; trying again later
/// may succeed.
class StoreBusyError : public StoreError {
 public:
  using StoreError::StoreError;
};

/// A search space, workload or expression is wrong; the message begins with file and JSON pointer.
class SpaceError : public Error {
 public:
  SpaceError(std::string file, std::string pointer, const std::string& problem)
      : Error((file.empty() ? std::string("search space") : file) + (pointer.empty() ? "" : ":" + pointer) + ": " +
              problem),
        file_(std::move(file)),
        pointer_(std::move(pointer)) {}
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// JSON pointer (RFC 6901) of the place, empty for the whole document.
  [[nodiscard]] const std::string& pointer() const noexcept { return pointer_; }

 private:
  std::string file_;
  std::string pointer_;
};

}  // namespace pascaline
