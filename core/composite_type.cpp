#include "core/composite_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pascaline {
namespace {

struct VectorBase {
  std::string_view name;
  ElementType type;
};

// CUDA gives each of these with 1 to 4 members.
constexpr std::array<VectorBase, 10> kVectorBases{{{"char", ElementType::int8},
                                                   {"uchar", ElementType::uint8},
                                                   {"short", ElementType::int16},
                                                   {"ushort", ElementType::uint16},
                                                   {"int", ElementType::int32},
                                                   {"uint", ElementType::uint32},
                                                   {"longlong", ElementType::int64},
                                                   {"ulonglong", ElementType::uint64},
                                                   {"float", ElementType::float32},
                                                   {"double", ElementType::float64}}};

// Names without a number of members of their own, all of two.
constexpr std::array<VectorBase, 4> kPairs{{{"half2", ElementType::float16},
                                            {"nv_bfloat162", ElementType::bfloat16},
                                            {"complex64", ElementType::float32},
                                            {"complex128", ElementType::float64}}};

constexpr std::size_t kMaxAlignment = 16;  // no vector is aligned to more

void append(CompositeType& to, std::size_t bytes, std::size_t alignment, std::vector<CompositeType::Member> more) {
  const std::size_t begin = (to.end + alignment - 1) / alignment * alignment;
  for (CompositeType::Member& member : more) {
    member.offset += begin;
    to.members.push_back(std::move(member));
  }
  to.end = begin + bytes;
  to.alignment = std::max(to.alignment, alignment);
}

CompositeType vector_of(std::string_view name, ElementType type, std::size_t count) {
  CompositeType vector{std::string(name), {}, 0, 1, true};
  for (std::size_t i = 0; i < count; ++i) {
    vector.add(std::string(1, "xyzw"[i]), type);
  }
  vector.alignment = count == 3 ? size_of(type) : std::min(count * size_of(type), kMaxAlignment);
  return vector;
}

}  // namespace

std::optional<CompositeType> CompositeType::vector(std::string_view name) {
  for (const VectorBase& pair : kPairs) {
    if (pair.name == name) {
      return vector_of(name, pair.type, 2);
    }
  }
  for (const VectorBase& base : kVectorBases) {
    const bool fits = name.size() == base.name.size() + 1 && name.starts_with(base.name);
    if (fits && name.back() >= '1' && name.back() <= '4') {
      return vector_of(name, base.type, static_cast<std::size_t>(name.back() - '0'));
    }
  }
  return std::nullopt;
}

void CompositeType::add(const std::string& member, ElementType type) {
  const std::size_t size = bytes_of(type, 1);
  append(*this, size, size, {{member, type, 0}});
}

void CompositeType::add(const std::string& member, const CompositeType& type) {
  std::vector<Member> more = type.members;
  for (Member& one : more) {
    one.name = member + "." + one.name;
  }
  append(*this, type.bytes(), type.alignment, std::move(more));
}

// Only packed formats have no size, and no member is in one.
// NOLINTNEXTLINE(bugprone-exception-escape)
bool CompositeType::is_uniform() const noexcept {
  const ElementType first = members.front().type;
  return bytes() == members.size() * size_of(first) &&
         std::all_of(members.begin(), members.end(), [&](const Member& member) { return member.type == first; });
}

std::string CompositeType::text() const {
  if (is_vector) {
    return name;
  }
  std::string listed;
  for (const Member& member : members) {
    listed += fmt::format("{}{} {}", listed.empty() ? "" : ", ", member.name, name_of(member.type));
  }
  return fmt::format("{} ({}; {} bytes)", name, listed, bytes());
}

}  // namespace pascaline
