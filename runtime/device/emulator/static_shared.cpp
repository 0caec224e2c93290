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

// Thread-local symbols, except those that the shim and dynamic shared memory need. Offsets are from
// pascaline_host::current.
std::vector<SharedVariable> shared_variables(std::string_view object, const Elf64_Shdr& symbols,
                                             const Elf64_Shdr& names) {
  std::vector<SharedVariable> found;
  std::ptrdiff_t current = 0;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = element_at<Elf64_Sym>(object, symbols.sh_offset + at);
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_TLS) {
      continue;
    }
    const std::string_view name = name_at(object, names, symbol->st_name);
    const auto place = static_cast<std::ptrdiff_t>(symbol->st_value);
    const bool of_shim = name.find("pascaline_host") != std::string_view::npos;
    if (of_shim && name.ends_with("7currentE")) {
      current = place;
    }
    const bool own =
        of_shim || name.starts_with("__tls_guard") || name.find("pascaline_dynamic") != std::string_view::npos;
    if (!own) {
      found.push_back({place, symbol->st_size});
    }
  }
  for (SharedVariable& variable : found) {
    variable.offset -= current;
  }
  return found;
}

// Applies `of_table` to the object's table of symbols and the table of their names; an object without them has none.
template <typename Found>
std::vector<Found> of_symbols(std::string_view object,
                              std::vector<Found> (*of_table)(std::string_view, const Elf64_Shdr&, const Elf64_Shdr&)) {
  const auto header = element_at<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section = element_at<Elf64_Shdr>(object, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (section && section->sh_type == SHT_SYMTAB) {
      const auto names = element_at<Elf64_Shdr>(object, header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
      return names ? of_table(object, *section, *names) : std::vector<Found>();
    }
  }
  return {};
}

std::vector<GlobalVariable> variables_of(std::string_view object, const Elf64_Shdr& symbols, const Elf64_Shdr& names) {
  std::vector<GlobalVariable> found;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = element_at<Elf64_Sym>(object, symbols.sh_offset + at);
    if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF) {
      found.push_back({std::string(name_at(object, names, symbol->st_name)),
                       static_cast<std::ptrdiff_t>(symbol->st_value), symbol->st_size});
    }
  }
  return found;
}

}  // namespace

std::vector<SharedVariable> static_shared_variables(std::string_view object) {
  return of_symbols(object, shared_variables);
}

std::vector<GlobalVariable> global_variables(std::string_view object) { return of_symbols(object, variables_of); }

int static_shared_bytes(std::string_view object) {
  std::size_t bytes = 0;
  for (const SharedVariable& variable : static_shared_variables(object)) {
    bytes += variable.bytes;
  }
  return static_cast<int>(bytes);
}

}  // namespace pascaline
