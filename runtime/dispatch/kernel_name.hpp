#pragma once

#include <cstdint>
#include <string_view>

namespace pascaline {

/// A kernel's name with its hash, which for a literal is computed when the program is compiled: kernels are then told
/// apart by a number. It refers to the text.
class KernelName {
 public:
  /// Of a literal; implicit, so that names can be written where kernels are asked for.
  consteval KernelName(const char* literal) : KernelName(std::string_view(literal)) {}  // NOLINT(google-explicit-*)
  /// Of a text that must outlive it.
  explicit constexpr KernelName(std::string_view text) noexcept : text_(text) {
    for (const char letter : text) {
      hash_ = (hash_ ^ static_cast<unsigned char>(letter)) * kPrime;
    }
  }

  [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }
  [[nodiscard]] constexpr std::uint64_t hash() const noexcept { return hash_; }

 private:
  // FNV-1a (Fowler, Noll, Vo) of 64 bits.
  static constexpr std::uint64_t kPrime = 0x100000001b3U;
  std::string_view text_;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace pascaline
