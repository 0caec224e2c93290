#include "runtime/dispatch/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/argument_error.hpp"
#include "core/elements.hpp"
#include "core/error.hpp"

namespace pascaline {
namespace {

template <typename Integer>
bool store_integer(std::int64_t value, void* to) {
  if (!std::in_range<Integer>(value)) {
    return false;
  }
  const auto narrow = static_cast<Integer>(value);
  std::memcpy(to, &narrow, sizeof narrow);
  return true;
}

template <typename Real>
bool store_real(std::int64_t value, void* to) {
  constexpr std::int64_t kExact = std::int64_t{1} << std::numeric_limits<Real>::digits;
  if (value < -kExact || value > kExact) {
    return false;
  }
  const auto real = static_cast<Real>(value);
  std::memcpy(to, &real, sizeof real);
  return true;
}

void store_number(ElementType type, double value, void* to) {
  const auto store = [to](auto number) { std::memcpy(to, &number, sizeof number); };
  switch (type) {
    case ElementType::float64:
      return store(value);
    case ElementType::float16:
      return store(half_from_float(static_cast<float>(value)));
    case ElementType::bfloat16:
      return store(bfloat_from_float(static_cast<float>(value)));
    default:
      return store(static_cast<float>(value));
  }
}

// False if the type cannot hold the value exactly.
bool store_scalar(ElementType type, std::int64_t value, void* to) {
  switch (type) {
    case ElementType::int8:
      return store_integer<std::int8_t>(value, to);
    case ElementType::uint8:
      return store_integer<std::uint8_t>(value, to);
    case ElementType::int16:
      return store_integer<std::int16_t>(value, to);
    case ElementType::uint16:
      return store_integer<std::uint16_t>(value, to);
    case ElementType::int32:
      return store_integer<std::int32_t>(value, to);
    case ElementType::uint32:
      return store_integer<std::uint32_t>(value, to);
    case ElementType::int64:
      return store_integer<std::int64_t>(value, to);
    case ElementType::uint64:
      return store_integer<std::uint64_t>(value, to);
    case ElementType::boolean:
      return value <= 1 && store_integer<std::uint8_t>(value, to);
    case ElementType::float32:
      return store_real<float>(value, to);
    case ElementType::float64:
      return store_real<double>(value, to);
    case ElementType::float16:
    case ElementType::bfloat16: {
      const auto number = static_cast<double>(value);
      store_number(type, number, to);
      return widen(type, {static_cast<const std::byte*>(to), size_of(type)}).front() == number;
    }
    default:
      throw Error(fmt::format("a scalar argument cannot be of type {}", name_of(type)));
  }
}

void store(const BoundSpace& space, const Config& config, const Argument& scalar, void* to) {
  if (scalar.composite) {
    for (std::size_t i = 0; i < scalar.members.size(); ++i) {
      store(space, config, scalar.members[i], static_cast<std::byte*>(to) + scalar.composite->members[i].offset);
    }
    return;
  }
  const ElementType type = space.type_of(scalar);
  if (scalar.number) {
    store_number(type, *scalar.number, to);
    return;
  }
  const std::int64_t value = space.value(scalar, config);
  if (!store_scalar(type, value, to)) {
    throw Error(fmt::format("argument '{}' of {} is {}, which {} cannot hold", scalar.name, space.problem().text(),
                            value, name_of(type)));
  }
}

// Limits of textures on sm_61: elements of a row, rows, elements without rows, and the unit of a row's bytes.
constexpr std::size_t kMaxTextureWidth = 131'072;
constexpr std::size_t kMaxTextureHeight = 65'000;
constexpr std::size_t kMaxTextureElements = std::size_t{1} << 27U;
constexpr std::size_t kTextureRowBytes = 32;
constexpr std::size_t kMaxTextureRowBytes = 2'097'120;

TextureLayout texture_layout(const BoundSpace& space, const Config& config, const Argument& argument) {
  const auto refuse = [&](const std::string& why) {
    throw ArgumentError(fmt::format("texture '{}' of {}: {}", argument.name, space.problem().text(), why));
  };
  TextureLayout layout;
  layout.use = *argument.texture;
  layout.type = argument.composite ? argument.composite->members.front().type : space.type_of(argument);
  layout.channels = argument.composite ? static_cast<int>(argument.composite->members.size()) : 1;
  const auto channels = static_cast<std::size_t>(layout.channels);
  const std::size_t elements = static_cast<std::size_t>(space.value(argument, config)) / channels;
  layout.width = elements;
  if (!argument.columns) {
    if (elements > kMaxTextureElements) {
      refuse(fmt::format("{} elements; without 'columns' there are at most {}: make the problem smaller", elements,
                         kMaxTextureElements));
    }
    return layout;
  }
  layout.width = static_cast<std::size_t>(space.columns(argument, config)) / channels;
  layout.height = elements / layout.width;
  if (layout.width > kMaxTextureWidth || layout.height > kMaxTextureHeight) {
    refuse(fmt::format("{} rows of {} elements; there are at most {} rows of {}: make the problem smaller",
                       layout.height, layout.width, kMaxTextureHeight, kMaxTextureWidth));
  }
  const std::size_t row = layout.width * size_of(layout.type) * channels;
  if (row > kMaxTextureRowBytes) {
    refuse(fmt::format("a row has {} bytes; there are at most {}: make the problem smaller", row, kMaxTextureRowBytes));
  }
  if (row % kTextureRowBytes != 0) {
    refuse(
        fmt::format("a row has {} bytes, not a multiple of {}: round 'columns' up, for float32 to round_up(WIDTH, 8)",
                    row, kTextureRowBytes));
  }
  return layout;
}

void* named_pointer(std::span<const NamedPointer> buffers, const Argument& argument, const std::string& kernel) {
  const auto at = std::find_if(buffers.begin(), buffers.end(),
                               [&](const NamedPointer& buffer) { return buffer.name == argument.name; });
  if (at == buffers.end()) {
    throw Error(fmt::format("a launch of kernel '{}' is missing the buffer '{}'", kernel, argument.name));
  }
  return at->data;
}

void require_known_names(std::span<const NamedPointer> buffers, const Space& space) {
  for (const NamedPointer& buffer : buffers) {
    const bool known = std::any_of(space.arguments.begin(), space.arguments.end(), [&](const Argument& argument) {
      return argument.name == buffer.name && argument.kind == ArgumentKind::buffer &&
             argument.access != Access::scratch;
    });
    if (!known) {
      throw Error(fmt::format("kernel '{}' takes no buffer '{}' from its caller", space.kernel, buffer.name));
    }
  }
}

}  // namespace

void* ScratchPool::take(std::size_t bytes, std::span<void* const> taken) {
  const RawBuffer* best = nullptr;
  for (const RawBuffer& buffer : buffers_) {
    const bool free = std::find(taken.begin(), taken.end(), buffer.data()) == taken.end();
    if (free && buffer.bytes() >= bytes && (best == nullptr || buffer.bytes() < best->bytes())) {
      best = &buffer;
    }
  }
  return best != nullptr ? best->data() : buffers_.emplace_back(memory_->allocate_raw(bytes)).data();
}

std::size_t ScratchPool::bytes() const noexcept {
  std::size_t sum = 0;
  for (const RawBuffer& buffer : buffers_) {
    sum += buffer.bytes();
  }
  return sum;
}

LaunchArguments::LaunchArguments(Device& device, const BoundSpace& space, const Config& config,
                                 std::span<const NamedPointer> buffers)
    : LaunchArguments(device, space, config, buffers, space.space().launches) {}

LaunchArguments::LaunchArguments(Device& device, const BoundSpace& space, const Config& config,
                                 std::span<const NamedPointer> buffers, std::span<const Launch> launches)
    : LaunchArguments(device, space, config, buffers, launches, nullptr) {}

LaunchArguments::LaunchArguments(Device& device, const BoundSpace& space, const Config& config, ScratchPool& pool)
    : LaunchArguments(device, space, config, {}, space.space().launches, &pool) {}

LaunchArguments::LaunchArguments(Device& device, const BoundSpace& space, const Config& config,
                                 std::span<const NamedPointer> buffers, std::span<const Launch> launches,
                                 ScratchPool* pool) {
  const std::vector<Argument>& arguments = space.space().arguments;
  require_known_names(buffers, space.space());
  values_.resize(arguments.size());
  std::vector<std::size_t> numbers(arguments.size(), kNoBuffer);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (argument.kind == ArgumentKind::buffer && argument.access != Access::scratch) {
      numbers[i] = buffer_count_++;
    }
    if (!argument.symbol.empty()) {
      void* const data = pool != nullptr ? nullptr : named_pointer(buffers, argument, space.space().kernel);
      variables_.push_back({argument.symbol, numbers[i], {data, space.buffer_bytes(argument, config)}});
    }
    if (std::ranges::none_of(launches, [i](const Launch& launch) { return std::ranges::count(launch.arguments, i); })) {
      continue;
    }
    const bool is_scalar = argument.kind == ArgumentKind::scalar;
    values_[i].resize(is_scalar && argument.composite ? (argument.composite->bytes() + sizeof(Word) - 1) / sizeof(Word)
                                                      : 1);
    if (is_scalar) {
      store(space, config, argument, values_[i].data());
      continue;
    }
    const std::size_t bytes = space.buffer_bytes(argument, config);
    void* data = nullptr;
    if (argument.access == Access::scratch) {
      data = allocate_scratch(device, i, argument, bytes, pool);
    } else {
      data = pool != nullptr ? nullptr : named_pointer(buffers, argument, space.space().kernel);
    }
    data = bytes == 0 ? nullptr : data;
    if (argument.texture) {
      const Texture& texture = textures_.emplace_back(
          bytes == 0 ? Texture() : device.make_texture({data, bytes}, texture_layout(space, config, argument)));
      const std::uint64_t object = texture.object();
      std::memcpy(values_[i].data(), &object, sizeof object);
      continue;
    }
    std::memcpy(values_[i].data(), &data, sizeof data);
  }
  launches_.resize(launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    for (const std::size_t index : launches[i].arguments) {
      launches_[i].pointers.push_back(values_[index].data());
      launches_[i].buffers.push_back(numbers[index]);
    }
  }
}

void* LaunchArguments::allocate_scratch(Device& device, std::size_t index, const Argument& argument, std::size_t bytes,
                                        ScratchPool* pool) {
  if (argument.fill != Fill::none && argument.fill != Fill::zero) {
    throw Error(fmt::format("scratch buffer '{}' can only be filled with zeros or left as it is", argument.name));
  }
  if (bytes == 0) {
    return nullptr;
  }
  // A zeroed buffer is never shared: the kernel may count on its own last launch having left it zero.
  if (pool != nullptr && argument.fill == Fill::none) {
    return pooled_.emplace_back(pool->take(bytes, pooled_));
  }
  Scratch& scratch = scratch_.emplace_back(Scratch{index, argument.fill, device.allocate(bytes)});
  if (argument.fill == Fill::zero) {
    device.fill(scratch.buffer, 0);
  }
  return scratch.buffer.data();
}

std::span<void* const> LaunchArguments::gather(std::size_t launch, std::span<void* const> buffers,
                                               std::span<void*> to) const noexcept {
  const auto& [pointers, numbers] = launches_[launch];
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    // cuLaunchKernel reads the address through a void* that is not const.
    to[i] = numbers[i] == kNoBuffer ? pointers[i] : const_cast<void**>(&buffers[numbers[i]]);
  }
  return to.first(pointers.size());
}

std::string LaunchArguments::copy_variables(Device& device, std::span<const Kernel> kernels,
                                            std::span<void* const> buffers) const {
  std::string missing;
  for (const Variable& variable : variables_) {
    const std::size_t bytes = variable.contents.bytes;
    bool found = false;
    for (const Kernel& kernel : kernels) {
      const auto there = device.variable(kernel, variable.name);
      if (!there || there->bytes < bytes) {
        continue;
      }
      found = true;
      if (bytes > 0) {
        void* const from = buffers.empty() ? variable.contents.data : buffers[variable.buffer];
        device.memory().copy({}, {there->data, bytes}, {from, bytes});
      }
    }
    missing = found ? missing : variable.name;
  }
  return missing;
}

void LaunchArguments::refill_scratch(Device& device, std::uint8_t byte) const {
  for (const Scratch& scratch : scratch_) {
    device.fill(scratch.buffer, scratch.fill == Fill::zero ? 0 : byte);
  }
}

std::vector<Kernel> load_launches(Device& device, const Binary& binary) {
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i <= binary.then.size(); ++i) {
    kernels.push_back(device.load(binary.of_launch(i)));
  }
  return kernels;
}

void launch_all(Device& device, std::span<const Kernel> kernels, std::span<const Geometry> geometries,
                const LaunchArguments& arguments) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    device.launch(kernels[i], geometries[i], arguments.pointers(i));
  }
}

}  // namespace pascaline
