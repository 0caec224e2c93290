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

/// Files with contents of a kernel's buffers, by the names of its arguments. `inputs` replace drawn numbers, `answers`
/// what the reference computes. A file is NumPy's .npy or raw bytes.
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
  /// Throws ArgumentError, one line with the argument and the file: the kernel has no such buffer, or one in a packed
  /// format, the size or the type is wrong, or the file cannot be read.
  GivenData(const GivenFiles& files, const BoundSpace& space);

  /// Problem::data: the hash of all contents with their arguments. Empty without any.
  [[nodiscard]] std::string hash() const;
  /// An argument's contents; empty if they are not given.
  [[nodiscard]] std::span<const std::byte> input(std::string_view argument) const;
  [[nodiscard]] std::span<const std::byte> answer(std::string_view argument) const;
  /// Throws ArgumentError that names the file if one has changed since it was opened.
  void require_unchanged() const;

 private:
  struct File;
  std::vector<std::shared_ptr<const File>> files_;
};

}  // namespace pascaline
