#include "runtime/device/cubin_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "runtime/device/sass.hpp"

namespace pascaline {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kTypeSymbols = 2;
constexpr std::uint32_t kTypeNoBits = 8;
constexpr unsigned kSymbolFunction = 2;
constexpr unsigned kSymbolEntry = 0x10;  ///< in st_other: a kernel, not a device function

// Attributes of `.nv.info`, each a symbol's index and a number.
constexpr std::uint8_t kInfoFrameBytes = 0x11;
constexpr std::uint8_t kInfoStackBytes = 0x12;
constexpr std::uint8_t kInfoRegisters = 0x2f;
constexpr std::uint8_t kInfoSized = 0x04;

template <typename T>
T read_at(std::string_view bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    throw Error(fmt::format("damaged cubin: it ends before byte {}; compile it again", offset));
  }
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string_view slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) {
    throw Error(fmt::format("damaged cubin: {} bytes at {} lie outside of it; compile it again", size, offset));
  }
  return bytes.substr(offset, size);
}

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  const std::string_view rest = slice(table, offset, table.size() - std::min<std::uint64_t>(offset, table.size()));
  return rest.substr(0, rest.find('\0'));
}

struct Section {
  std::string_view name;
  std::string_view bytes;  ///< empty for one without bits
  std::uint64_t size = 0;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
};

struct Symbol {
  std::string_view name;
  std::uint32_t index = 0;
  bool function = false;
  bool entry = false;
};

class Cubin {
 public:
  explicit Cubin(std::string_view bytes);

  [[nodiscard]] int sm() const noexcept { return sm_; }
  [[nodiscard]] const std::vector<Section>& sections() const noexcept { return sections_; }
  [[nodiscard]] const Section* find(std::string_view name) const noexcept;
  [[nodiscard]] const Symbol* find_function(std::string_view name) const noexcept;
  /// The number `.nv.info` gives for that attribute of that symbol.
  [[nodiscard]] std::optional<std::uint32_t> info(std::uint8_t attribute, std::uint32_t symbol) const;

 private:
  void read_sections(std::string_view bytes);
  void read_symbols();

  int sm_ = 0;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
};

Cubin::Cubin(std::string_view bytes) {
  if (!bytes.starts_with("\x7f"
                         "ELF\x02\x01") ||
      bytes.size() < 64 || read_at<std::uint16_t>(bytes, 18) != kMachineCuda) {
    throw Error("not a cubin: it is not a 64-bit ELF file of the CUDA architecture");
  }
  // CUDA 13 moved the SM version within the flags and marks that with the file's ABI version 8.
  const auto abi = read_at<std::uint8_t>(bytes, 8);
  const auto flags = read_at<std::uint32_t>(bytes, 48);
  sm_ = static_cast<int>((abi >= 8 ? flags >> 8U : flags) & 0xffU);
  read_sections(bytes);
  read_symbols();
}

void Cubin::read_sections(std::string_view bytes) {
  constexpr std::uint64_t kHeaderBytes = 64;
  const auto table = read_at<std::uint64_t>(bytes, 40);
  const auto count = read_at<std::uint16_t>(bytes, 60);
  const auto names_index = read_at<std::uint16_t>(bytes, 62);
  const std::string_view headers = slice(bytes, table, count * kHeaderBytes);
  if (names_index >= count) {
    throw Error("damaged cubin: it has no table of section names; compile it again");
  }
  const auto bytes_of = [&](std::uint64_t header) {
    return slice(bytes, read_at<std::uint64_t>(headers, header + 24), read_at<std::uint64_t>(headers, header + 32));
  };
  const std::string_view names = bytes_of(names_index * kHeaderBytes);
  for (std::uint64_t header = 0; header < headers.size(); header += kHeaderBytes) {
    Section section;
    section.name = text_at(names, read_at<std::uint32_t>(headers, header));
    section.type = read_at<std::uint32_t>(headers, header + 4);
    section.size = read_at<std::uint64_t>(headers, header + 32);
    section.link = read_at<std::uint32_t>(headers, header + 40);
    section.info = read_at<std::uint32_t>(headers, header + 44);
    section.bytes = section.type == kTypeNoBits ? std::string_view() : bytes_of(header);
    sections_.push_back(section);
  }
}

void Cubin::read_symbols() {
  constexpr std::uint64_t kSymbolBytes = 24;
  const auto table = std::find_if(sections_.begin(), sections_.end(),
                                  [](const Section& section) { return section.type == kTypeSymbols; });
  if (table == sections_.end() || table->link >= sections_.size()) {
    throw Error("damaged cubin: it has no table of symbols; compile it again");
  }
  const std::string_view names = sections_[table->link].bytes;
  for (std::uint64_t offset = 0; offset + kSymbolBytes <= table->bytes.size(); offset += kSymbolBytes) {
    Symbol symbol;
    symbol.name = text_at(names, read_at<std::uint32_t>(table->bytes, offset));
    symbol.index = static_cast<std::uint32_t>(symbols_.size());
    symbol.function = (read_at<std::uint8_t>(table->bytes, offset + 4) & 0xfU) == kSymbolFunction;
    symbol.entry = (read_at<std::uint8_t>(table->bytes, offset + 5) & kSymbolEntry) != 0;
    symbols_.push_back(symbol);
  }
}

const Section* Cubin::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [name](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

const Symbol* Cubin::find_function(std::string_view name) const noexcept {
  const auto found = std::find_if(symbols_.begin(), symbols_.end(),
                                  [name](const Symbol& symbol) { return symbol.function && symbol.name == name; });
  return found == symbols_.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> Cubin::info(std::uint8_t attribute, std::uint32_t symbol) const {
  const Section* section = find(".nv.info");
  const std::string_view bytes = section != nullptr ? section->bytes : std::string_view();
  for (std::uint64_t offset = 0; offset + 4 <= bytes.size();) {
    const auto format = read_at<std::uint8_t>(bytes, offset);
    const auto kind = read_at<std::uint8_t>(bytes, offset + 1);
    const std::uint64_t size = format == kInfoSized ? read_at<std::uint16_t>(bytes, offset + 2) : 0;
    if (format == kInfoSized && kind == attribute && size >= 8 && read_at<std::uint32_t>(bytes, offset + 4) == symbol) {
      return read_at<std::uint32_t>(bytes, offset + 8);
    }
    offset += 4 + size;
  }
  return std::nullopt;
}

int clamped(std::uint64_t value) { return static_cast<int>(std::min<std::uint64_t>(value, 0x7fffffff)); }

// `.nv.constant0.<kernel>` holds the parameters, 2 and others the compiler's own, `.nv.constant3` the module's
// __constant__ variables.
std::uint64_t constant_bytes(const Cubin& cubin, std::string_view function) {
  constexpr std::string_view kPrefix = ".nv.constant";
  std::uint64_t total = 0;
  for (const Section& section : cubin.sections()) {
    if (section.name.starts_with(kPrefix) && section.name.size() > kPrefix.size()) {
      const std::string_view rest = section.name.substr(kPrefix.size() + 1);
      total += rest.empty() || (rest.front() == '.' && rest.substr(1) == function) ? section.size : 0;
    }
  }
  return total;
}

// From sm_90 on the section begins with the 1 KiB that the system keeps of every block's shared memory, which neither
// ptxas nor the limit of a block counts.
std::uint64_t shared_bytes(const Cubin& cubin, std::string_view function) {
  const Section* section = cubin.find(fmt::format(".nv.shared.{}", function));
  const std::uint64_t reserved = cubin.sm() >= 90 ? 1024 : 0;
  return section == nullptr || section->size < reserved ? 0 : section->size - reserved;
}

}  // namespace

int cubin_architecture(std::string_view cubin) { return Cubin(cubin).sm(); }

std::vector<std::string> cubin_kernels(std::string_view cubin) {
  constexpr std::string_view kPrefix = ".text.";
  const Cubin parsed(cubin);
  std::vector<std::string> names;
  for (const Section& section : parsed.sections()) {
    if (section.name.starts_with(kPrefix)) {
      const Symbol* symbol = parsed.find_function(section.name.substr(kPrefix.size()));
      if (symbol != nullptr && symbol->entry) {
        names.emplace_back(symbol->name);
      }
    }
  }
  return names;
}

Resources cubin_resources(std::string_view cubin, std::string_view function) {
  const Cubin parsed(cubin);
  const Section* code = parsed.find(fmt::format(".text.{}", function));
  const Symbol* symbol = parsed.find_function(function);
  if (code == nullptr || symbol == nullptr) {
    throw Error(
        fmt::format("the cubin has no kernel {}; its kernels must be extern \"C\" to keep their names", function));
  }
  Resources resources;
  // Before attribute 0x2f came up (11.x), only the section's header told the registers.
  resources.registers = clamped(parsed.info(kInfoRegisters, symbol->index).value_or(code->info >> 24U));
  resources.static_shared_bytes = clamped(shared_bytes(parsed, function));
  resources.constant_bytes = clamped(constant_bytes(parsed, function));
  resources.local_bytes = clamped(std::max(parsed.info(kInfoFrameBytes, symbol->index).value_or(0),
                                           parsed.info(kInfoStackBytes, symbol->index).value_or(0)));
  const InstructionCounts counts = count_instructions(code->bytes, parsed.sm());
  resources.instructions = counts.instructions;
  resources.ffma = counts.ffma;
  resources.local_loads = counts.local_loads;
  resources.local_stores = counts.local_stores;
  return resources;
}

std::string cubin_code_hash(std::string_view cubin) {
  FieldHash hash;
  const Cubin parsed(cubin);
  for (const Section& section : parsed.sections()) {
    const std::string_view name = section.name;
    const bool seen = name.starts_with(".text.") || name.starts_with(".rel") || name.starts_with(".nv.constant") ||
                      name.starts_with(".nv.global") || name.starts_with(".nv.shared") ||
                      (name.starts_with(".nv.info") && name != ".nv.info.notes");
    if (seen) {
      hash.add(name).add(section.bytes).add(fmt::format("{} {}", section.size, section.info));
    }
  }
  return hash.hex();
}

}  // namespace pascaline
