#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pascaline {

/// What an attribute of `.nv.info` says of a symbol.
enum class CubinAttribute : std::uint8_t {
  max_threads = 0x05,
  frame_bytes = 0x11,
  stack_bytes = 0x12,
  registers = 0x2f
};

/// A section of a cubin. The views point into the bytes that the file was read from.
struct CubinSection {
  std::string_view name;
  std::string_view bytes;  ///< empty for one that takes no room in the file
  std::uint64_t size = 0;  ///< bytes on the device
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
};

struct CubinSymbol {
  std::string_view name;
  std::uint32_t index = 0;
  bool function = false;
  bool entry = false;  ///< a kernel, not a device function
};

/// The sections and symbols of a cubin, a 64-bit little-endian ELF file. Every offset and size is checked against the
/// file before it is used; memory is at most a few times that of the file. It keeps views into the bytes that it is
/// given.
class CubinFile {
 public:
  /// Throws Error, with one line, if the bytes are not a CUDA ELF file or are damaged.
  explicit CubinFile(std::string_view bytes);

  /// Compute capability, 61 for sm_61.
  [[nodiscard]] int sm() const noexcept { return sm_; }
  [[nodiscard]] const std::vector<CubinSection>& sections() const noexcept { return sections_; }
  /// The first section with that name; null if there is none.
  [[nodiscard]] const CubinSection* find(std::string_view name) const noexcept;
  /// The first function with that name; null if there is none.
  [[nodiscard]] const CubinSymbol* find_function(std::string_view name) const noexcept;
  /// The kernels that have code, in the order of their sections.
  [[nodiscard]] std::vector<const CubinSymbol*> kernels() const;
  /// The number that `.nv.info` gives for an attribute of a symbol. Throws Error if that section is damaged.
  [[nodiscard]] std::optional<std::uint32_t> attribute(CubinAttribute attribute, std::uint32_t symbol) const;

  /// Registers per thread of a function with code in `code`.
  [[nodiscard]] int registers(const CubinSection& code, const CubinSymbol& function) const;
  /// Static shared memory per block, in bytes.
  [[nodiscard]] int shared_bytes(std::string_view function) const;
  /// Local memory per thread (stack and spills), in bytes.
  [[nodiscard]] int local_bytes(const CubinSymbol& function) const;
  /// Threads that a block may have by the source; 0 if that says nothing.
  [[nodiscard]] std::int64_t launch_bounds(std::string_view function) const;

 private:
  void read_sections(std::string_view bytes);
  void read_symbols();

  int sm_ = 0;
  std::vector<CubinSection> sections_;
  std::vector<CubinSymbol> symbols_;
};

}  // namespace pascaline
