#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/binary.hpp"
#include "runtime/device/device_span.hpp"

namespace pascaline {

class Device;

/// Device memory between two guard bands. Move-only; frees itself.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* base, void* data, std::size_t bytes) noexcept
      : device_(device), base_(base), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] void* data() const noexcept { return data_; }  ///< device address, 256-byte aligned
  [[nodiscard]] void* base() const noexcept { return base_; }  ///< the device's own handle of the allocation
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] DeviceSpan span() const noexcept { return {data_, bytes_}; }
  void swap(Buffer& other) noexcept;

 private:
  Device* device_ = nullptr;
  void* base_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A loaded kernel function. Move-only; unloads itself.
class Kernel {
 public:
  Kernel() = default;
  Kernel(Device* device, void* module, void* function, Resources resources) noexcept
      : device_(device), module_(module), function_(function), resources_(resources) {}
  Kernel(Kernel&& other) noexcept { swap(other); }
  Kernel& operator=(Kernel&& other) noexcept {
    Kernel(std::move(other)).swap(*this);
    return *this;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

  [[nodiscard]] void* function() const noexcept { return function_; }
  [[nodiscard]] void* module() const noexcept { return module_; }  ///< the device's own handle of the loaded binary
  /// As the device reports them once loaded (registers after the driver's own translation of PTX).
  [[nodiscard]] const Resources& resources() const noexcept { return resources_; }
  [[nodiscard]] explicit operator bool() const noexcept { return function_ != nullptr; }
  void swap(Kernel& other) noexcept;

 private:
  Device* device_ = nullptr;
  void* module_ = nullptr;
  void* function_ = nullptr;
  Resources resources_;
};

/// A texture object over memory of a device; both must outlive it. Move-only; frees itself.
class Texture {
 public:
  Texture() = default;
  Texture(Device* device, void* handle, std::uint64_t object) noexcept
      : device_(device), handle_(handle), object_(object) {}
  Texture(Texture&& other) noexcept { swap(other); }
  Texture& operator=(Texture&& other) noexcept {
    Texture(std::move(other)).swap(*this);
    return *this;
  }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  ~Texture();

  [[nodiscard]] std::uint64_t object() const noexcept { return object_; }  ///< a kernel's cudaTextureObject_t
  void swap(Texture& other) noexcept;

 private:
  Device* device_ = nullptr;
  void* handle_ = nullptr;  // the device's own
  std::uint64_t object_ = 0;
};

/// Launches that were recorded once, to be started together. Move-only; frees itself.
class Graph {
 public:
  Graph() = default;
  Graph(Device* device, void* handle) noexcept : device_(device), handle_(handle) {}
  Graph(Graph&& other) noexcept { swap(other); }
  Graph& operator=(Graph&& other) noexcept {
    Graph(std::move(other)).swap(*this);
    return *this;
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  [[nodiscard]] void* handle() const noexcept { return handle_; }  ///< the device's own
  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }
  void swap(Graph& other) noexcept;

 private:
  Device* device_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace pascaline
