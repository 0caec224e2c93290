#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/composite_type.hpp"

namespace pascaline {

/// An argument of a launch, which the kernel's parameter at its place must be able to take.
struct LaunchedArgument {
  enum class Role : std::uint8_t {
    scalar,
    input,   ///< buffer that the kernel only reads
    output,  ///< buffer that the kernel writes
    scratch  ///< buffer of which only the size is agreed on
  };
  std::string name;
  Role role = Role::input;
  ElementType type = ElementType::float32;
  std::optional<CompositeType> composite{};  ///< instead of `type`
};

/// Code to be compiled after a source, which does not compile unless the parameters of `function` can take the
/// arguments. Scalars must agree in size and in being integers or floating-point numbers. A buffer's parameter points
/// to its element type, a vector of it, bytes, void, or a structure without a member `x`; integers may be read through
/// ones of other signedness, 8-bit integers through all others, and 16-bit floating-point numbers through unsigned
/// ones. A pointer to an output is not to constants. A composite type needs a class of its size with members of the
/// same names, types and offsets; a vector is also held by any other class of its size, such as a complex number.
[[nodiscard]] std::string signature_check(const std::string& function, const std::vector<LaunchedArgument>& arguments);

/// Whether a compiler's message is about that code, not about the source.
[[nodiscard]] bool is_of_signature_check(const std::string& message);

/// The message of a compiler that refused the code, as a sentence about `function`; nothing if it is another message.
[[nodiscard]] std::optional<std::string> signature_fault(const std::string& message, const std::string& function,
                                                         const std::vector<LaunchedArgument>& arguments);

}  // namespace pascaline
