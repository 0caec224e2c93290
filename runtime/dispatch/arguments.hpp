#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// A buffer argument's name and the device address it is given (borrowed, at least its extent in size).
struct NamedPointer {
  std::string_view name;
  void* data = nullptr;
};

/// Scratch memory that kernels of one device share: launches on a device are ordered and none relies on what an
/// earlier one left, so that many prepared problems need the memory of the largest. Grows by adding buffers; an
/// address once given stays valid as long as the pool.
class ScratchPool {
 public:
  /// `memory` must outlive it.
  explicit ScratchPool(DeviceMemory& memory) : memory_(&memory) {}
  /// The address of at least `bytes`, none of those in `taken`; throws as `DeviceMemory::allocate_raw` does.
  [[nodiscard]] void* take(std::size_t bytes, std::span<void* const> taken);
  /// Bytes held altogether.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  DeviceMemory* memory_;
  std::vector<RawBuffer> buffers_;
};

/// The argument values of a configuration's launches, of each in the order of its function's parameters: buffers by
/// name, scalars evaluated from the space in their element type, scratch allocated here, which launches of a pipeline
/// share. The values stay where they are when it is moved.
class LaunchArguments {
 public:
  /// A scratch argument with memory of its own.
  struct Scratch {
    std::size_t argument = 0;  ///< index in the space's arguments
    Fill fill = Fill::none;
    Buffer buffer;
  };

  /// A variable of the kernel's file, which a buffer is copied to before a launch.
  struct Variable {
    std::string name;        ///< in C++
    std::size_t buffer = 0;  ///< number of the buffer, of those that are not scratch
    DeviceSpan contents;     ///< the buffer; its address is null if it is given at each launch
  };

  /// Of a kernel without arguments.
  LaunchArguments() = default;
  /// Every buffer that is not scratch must be in `buffers`, and nothing else; a buffer without elements becomes a
  /// null pointer. Scratch is allocated on `device` and, where the space says so, zeroed; textures are created. Throws
  /// Error for a missing or unknown name and for a scalar that its element type cannot hold; ArgumentError for a
  /// texture that no GPU reads; CudaError or EmulatorError for memory.
  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, std::span<const NamedPointer> buffers);
  /// The same of other launches than the space's own.
  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, std::span<const NamedPointer> buffers,
                  std::span<const Launch> launches);

  /// The same with the addresses of non-scratch buffers left null, to be given at each launch (`gather`). Scratch
  /// without a fill comes from `pool`, which must outlive the launches. The space must have no texture.
  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, ScratchPool& pool);

  /// For `Device::launch`: the address of each argument's value, of the launch with that number.
  [[nodiscard]] std::span<void* const> pointers(std::size_t launch = 0) const noexcept {
    return launches_[launch].pointers;
  }
  /// Number of buffers that are not scratch.
  [[nodiscard]] std::size_t buffer_count() const noexcept { return buffer_count_; }
  /// Writes `pointers(launch)` to `to` (at least as long) with the non-scratch buffers replaced by `buffers`, which are
  /// in argument order, and returns what was written. The elements of `buffers` must live until the launch returns.
  /// Neither throws nor allocates.
  std::span<void* const> gather(std::size_t launch, std::span<void* const> buffers, std::span<void*> to) const noexcept;

  /// Copies buffers to the variables of the kernel's file that they are for, in the code of each of the kernels,
  /// ordered with launches: those given to the constructor, or `buffers`, in argument order. Returns the name of a
  /// variable that no code has, as nothing in it reads the variable, or that is smaller than its buffer; empty if all
  /// were written. Throws CudaError or EmulatorError.
  std::string copy_variables(Device& device, std::span<const Kernel> kernels,
                             std::span<void* const> buffers = {}) const;
  /// Scratch with memory of its own, in argument order: for guard checks.
  [[nodiscard]] std::span<const Scratch> scratch() const noexcept { return scratch_; }
  /// Whether a launch works in memory that other launches work in, too: no two may run at once then.
  [[nodiscard]] bool shares_memory() const noexcept { return !scratch_.empty() || !pooled_.empty(); }
  /// Puts zero-filled scratch back to zero and sets every byte of the rest to `byte`; ordered with launches.
  void refill_scratch(Device& device, std::uint8_t byte = 0) const;

 private:
  static constexpr std::size_t kNoBuffer = static_cast<std::size_t>(-1);
  // Holds an address or a scalar, or a part of a larger one, as no type is aligned to more.
  struct alignas(16) Word {
    std::array<std::byte, 16> bytes;
  };

  struct Passed {
    std::vector<void*> pointers;
    std::vector<std::size_t> buffers;  ///< of each pointer: the number of the buffer that is not scratch, or kNoBuffer
  };

  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, std::span<const NamedPointer> buffers,
                  std::span<const Launch> launches, ScratchPool* pool);
  [[nodiscard]] void* allocate_scratch(Device& device, std::size_t index, const Argument& argument, std::size_t bytes,
                                       ScratchPool* pool);

  std::vector<std::vector<Word>> values_;  ///< of each argument
  std::vector<Passed> launches_ = std::vector<Passed>(1);
  std::size_t buffer_count_ = 0;
  std::vector<Variable> variables_;
  std::vector<Texture> textures_;
  std::vector<Scratch> scratch_;
  std::vector<void*> pooled_;
};

/// Loads the code of each launch; throws as `Device::load` does.
[[nodiscard]] std::vector<Kernel> load_launches(Device& device, const Binary& binary);

/// Launches kernels one after the other, each with its geometry; throws as `Device::launch` does.
void launch_all(Device& device, std::span<const Kernel> kernels, std::span<const Geometry> geometries,
                const LaunchArguments& arguments);

}  // namespace pascaline
