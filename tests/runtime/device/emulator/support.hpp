#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline::testing {

/// Source of a kernel file of these tests, or of a text that stands for one.
inline KernelSource kernel_source(const std::string& file) {
  return KernelSource::load(std::filesystem::path(HOST_TEST_KERNELS) / file);
}

inline KernelSource source_of_text(const std::string& text) {
  return {std::filesystem::path(HOST_TEST_KERNELS) / "given.cu", text, {}, hash_hex(text)};
}

inline const HostCompiler& compiler() {
  static const HostCompiler found = HostCompiler::find();
  return found;
}

inline CompileResult compile(const KernelSource& source, const std::string& function, bool sanitize = false,
                             std::vector<std::string> defines = {}) {
  CompileRequest request;
  request.source = &source;
  request.function = function;
  request.defines = std::move(defines);
  request.options = {"--maxrregcount=64", "--use_fast_math"};
  request.kind = BinaryKind::host_object;
  request.architecture = "host";
  request.address_sanitizer = sanitize;
  request.parsed_headers = std::filesystem::path(PASCALINE_TEST_CACHE) / "parsed_headers";
  return compile_for_emulator(compiler(), request);
}

/// Compiles a function of a kernel file and loads it; throws with the log if it does not compile.
inline Kernel load(Device& device, const std::string& file, const std::string& function, bool sanitize = false) {
  const CompileResult result = compile(kernel_source(file), function, sanitize);
  if (!result.ok) {
    throw std::runtime_error(result.reason + "\n" + result.log);
  }
  return device.load(result.binary);
}

template <typename T>
Buffer to_device(Device& device, const std::vector<T>& values) {
  Buffer buffer = device.allocate(values.size() * sizeof(T));
  device.upload(buffer, std::as_bytes(std::span(values)));
  return buffer;
}

template <typename T>
std::vector<T> to_host(Device& device, const Buffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  device.download(std::as_writable_bytes(std::span(values)), buffer);
  return values;
}

/// Launches with buffers and scalars as the kernel takes them, and waits.
template <typename... Arguments>
void run(Device& device, const Kernel& kernel, const Geometry& geometry, Arguments... arguments) {
  const std::vector<void*> pointers{&arguments...};
  device.launch(kernel, geometry, pointers);
  device.synchronize();
}

}  // namespace pascaline::testing
