#include "tuner/measure/member_numbers.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/elements.hpp"

namespace pascaline {

std::vector<double> widen(const Argument& buffer, ElementType type, std::span<const std::byte> bytes) {
  if (!is_mixed(buffer)) {
    return widen(type, bytes);
  }
  const CompositeType& composite = *buffer.composite;
  const std::size_t members = composite.members.size();
  const std::size_t count = bytes.size() / composite.bytes();
  std::vector<double> numbers(count * members);
  for (std::size_t j = 0; j < members; ++j) {
    const CompositeType::Member& member = composite.members[j];
    for (std::size_t i = 0; i < count; ++i) {
      const auto own = bytes.subspan(i * composite.bytes() + member.offset, size_of(member.type));
      widen_into({&numbers[i * members + j], 1}, member.type, own);
    }
  }
  return numbers;
}

std::vector<ElementType> number_types(const Argument& buffer, ElementType type) {
  if (!is_mixed(buffer)) {
    return {type};
  }
  std::vector<ElementType> types;
  for (const CompositeType::Member& member : buffer.composite->members) {
    types.push_back(member.type);
  }
  return types;
}

std::string name_of_number(const Argument& buffer, std::size_t at) {
  if (!buffer.composite) {
    return fmt::format("{}[{}]", buffer.name, at);
  }
  const auto& members = buffer.composite->members;
  return fmt::format("{}[{}].{}", buffer.name, at / members.size(), members[at % members.size()].name);
}

std::vector<std::byte> draw_members(const BoundSpace& space, const Argument& buffer, const DrawnMatrix& whole) {
  const CompositeType& composite = *buffer.composite;
  const auto members = static_cast<std::int64_t>(composite.members.size());
  const std::int64_t count = whole.rows * whole.columns / members;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * composite.bytes());
  if (count == 0) {
    return bytes;
  }
  for (std::size_t j = 0; j < composite.members.size(); ++j) {
    const CompositeType::Member& member = composite.members[j];
    const auto [low, high] = space.fill_range(buffer.members[j]);
    const std::int64_t columns = buffer.columns ? whole.columns / members : 1;
    const std::vector<std::byte> own =
        draw_matrix(member.type, count / columns, columns, buffer.members[j].fill, low, high, splitmix(whole.seed + j));
    const std::size_t size = size_of(member.type);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::memcpy(&bytes[i * composite.bytes() + member.offset], &own[i * size], size);
    }
  }
  return bytes;
}

}  // namespace pascaline
