#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace pascaline {

/// A file of a model folder is damaged, incomplete, of another kind or not supported; the message begins with the file.
class ModelError : public Error {
 public:
  using Error::Error;
};

/// A name out of a file, fit for one line of a message: in quotes, control characters replaced, cut if it is long.
[[nodiscard]] std::string quoted_name(std::string_view name);
/// The first few names, each `quoted_name`, and how many more there are.
[[nodiscard]] std::string quoted_names(const std::vector<std::string>& names);

/// Text of one of a model folder's JSON files. Throws ModelError if it is no regular file, is larger than `max_bytes`
/// or cannot be read.
[[nodiscard]] std::string read_model_file(const std::filesystem::path& file, std::uintmax_t max_bytes);

}  // namespace pascaline
