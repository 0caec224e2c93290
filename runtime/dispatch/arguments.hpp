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

/// The argument values of a launch, in the order of the kernel's signature: buffers by name, scalars evaluated from
/// the space in their element type, scratch allocated here. The values stay where they are when it is moved.
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
  /// null pointer. Scratch is allocated on `device` and, where the space says so, zeroed. Throws Error for a missing
  /// or unknown name and for a scalar that its element type cannot hold; CudaError or EmulatorError for memory.
  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, std::span<const NamedPointer> buffers);

  /// The same with the addresses of non-scratch buffers left null, to be given at each launch (`gather`). Scratch
  /// without a fill comes from `pool`, which must outlive the launches.
  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, ScratchPool& pool);

  /// For `Device::launch`: the address of each argument's value.
  [[nodiscard]] std::span<void* const> pointers() const noexcept { return pointers_; }
  /// Number of buffers that are not scratch.
  [[nodiscard]] std::size_t buffer_count() const noexcept { return buffer_slots_.size(); }
  /// Writes `pointers()` to `to` (as long) with the non-scratch buffers replaced by `buffers`, in argument order.
  /// The elements of `buffers` must live until the launch returns. Neither throws nor allocates.
  void gather(std::span<void* const> buffers, std::span<void*> to) const noexcept;

  /// Copies buffers to the variables of the kernel's file that they are for, ordered with launches: those given to the
  /// constructor, or `buffers`, in argument order. Returns the name of a variable that the code does not have, as
  /// nothing in it reads the variable, or that is smaller than its buffer; empty if all were written. Throws CudaError
  /// or EmulatorError.
  std::string copy_variables(Device& device, const Kernel& kernel, std::span<void* const> buffers = {}) const;
  /// Scratch with memory of its own, in argument order: for guard checks.
  [[nodiscard]] std::span<const Scratch> scratch() const noexcept { return scratch_; }
  /// Whether a launch works in memory that other launches work in, too: no two may run at once then.
  [[nodiscard]] bool shares_memory() const noexcept { return !scratch_.empty() || !pooled_.empty(); }
  /// Puts zero-filled scratch back to zero and sets every byte of the rest to `byte`; ordered with launches.
  void refill_scratch(Device& device, std::uint8_t byte = 0) const;

 private:
  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
  // Holds an address or a scalar, or a part of a larger one, as no type is aligned to more.
  struct alignas(16) Word {
    std::array<std::byte, 16> bytes;
  };

  LaunchArguments(Device& device, const BoundSpace& space, const Config& config, std::span<const NamedPointer> buffers,
                  ScratchPool* pool);
  [[nodiscard]] void* allocate_scratch(Device& device, std::size_t index, const Argument& argument, std::size_t bytes,
                                       ScratchPool* pool);

  std::vector<std::vector<Word>> values_;
  std::vector<void*> pointers_;
  std::vector<std::size_t> buffer_slots_;  ///< of each buffer its place in `pointers_`, or kNoSlot
  std::vector<Variable> variables_;
  std::vector<Scratch> scratch_;
  std::vector<void*> pooled_;
};

}  // namespace pascaline
