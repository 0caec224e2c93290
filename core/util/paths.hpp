#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pascaline {

class Descriptor;

/// From now on this process is taken for a program that is installed as `prefix`/bin/pascaline, for those that are not:
/// programs which load the library. Call it before anything else.
void set_installation_prefix(const std::filesystem::path& prefix);

/// Prefix that the program, or the library or Python module that this code is part of, is installed under: the one set,
/// else the folder over that of its file; nothing if that is not known.
[[nodiscard]] std::optional<std::filesystem::path> installation_prefix();

/// Folder with the data of that name (`kernel_templates`, `search_spaces`, `shim`): under
/// $PASCALINE_DATA_DIR, else in `share/pascaline` of `installation_prefix`, else in the source tree (`source_tree`).
/// Never in the working directory, and never one that somebody can change who cannot change the program. Throws Error
/// naming the places tried.
[[nodiscard]] std::filesystem::path data_folder(std::string_view name);

/// Folder for compiled kernels: $PASCALINE_CACHE_DIR, else $XDG_CACHE_HOME/pascaline, else ~/.cache/pascaline. The last
/// two count with full paths only; ~ is $HOME, else what the password database says. Throws Error without any of them.
[[nodiscard]] std::filesystem::path cache_folder();

/// Default database: $PASCALINE_DB, else $XDG_DATA_HOME/pascaline/tuned.db, else ~/.local/share/pascaline/tuned.db, as
/// in `cache_folder`.
[[nodiscard]] std::filesystem::path default_database();

/// Whole file as bytes; throws Error naming it, also if it has more than `most` bytes (a device may have no end) or is
/// a named pipe, which would be waited for; a shell's `<(command)` is read.
[[nodiscard]] std::string read_file(const std::filesystem::path& file, std::size_t most = std::string::npos);

/// The rest of an open file; `file` names it in errors.
[[nodiscard]] std::string read_file(const Descriptor& open, const std::filesystem::path& file,
                                    std::size_t most = std::string::npos);

/// Writes a FileDraft and completes it. Throws Error naming the file and the cause (disk full among them).
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes, mode_t mode = 0666);

/// The same for files in a folder that anyone may have made: whatever has that name, such as a symbolic link to another
/// file, is replaced and never written through.
void replace_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace pascaline
