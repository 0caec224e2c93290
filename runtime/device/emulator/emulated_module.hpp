#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device_span.hpp"
#include "runtime/device/emulator/static_shared.hpp"
#include "runtime/device/shim/pascaline/abi.h"

namespace pascaline {

/// A kernel's shared object in this process, loaded from memory.
class EmulatedModule {
 public:
  /// Loads the object's bytes; throws EmulatorError with the loader's message.
  EmulatedModule(const std::string& code, std::string function);
  EmulatedModule(const EmulatedModule&) = delete;
  EmulatedModule& operator=(const EmulatedModule&) = delete;
  ~EmulatedModule();

  [[nodiscard]] const pascaline_host::KernelEntry& entry() const noexcept { return *entry_; }
  [[nodiscard]] const std::string& function() const noexcept { return function_; }
  /// Memory of a global variable by the linker's name; nothing if the object has none of that name.
  [[nodiscard]] std::optional<DeviceSpan> variable(const std::string& name) const;
  /// Its static shared memory.
  [[nodiscard]] std::span<const SharedVariable> shared() const noexcept { return shared_; }

 private:
  void open(const std::string& code);
  void close() noexcept;

  std::string function_;
  int file_ = -1;
  std::string path_;
  void* handle_ = nullptr;
  const pascaline_host::KernelEntry* entry_ = nullptr;
  std::vector<SharedVariable> shared_;
  std::vector<GlobalVariable> variables_;
};

}  // namespace pascaline
