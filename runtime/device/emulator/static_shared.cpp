#include "runtime/device/emulator/static_shared.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace pascaline {
namespace {

template <typename T>
std::optional<T> element_at(std::string_view object, std::uint64_t offset) {
  if (offset > object.size() || object.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, object.data() + offset, sizeof value);
  return value;
}

std::string_view name_at(std::string_view object, const Elf64_Shdr& names, std::uint32_t offset) {
  if (names.sh_offset > object.size() || offset >= object.size() - names.sh_offset) {
    return {};
  }
  const std::string_view rest = object.substr(names.sh_offset + offset);
  return rest.substr(0, rest.find('\0'));
}

struct NamedSymbol {
  std::string_view name;
  Elf64_Sym symbol{};
};

// None if it is not an ELF object of 64 bits, or has no table of symbols.
std::vector<NamedSymbol> symbols_of(std::string_view object) {
  std::vector<NamedSymbol> found;
  const auto header = element_at<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    return found;
  }
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section = element_at<Elf64_Shdr>(object, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || section->sh_type != SHT_SYMTAB) {
      continue;
    }
    const auto names = element_at<Elf64_Shdr>(object, header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    for (std::uint64_t at = 0; names && at + sizeof(Elf64_Sym) <= section->sh_size; at += sizeof(Elf64_Sym)) {
      if (const auto symbol = element_at<Elf64_Sym>(object, section->sh_offset + at)) {
        found.push_back({name_at(object, *names, symbol->st_name), *symbol});
      }
    }
    return found;
  }
  return found;
}

}  // namespace

// Thread-local symbols, except those that the shim and dynamic shared memory need. Offsets are from
// pascaline_host::current.
std::vector<SharedVariable> static_shared_variables(std::string_view object) {
  std::vector<SharedVariable> found;
  std::ptrdiff_t current = 0;
  for (const auto& [name, symbol] : symbols_of(object)) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS) {
      continue;
    }
    const auto place = static_cast<std::ptrdiff_t>(symbol.st_value);
    const bool of_shim = name.find("pascaline_host") != std::string_view::npos;
    if (of_shim && name.ends_with("7currentE")) {
      current = place;
    }
    const bool own =
        of_shim || name.starts_with("__tls_guard") || name.find("pascaline_dynamic") != std::string_view::npos;
    if (!own) {
      found.push_back({place, symbol.st_size});
    }
  }
  for (SharedVariable& variable : found) {
    variable.offset -= current;
  }
  return found;
}

std::vector<GlobalVariable> global_variables(std::string_view object) {
  std::vector<GlobalVariable> found;
  for (const auto& [name, symbol] : symbols_of(object)) {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF) {
      found.push_back({std::string(name), static_cast<std::ptrdiff_t>(symbol.st_value), symbol.st_size});
    }
  }
  return found;
}

int static_shared_bytes(std::string_view object) {
  std::size_t bytes = 0;
  for (const SharedVariable& variable : static_shared_variables(object)) {
    bytes += variable.bytes;
  }
  return static_cast<int>(bytes);
}

}  // namespace pascaline
