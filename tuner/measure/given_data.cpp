#include "tuner/measure/given_data.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <regex>
#include <tuple>

#include "core/argument_error.hpp"
#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "model/checkpoint/mapped_file.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// Changes when the file is written to.
using Version = std::tuple<dev_t, ino_t, off_t, time_t, long>;

Version version_of(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0
             ? Version(status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
             : Version();
}

[[noreturn]] void refuse(const std::string& argument, const fs::path& file, const std::string& why) {
  throw ArgumentError(fmt::format("contents of '{}': {}: {}", argument, file.string(), why));
}

// The header of NumPy's format (version 1 to 3): a magic text, a length, and a Python dict of three entries.
struct NumpyHeader {
  std::string type;  ///< as "<f4"; of structures empty
  bool big_endian = false;
  std::size_t bytes = 0;
  bool by_columns = false;  ///< of several dimensions
};

std::optional<NumpyHeader> numpy_header(std::string_view file) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kVersionAt = 6;
  constexpr std::size_t kLengthAt = 8;
  if (!file.starts_with(kMagic) || file.size() < kLengthAt + sizeof(std::uint32_t)) {
    return std::nullopt;
  }
  const std::size_t length_bytes = file[kVersionAt] == 1 ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(file[kLengthAt + i])) << (8 * i);
  }
  NumpyHeader header;
  header.bytes = kLengthAt + length_bytes + length;
  if (header.bytes > file.size()) {
    return std::nullopt;
  }
  const std::string text(file.substr(kLengthAt + length_bytes, length));
  static const std::regex type("'descr': *'([^']*)'");
  static const std::regex by_columns("'fortran_order': *True");
  static const std::regex several("'shape': *\\([0-9]+, *[0-9]");
  if (std::smatch found; std::regex_search(text, found, type)) {
    header.type = found.str(1);
  }
  header.big_endian = text.find("'>") != std::string::npos;
  header.by_columns = std::regex_search(text, by_columns) && std::regex_search(text, several);
  return header;
}

// NumPy's name for the type; of those that it lacks, that of as many bytes.
std::string numpy_type(ElementType type) {
  const std::size_t bytes = size_of(type);
  const std::string_view name = name_of(type);
  const std::string letter = type == ElementType::bfloat16 ? "V"
                             : name == "bool"              ? "b"
                             : name.starts_with("float")   ? "f"
                             : name.starts_with("uint")    ? "u"
                                                           : "i";
  return fmt::format("{}{}{}", bytes == 1 || letter == "V" ? "|" : "<", letter, bytes);
}

const Argument& buffer_named(const Space& space, const std::string& name, bool (*fits)(const Argument&) noexcept,
                             const fs::path& file, const char* kind) {
  const auto found = std::ranges::find(space.arguments, name, &Argument::name);
  if (found == space.arguments.end() || !fits(*found)) {
    std::string known;
    for (const Argument& argument : space.arguments) {
      known += fits(argument) ? (known.empty() ? "" : ", ") + argument.name : "";
    }
    refuse(name, file,
           fmt::format("kernel '{}' has no {} of that name (it has: {})", space.kernel, kind,
                       known.empty() ? "none" : known));
  }
  return *found;
}

template <typename Files>
std::span<const std::byte> contents_of(const Files& files, std::string_view argument, bool is_answer) {
  const auto found = std::ranges::find_if(
      files, [&](const auto& file) { return file->is_answer == is_answer && file->argument == argument; });
  return found != files.end() ? (*found)->contents : std::span<const std::byte>();
}

}  // namespace

struct GivenData::File {
  std::string argument;
  bool is_answer = false;
  MappedFile file;
  Version version;
  std::span<const std::byte> contents;

  File(const std::string& name, bool answer, const fs::path& path, const BoundSpace& space)
      : argument(name), is_answer(answer), file(opened(name, path)), version(version_of(path)), contents(file.bytes()) {
    const Argument& buffer = buffer_named(space.space(), name, is_answer ? is_output : is_input, path,
                                          is_answer ? "output buffer" : "input buffer");
    const ElementType type = space.type_of(buffer);
    if (is_matrix_format(type)) {
      refuse(name, path,
             fmt::format("{} is a packed weight format, which --input and --answer do not support", name_of(type)));
    }
    take_numpy(buffer, type);
    const std::size_t wanted = space.buffer_bytes(buffer, space.default_config());
    const std::size_t size = buffer.composite ? buffer.composite->bytes() : size_of(type);
    if (contents.size() != wanted) {
      refuse(name, path,
             fmt::format("it has {} elements of {} ({} bytes), where {} needs {} ({} bytes)", contents.size() / size,
                         buffer.composite ? buffer.composite->name : name_of(type), contents.size(),
                         space.problem().text(), wanted / size, wanted));
    }
  }

 private:
  static MappedFile opened(const std::string& name, const fs::path& path) try {
    return MappedFile(path);
  } catch (const Error& error) {
    throw ArgumentError(fmt::format("contents of '{}': {}", name, error.what()));
  }

  void take_numpy(const Argument& buffer, ElementType type) {
    const auto header = numpy_header({reinterpret_cast<const char*>(contents.data()), contents.size()});
    if (!header) {
      if (file.path().extension() == ".npy") {
        refuse(argument, file.path(), "this is not a valid .npy file");
      }
      return;
    }
    const std::string wanted = numpy_type(type);
    const std::string complex = buffer.composite ? fmt::format("c{}", 2 * size_of(type)) : "";
    const std::string kind = header->type.substr(std::min<std::size_t>(header->type.size(), 1));
    const bool fits = kind == wanted.substr(1) || (!complex.empty() && kind == complex);
    if (header->big_endian || (!fits && !is_mixed(buffer))) {  // of structures the size is compared alone
      refuse(argument, file.path(),
             fmt::format("its dtype is '{}', {} needs '{}'", header->type, name_of(type), wanted));
    }
    if (header->by_columns) {
      refuse(argument, file.path(), "it is in Fortran (column-major) order; save numpy.ascontiguousarray(array)");
    }
    contents = contents.subspan(header->bytes);
  }
};

GivenData::GivenData(const GivenFiles& files, const BoundSpace& space) {
  for (const bool is_answer : {false, true}) {
    for (const auto& [argument, file] : is_answer ? files.answers : files.inputs) {
      if (std::ranges::any_of(files_, [&, &name = argument](const auto& known) {
            return known->argument == name && known->is_answer == is_answer;
          })) {
        refuse(argument, file, "it is given twice");
      }
      files_.push_back(std::make_shared<const File>(argument, is_answer, file, space));
    }
  }
  std::ranges::sort(files_, {}, [](const auto& file) { return std::pair(file->is_answer, file->argument); });
}

std::string GivenData::hash() const {
  if (files_.empty()) {
    return {};
  }
  constexpr std::size_t kDigits = 16;
  FieldHash hash;
  for (const auto& file : files_) {
    hash.add(file->is_answer ? "answer" : "input")
        .add(file->argument)
        .add(hash_hex({reinterpret_cast<const char*>(file->contents.data()), file->contents.size()}));
  }
  return hash.hex().substr(0, kDigits);
}

std::span<const std::byte> GivenData::input(std::string_view argument) const {
  return contents_of(files_, argument, false);
}

std::span<const std::byte> GivenData::answer(std::string_view argument) const {
  return contents_of(files_, argument, true);
}

void GivenData::require_unchanged() const {
  for (const auto& file : files_) {
    if (version_of(file->file.path()) != file->version) {
      refuse(file->argument, file->file.path(), "this file has changed since it was opened");
    }
  }
}

}  // namespace pascaline
