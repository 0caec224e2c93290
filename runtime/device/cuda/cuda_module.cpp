#include "runtime/device/cuda/cuda_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pascaline {

CuModule load_cuda_module(const DriverApi& driver, const Binary& binary, const std::string& device) {
  CuModule module = nullptr;
  // Where the driver does not take it, it translates for itself, and says why if it cannot.
  if (!binary.translated.empty() &&
      driver.module_load.address(&module, binary.translated.c_str(), 0, nullptr, nullptr) == 0) {
    return module;
  }
  std::array<char, 8192> log{};
  std::array<int, 3> options{kCuJitErrorLog, kCuJitErrorLogBytes, kCuJitMaxRegisters};
  std::array<void*, 3> values{log.data(), reinterpret_cast<void*>(log.size()),
                              reinterpret_cast<void*>(static_cast<std::uintptr_t>(binary.max_registers))};
  const unsigned count = binary.kind == BinaryKind::ptx && binary.max_registers > 0 ? 3 : 2;
  const CuResult result =
      driver.module_load.address(&module, binary.code.c_str(), count, options.data(), values.data());
  log.back() = '\0';
  driver.check(driver.module_load.symbol, result,
               fmt::format("loading {} for {} on {}: {}", binary.function, binary.target, device, log.data()));
  return module;
}

Resources loaded_resources(const DriverApi& driver, CuFunction function, const Binary& binary) {
  const auto attribute = [&](CuFunctionAttribute which) {
    int value = 0;
    driver(driver.function_attribute, &value, static_cast<int>(which), function);
    return value;
  };
  Resources resources = binary.resources;
  resources.registers = attribute(kCuFunctionRegisters);
  resources.static_shared_bytes = attribute(kCuFunctionSharedBytes);
  resources.local_bytes = attribute(kCuFunctionLocalBytes);
  // The driver does not count parameters; what the binary itself tells is more.
  resources.constant_bytes = std::max(resources.constant_bytes, attribute(kCuFunctionConstBytes));
  return resources;
}

}  // namespace pascaline
