#include "runtime/device/cubin_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint64_t kFileHeaderBytes = 64;
constexpr std::uint64_t kSectionHeaderBytes = 64;
constexpr std::uint64_t kSymbolBytes = 24;
constexpr std::uint32_t kTypeSymbols = 2;
constexpr std::uint32_t kTypeNoBits = 8;
constexpr unsigned kSymbolFunction = 2;
constexpr unsigned kSymbolEntry = 0x10;  ///< in st_other: a kernel, not a device function
constexpr std::uint8_t kInfoSized = 0x04;
constexpr std::int64_t kMaxThreads = 1024;  ///< of a block, on every GPU so far
constexpr std::string_view kCodePrefix = ".text.";

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

// Names end with a zero byte; the search for it is bounded, as many names may begin in one long text.
std::string_view text_at(std::string_view table, std::uint64_t offset) {
  constexpr std::uint64_t kMaxNameBytes = 4096;
  if (offset > table.size()) {
    throw Error(fmt::format("damaged cubin: a name at {} lies outside of its table; compile it again", offset));
  }
  const std::string_view rest = table.substr(offset, kMaxNameBytes);
  return rest.substr(0, rest.find('\0'));
}

// What a section of attributes says of one of them, in the order of its entries.
std::vector<std::string_view> sized_attributes(const CubinSection* section, CubinAttribute attribute) {
  const std::string_view bytes = section != nullptr ? section->bytes : std::string_view();
  std::vector<std::string_view> values;
  for (std::uint64_t offset = 0; offset + 4 <= bytes.size();) {
    const auto format = read_at<std::uint8_t>(bytes, offset);
    const auto kind = read_at<std::uint8_t>(bytes, offset + 1);
    const std::uint64_t size = format == kInfoSized ? read_at<std::uint16_t>(bytes, offset + 2) : 0;
    if (format == kInfoSized && kind == static_cast<std::uint8_t>(attribute)) {
      values.push_back(slice(bytes, offset + 4, size));
    }
    offset += 4 + size;
  }
  return values;
}

int clamped(std::uint64_t value) { return static_cast<int>(std::min<std::uint64_t>(value, 0x7fffffff)); }

}  // namespace

CubinFile::CubinFile(std::string_view bytes) {
  if (!bytes.starts_with("\x7f"
                         "ELF\x02\x01") ||
      bytes.size() < kFileHeaderBytes || read_at<std::uint16_t>(bytes, 18) != kMachineCuda) {
    throw Error("not a cubin: it is not a 64-bit ELF file of the CUDA architecture");
  }
  // CUDA 13 moved the SM version within the flags and marks that with the file's ABI version 8.
  const auto abi = read_at<std::uint8_t>(bytes, 8);
  const auto flags = read_at<std::uint32_t>(bytes, 48);
  sm_ = static_cast<int>((abi >= 8 ? flags >> 8U : flags) & 0xffU);
  read_sections(bytes);
  read_symbols();
}

void CubinFile::read_sections(std::string_view bytes) {
  const auto table = read_at<std::uint64_t>(bytes, 40);
  const auto header_bytes = read_at<std::uint16_t>(bytes, 58);
  const auto count = read_at<std::uint16_t>(bytes, 60);
  const auto names_index = read_at<std::uint16_t>(bytes, 62);
  if (header_bytes != kSectionHeaderBytes) {
    throw Error(fmt::format("damaged cubin: its section headers have {} bytes, not {}; compile it again", header_bytes,
                            kSectionHeaderBytes));
  }
  const std::string_view headers = slice(bytes, table, count * kSectionHeaderBytes);
  if (names_index >= count) {
    throw Error("damaged cubin: it has no table of section names; compile it again");
  }
  const auto bytes_of = [&](std::uint64_t header) {
    return slice(bytes, read_at<std::uint64_t>(headers, header + 24), read_at<std::uint64_t>(headers, header + 32));
  };
  const std::string_view names = bytes_of(names_index * kSectionHeaderBytes);
  sections_.reserve(count);
  for (std::uint64_t header = 0; header < headers.size(); header += kSectionHeaderBytes) {
    CubinSection section;
    section.name = text_at(names, read_at<std::uint32_t>(headers, header));
    section.type = read_at<std::uint32_t>(headers, header + 4);
    section.size = read_at<std::uint64_t>(headers, header + 32);
    section.link = read_at<std::uint32_t>(headers, header + 40);
    section.info = read_at<std::uint32_t>(headers, header + 44);
    section.bytes = section.type == kTypeNoBits ? std::string_view() : bytes_of(header);
    sections_.push_back(section);
  }
}

void CubinFile::read_symbols() {
  const auto table = std::find_if(sections_.begin(), sections_.end(),
                                  [](const CubinSection& section) { return section.type == kTypeSymbols; });
  if (table == sections_.end() || table->link >= sections_.size()) {
    throw Error("damaged cubin: it has no table of symbols; compile it again");
  }
  const std::string_view names = sections_[table->link].bytes;
  for (std::uint64_t offset = 0; offset + kSymbolBytes <= table->bytes.size(); offset += kSymbolBytes) {
    CubinSymbol symbol;
    symbol.name = text_at(names, read_at<std::uint32_t>(table->bytes, offset));
    symbol.index = static_cast<std::uint32_t>(symbols_.size());
    symbol.function = (read_at<std::uint8_t>(table->bytes, offset + 4) & 0xfU) == kSymbolFunction;
    symbol.entry = (read_at<std::uint8_t>(table->bytes, offset + 5) & kSymbolEntry) != 0;
    symbols_.push_back(symbol);
  }
}

const CubinSection* CubinFile::find(std::string_view name) const noexcept {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [name](const CubinSection& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

const CubinSymbol* CubinFile::find_function(std::string_view name) const noexcept {
  const auto found = std::find_if(symbols_.begin(), symbols_.end(),
                                  [name](const CubinSymbol& symbol) { return symbol.function && symbol.name == name; });
  return found == symbols_.end() ? nullptr : &*found;
}

std::vector<const CubinSymbol*> CubinFile::kernels() const {
  std::map<std::string_view, const CubinSymbol*> functions;
  for (const CubinSymbol& symbol : symbols_) {
    if (symbol.function) {
      functions.emplace(symbol.name, &symbol);
    }
  }
  std::vector<const CubinSymbol*> kernels;
  for (const CubinSection& section : sections_) {
    if (section.name.starts_with(kCodePrefix)) {
      const auto found = functions.find(section.name.substr(kCodePrefix.size()));
      if (found != functions.end() && found->second->entry) {
        kernels.push_back(found->second);
        functions.erase(found);  // a name has one section of code
      }
    }
  }
  return kernels;
}

std::optional<std::uint32_t> CubinFile::attribute(CubinAttribute attribute, std::uint32_t symbol) const {
  const CubinSection* section = find(".nv.info");
  for (const std::string_view value : sized_attributes(section, attribute)) {
    if (value.size() >= 8 && read_at<std::uint32_t>(value, 0) == symbol) {
      return read_at<std::uint32_t>(value, 4);
    }
  }
  return std::nullopt;
}

// Three extents, of which __launch_bounds__ sets the first.
std::int64_t CubinFile::launch_bounds(std::string_view function) const {
  const CubinSection* section = find(fmt::format(".nv.info.{}", function));
  for (const std::string_view value : sized_attributes(section, CubinAttribute::max_threads)) {
    std::int64_t threads = 1;
    for (std::uint64_t at = 0; at < 12; at += 4) {
      threads *= std::clamp<std::int64_t>(read_at<std::uint32_t>(value, at), 1, kMaxThreads);
    }
    return threads;
  }
  return 0;
}

int CubinFile::registers(const CubinSection& code, const CubinSymbol& function) const {
  // Before this attribute came up (11.x), only the section's header told the registers.
  return clamped(attribute(CubinAttribute::registers, function.index).value_or(code.info >> 24U));
}

// From sm_90 on the section begins with the 1 KiB that the system keeps of every block's shared memory, which neither
// ptxas nor the limit of a block counts.
int CubinFile::shared_bytes(std::string_view function) const {
  const CubinSection* section = find(fmt::format(".nv.shared.{}", function));
  const std::uint64_t reserved = sm() >= 90 ? 1024 : 0;
  return section == nullptr || section->size < reserved ? 0 : clamped(section->size - reserved);
}

int CubinFile::local_bytes(const CubinSymbol& function) const {
  return clamped(std::max(attribute(CubinAttribute::frame_bytes, function.index).value_or(0),
                          attribute(CubinAttribute::stack_bytes, function.index).value_or(0)));
}

}  // namespace pascaline
