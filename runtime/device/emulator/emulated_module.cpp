#include "runtime/device/emulator/emulated_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "runtime/device/emulator/sanitizer_hooks.hpp"

namespace pascaline {
namespace {

int file_in_memory(const std::string& name, const std::string& code) {
  const int file = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  std::size_t written = 0;
  while (file >= 0 && written < code.size()) {
    const ssize_t count = ::write(file, code.data() + written, code.size() - written);
    if (count < 0 && errno != EINTR) {
      const int code_of_error = errno;
      ::close(file);
      errno = code_of_error;
      return -1;
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return file;
}

}  // namespace

EmulatedModule::EmulatedModule(const std::string& code, std::string function) : function_(std::move(function)) {
  // The loader would bring in AddressSanitizer's runtime late, and that ends the process.
  if (!sanitizer_hooks().present() && code.find("__asan_init") != std::string::npos) {
    throw EmulatorError(
        fmt::format("kernel {} was compiled for AddressSanitizer, which is not in this process; start the program "
                    "through run_sanitized",
                    function_));
  }
  try {
    open(code);
  } catch (...) {
    close();
    throw;
  }
}

EmulatedModule::~EmulatedModule() { close(); }

void EmulatedModule::open(const std::string& code) {
  file_ = file_in_memory(function_, code);
  if (file_ < 0) {
    throw EmulatorError(fmt::format("cannot hold kernel {} in memory: {}", function_, std::strerror(errno)), errno);
  }
  // By process id, so that a symbolizer in another process can open it too.
  path_ = fmt::format("/proc/{}/fd/{}", ::getpid(), file_);
  handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw EmulatorError(fmt::format("cannot load kernel {} for the emulated device: {}", function_, ::dlerror()));
  }
  entry_ = static_cast<const pascaline_host::KernelEntry*>(::dlsym(handle_, "pascaline_host_kernel"));
  if (entry_ == nullptr || entry_->abi_version != pascaline_host::kAbiVersion) {
    throw EmulatorError(
        fmt::format("kernel {} was compiled for another version of the emulated device; compile it again "
                    "(an old entry of the cache can be deleted)",
                    function_));
  }
  shared_ = static_shared_variables(code);
  variables_ = global_variables(code);
}

std::optional<DeviceSpan> EmulatedModule::variable(const std::string& name) const {
  const auto found = std::ranges::find(variables_, name, &GlobalVariable::name);
  Dl_info place{};
  if (found == variables_.end() || ::dladdr(entry_, &place) == 0) {
    return std::nullopt;
  }
  return DeviceSpan{static_cast<std::byte*>(place.dli_fbase) + found->offset, found->bytes};
}

void EmulatedModule::close() noexcept {
  if (handle_ != nullptr) {
    ::dlclose(handle_);
    // The loader knows objects by path: as long as one stays loaded, its descriptor's number must not come again.
    if (void* still = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      ::dlclose(still);
      return;
    }
  }
  if (file_ >= 0) {
    ::close(file_);
  }
}

}  // namespace pascaline
