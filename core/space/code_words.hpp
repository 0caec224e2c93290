#pragma once

#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

// Search spaces and bundles may come from anyone. What of them becomes C++, a compiler's option or a file's name is
// held to what these allow. Each gives what is wrong, to be read after the text in question, or nothing.

/// Whether a name may have this letter.
[[nodiscard]] inline bool is_word(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The place of `word` as a whole word in a text, at `from` or later; npos without one.
[[nodiscard]] std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0);

/// Whether C++ takes it for a name: letters and digits of ASCII and `_`, no digit in front.
[[nodiscard]] bool is_identifier(std::string_view name) noexcept;

/// Of any name of a space: no variable that CUDA gives every kernel.
[[nodiscard]] std::optional<std::string> why_cuda_has_name(std::string_view name);

/// Of a function or macro of a kernel: an identifier that is no word of C++, no variable of CUDA and not reserved for
/// the compiler.
[[nodiscard]] std::optional<std::string> why_no_code_name(std::string_view name);

/// For a kernel's function: a name in code, with namespaces and with template arguments, which are as a macro's value:
/// "k", "app::k", "app::k<float, TILE>".
[[nodiscard]] std::optional<std::string> why_no_function(std::string_view function);

/// Of a macro of a kernel: as a name in code, and none of the program's own.
[[nodiscard]] std::optional<std::string> why_no_macro_name(std::string_view name);

/// Of a macro's body: numbers and names, as of a type, without what could call, assign or declare something.
[[nodiscard]] std::optional<std::string> why_no_macro_value(std::string_view value);

/// Of a macro as a compiler is told: `NAME` or `NAME=value`.
[[nodiscard]] std::optional<std::string> why_no_define(std::string_view define);

/// Of an option of NVRTC: one of those that are known to steer the code and nothing else. None that reads or writes
/// files, loads code, or changes what the program itself asks for is among them; nor does any define a macro of the
/// program's own.
[[nodiscard]] std::optional<std::string> why_no_compiler_option(std::string_view option);

/// Of a kernel's name, which is the stem of its files: letters, digits, `_`, `-` and `.`, none of the last two in
/// front.
[[nodiscard]] std::optional<std::string> why_no_kernel_name(std::string_view name);

/// The file of a kernel in a folder, `kernel` + `ending`; throws Error if that is no kernel's name.
[[nodiscard]] std::filesystem::path kernel_file(const std::filesystem::path& folder, std::string_view kernel,
                                                std::string_view ending);

/// The function's name without namespaces and template arguments: "k" of "app::k<float, TILE>".
[[nodiscard]] std::string_view bare_function(std::string_view function);

/// The parts of a qualified name: "filters" and "taps" of "filters::taps".
[[nodiscard]] std::vector<std::string_view> scopes_of(std::string_view name);

/// The name by which compilers of CUDA and g++ export a variable (Itanium C++ ABI): "taps" of "taps",
/// "_ZN7filters4tapsE" of "filters::taps".
[[nodiscard]] std::string linker_name(std::string_view name);

}  // namespace pascaline
