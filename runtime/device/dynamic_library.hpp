#pragma once

#include <memory>
#include <optional>
#include <string>

namespace pascaline {

/// A shared library opened at run time. Move-only; closes itself.
class DynamicLibrary {
 public:
  /// Opens a file, or a name the dynamic loader looks up, with its symbols kept private; throws Error with the
  /// loader's reason.
  explicit DynamicLibrary(const std::string& name);
  /// As the constructor, but nothing if it cannot be opened; `why` (may be null) receives the loader's reason. With
  /// `stay` the library remains loaded for good, which one needs that leaks or keeps threads.
  static std::optional<DynamicLibrary> try_open(const std::string& name, std::string* why = nullptr, bool stay = false);

  /// The symbol's address, or null.
  [[nodiscard]] void* find(const char* symbol) const noexcept;
  /// The function of that name; throws Error naming library and symbol if there is none.
  template <typename Function>
  [[nodiscard]] Function function(const char* symbol) const {
    return reinterpret_cast<Function>(require(symbol));
  }
  /// The file it was loaded from, as the loader knows it.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  DynamicLibrary() = default;
  [[nodiscard]] void* require(const char* symbol) const;

  std::unique_ptr<void, Close> handle_;
  std::string path_;
};

}  // namespace pascaline
