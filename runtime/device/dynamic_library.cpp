#include "runtime/device/dynamic_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "core/error.hpp"

namespace pascaline {

void DynamicLibrary::Close::operator()(void* handle) const noexcept { ::dlclose(handle); }

std::optional<DynamicLibrary> DynamicLibrary::try_open(const std::string& name, std::string* why, bool stay) {
  DynamicLibrary library;
  // RTLD_LOCAL lets several versions of one library live in a process.
  library.handle_.reset(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (stay ? RTLD_NODELETE : 0)));
  if (!library.handle_) {
    if (why != nullptr) {
      const char* reason = ::dlerror();
      *why = reason != nullptr ? reason : "unknown reason";
    }
    return std::nullopt;
  }
  library.path_ = name;
  link_map* map = nullptr;
  if (::dlinfo(library.handle_.get(), RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && *map->l_name != '\0') {
    library.path_ = map->l_name;
  }
  return library;
}

DynamicLibrary::DynamicLibrary(const std::string& name) {
  std::string why;
  std::optional<DynamicLibrary> opened = try_open(name, &why);
  if (!opened) {
    throw Error(fmt::format("cannot load library {}: {}", name, why));
  }
  *this = std::move(*opened);
}

void* DynamicLibrary::find(const char* symbol) const noexcept { return ::dlsym(handle_.get(), symbol); }

void* DynamicLibrary::require(const char* symbol) const {
  void* address = find(symbol);
  if (address == nullptr) {
    throw Error(fmt::format("library {} has no function {}; it is too old, or not the library that its name says",
                            path_, symbol));
  }
  return address;
}

}  // namespace pascaline
