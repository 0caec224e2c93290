#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"

namespace pascaline {

/// A piece of text of a T1 file with its place.
struct T1Text {
  std::string text;
  std::string pointer;  ///< JSON pointer (RFC 6901)
};

struct T1Parameter {
  std::string name;
  std::string type;           ///< int, uint, float, bool or string
  std::vector<Value> values;  ///< of that type, each once
};

struct T1Condition {
  std::vector<std::string> parameters;
  T1Text python;
  std::string expression;  ///< the same in the language of core/space/expression.hpp
};

struct T1Argument {
  std::string name;    ///< "argument_N", counted from 0, if it has none
  std::string type;    ///< float, int32, …
  std::string memory;  ///< Scalar, Vector, Local or Symbol
  std::string access;  ///< ReadOnly, WriteOnly, ReadWrite, or empty
  std::string fill;    ///< Constant, Random, Generator, Script, BinaryRaw, BinaryHDF, or empty
  std::optional<double> fill_value;
  T1Text size;  ///< elements of a vector: Python; empty if there is none
  std::string pointer;
};

/// A tuning problem in T1's input format 1.0.0.
struct T1Input {
  std::string file;
  std::vector<T1Parameter> parameters;
  std::vector<T1Condition> conditions;
  std::string language;  ///< OpenCL, CUDA, Vulkan or Hypertuner
  std::string kernel_name;
  std::string kernel_file;  ///< as it is written
  std::string device;       ///< possibly empty
  std::vector<std::int64_t> problem_size;
  std::string global_size_type;       ///< OpenCL, CUDA, Vulkan, or empty
  std::array<T1Text, 3> global_size;  ///< Python; empty if it is not given
  std::array<T1Text, 3> local_size;
  std::array<std::vector<T1Text>, 3> grid_divisors;
  bool has_grid_divisors = false;
  std::int64_t shared_bytes = 0;
  std::vector<std::string> compiler_options;
  std::vector<T1Argument> arguments;
};

/// Reads a T1 input, plain or packed with gzip. `Values` and conditions are Python texts; they are parsed, never run.
/// Throws SpaceError with file, JSON pointer and, in a Python text, column; Error if the file cannot be read.
[[nodiscard]] T1Input read_t1(const std::filesystem::path& file);

/// As above, of its contents; `file` stands for it in messages.
[[nodiscard]] T1Input parse_t1(std::string_view text, const std::string& file);

}  // namespace pascaline
