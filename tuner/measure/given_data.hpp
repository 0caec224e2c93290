#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/space/space.hpp"

namespace pascaline {

/// Files with the contents of a kernel's buffers, by the names of the arguments: of inputs, instead of drawn numbers,
/// and of outputs, instead of what the reference computes. A file begins as NumPy's do, or has the bytes alone.
struct GivenFiles {
  using Named = std::vector<std::pair<std::string, std::filesystem::path>>;
  Named inputs{};
  Named answers{};

  [[nodiscard]] bool empty() const noexcept { return inputs.empty() && answers.empty(); }
};

/// The contents of such files, for one problem. Copies share them.
class GivenData {
 public:
  /// None.
  GivenData() = default;
  /// Throws ArgumentError, one line with the argument and the file, if the kernel lacks such a buffer, it has a format
  /// of matrices, another extent or another type, or a file cannot be read.
  GivenData(const GivenFiles& files, const BoundSpace& space);

  /// Problem::data: the hash of all contents with their arguments. Empty without any.
  [[nodiscard]] std::string hash() const;
  /// An argument's contents; empty if they are not given.
  [[nodiscard]] std::span<const std::byte> input(std::string_view argument) const;
  [[nodiscard]] std::span<const std::byte> answer(std::string_view argument) const;
  /// Throws Error that names the file if one was written to since it was opened.
  void require_unchanged() const;

 private:
  struct File;
  std::vector<std::shared_ptr<const File>> files_;
};

}  // namespace pascaline
