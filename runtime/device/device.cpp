#include "runtime/device/device.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "runtime/device/cuda/cuda_device.hpp"
#include "runtime/device/cuda/driver_api.hpp"
#include "runtime/device/device_failure.hpp"
#include "runtime/device/device_names.hpp"
#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {

Buffer::~Buffer() {
  if (device_ != nullptr) {
    device_->release_buffer(base_);
  }
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(base_, other.base_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

Kernel::~Kernel() {
  if (device_ != nullptr) {
    device_->release_kernel(module_);
  }
}

void Kernel::swap(Kernel& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(module_, other.module_);
  std::swap(function_, other.function_);
  std::swap(resources_, other.resources_);
}

Texture::~Texture() {
  if (device_ != nullptr) {
    device_->release_texture(handle_);
  }
}

void Texture::swap(Texture& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(object_, other.object_);
}

Graph::~Graph() {
  if (device_ != nullptr) {
    device_->release_graph(handle_);
  }
}

void Graph::swap(Graph& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
}

Texture Device::make_texture(DeviceSpan /*memory*/, const TextureLayout& /*layout*/) {
  throw Error(fmt::format("{} does not support textures: use cuda:N or emulator", info().id));
}

double Device::largest_error(const Buffer& /*values*/, ElementType type, const Buffer& /*expected*/,
                             const ElementLimits& /*limits*/) {
  throw Error(fmt::format("{} compares no elements of {}", info().id, name_of(type)));
}

namespace {

constexpr std::size_t kWordsOfSlice = std::size_t{1} << 18U;

std::uint64_t sum_of_words(const std::byte* words, std::size_t count, std::uint64_t first_word) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, words + i * sizeof word, sizeof word);
    sum += word * (2 * (first_word + i) + 1);
  }
  return sum;
}

}  // namespace

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t first_word) {
  const std::size_t words = bytes.size() / sizeof(std::uint32_t);
  std::atomic<std::uint64_t> sum = 0;
  worker_pool().run(words, kWordsOfSlice, [&](std::size_t begin, std::size_t end) {
    sum += sum_of_words(bytes.data() + begin * sizeof(std::uint32_t), end - begin, first_word + begin);
  });
  std::uint32_t rest = 0;
  if (const std::size_t at = words * sizeof rest; at < bytes.size()) {
    std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  }
  return sum + rest * (2 * (first_word + words) + 1);
}

bool is_out_of_memory(const Error& error) noexcept {
  if (dynamic_cast<const OutOfMemoryError*>(&error) != nullptr) {
    return true;
  }
  if (dynamic_cast<const CudaError*>(&error) != nullptr) {
    return error.code() == kCuOutOfMemory;
  }
  return dynamic_cast<const EmulatorError*>(&error) != nullptr && error.code() == ENOMEM;
}

bool is_device_failure(const Error& error) noexcept {
  return is_out_of_memory(error) || dynamic_cast<const DeviceLostError*>(&error) != nullptr;
}

std::unique_ptr<Device> open_device(const std::string& id) {
  check_device_name(id);
  const std::optional<int> ordinal = cuda_ordinal(id);
  return ordinal ? open_cuda_device(*ordinal) : open_emulated_device();
}

std::vector<DeviceInfo> list_devices(std::string* note) {
  std::vector<DeviceInfo> devices = list_cuda_devices(note);
  devices.push_back(emulated_device_info());
  return devices;
}

}  // namespace pascaline
