#pragma once

#include <string>
#include <string_view>

namespace pascaline::testing {

/// Reads the bytes as a bundle: they are one, and then writing it gives a bundle that reads the same; or they are
/// refused with an Error that names the file, in one line. Returns whether they are one; throws std::logic_error
/// otherwise.
bool exercise_bundle(std::string_view bytes);

/// The bytes with the hash and the sizes in the header as they should be, as far as there is a header.
[[nodiscard]] std::string resealed(std::string_view bytes);

}  // namespace pascaline::testing
