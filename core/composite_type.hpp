#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/element_type.hpp"

namespace pascaline {

/// A type of several numbers as C++ lays it out on a device: a vector of CUDA (`float4`, `half2`), a complex number, or
/// a structure of a search space.
struct CompositeType {
  struct Member {
    std::string name;  ///< in C++: `x`; of members of members and of arrays `position.x`, `weights[2]`
    ElementType type = ElementType::float32;
    std::size_t offset = 0;  ///< bytes
  };

  std::string name;
  std::vector<Member> members;  ///< in the order of their offsets
  std::size_t end = 0;          ///< byte after the last member
  std::size_t alignment = 1;    ///< bytes
  bool is_vector = false;       ///< a vector or complex number: classes of its size with other members hold it, too

  /// The vector or complex number of that name, or nothing.
  static std::optional<CompositeType> vector(std::string_view name);
  /// Adds a member after the others, at the next multiple of its alignment. Throws Error for a format of matrices.
  void add(const std::string& member, ElementType type);
  void add(const std::string& member, const CompositeType& type);
  /// Bytes of one, filled up to its alignment.
  [[nodiscard]] std::size_t bytes() const noexcept { return (end + alignment - 1) / alignment * alignment; }
  /// All members are of one type, without gaps: many of them are as many numbers as they have.
  [[nodiscard]] bool is_uniform() const noexcept;
  /// Gives "Particle (x float32, id int32; 8 bytes)", or the name of a vector.
  [[nodiscard]] std::string text() const;
};

}  // namespace pascaline
