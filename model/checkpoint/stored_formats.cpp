#include "model/checkpoint/stored_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/model_error.hpp"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

constexpr const char* kVersionKey = "pascaline.version";
constexpr const char* kVersion = "1";
constexpr const char* kRecipeKey = "pascaline.recipe";
constexpr const char* kFormatPrefix = "pascaline.format.";

std::string format_note(ElementType format, std::span<const std::int64_t> shape) {
  return fmt::format("{} [{}]", name_of(format), fmt::join(shape, ", "));
}

std::string float16x_note(Float16x format) {
  return fmt::format(" exponent_bits={} bias={}", format.exponent_bits, format.bias);
}

// What such a note says, or nothing if it is none or has a number outside its range.
std::optional<Float16x> read_float16x_note(std::string_view note) {
  const auto number_after = [&](std::string_view key) {
    const std::size_t at = note.find(key);
    int number = -1;
    if (at != std::string_view::npos) {
      std::from_chars(note.data() + at + key.size(), note.data() + note.size(), number);
    }
    return number;
  };
  const Float16x format{number_after("exponent_bits="), number_after("bias=")};
  return format.is_valid() && note == float16x_note(format) ? std::optional(format) : std::nullopt;
}

[[noreturn]] void fail_with(const Safetensors& file, std::string_view tensor, const std::string& problem) {
  throw ModelError(fmt::format("{}: tensor {}: {}", file.path().string(), quoted_name(tensor), problem));
}

void check_rows(const Safetensors& file, const StoredTensor& tensor, ElementType format, const TensorSpec& spec) {
  const std::int64_t rows = spec.shape.front();
  const auto row_bytes = static_cast<std::int64_t>(file_row_bytes(format, spec.elements() / rows));
  if (tensor.shape != std::vector<std::int64_t>{rows, row_bytes}) {
    fail_with(file, tensor.name,
              fmt::format("U8 [{}], but [{}] in {} is {} rows of {} bytes", fmt::join(tensor.shape, ", "),
                          fmt::join(spec.shape, ", "), name_of(format), rows, row_bytes));
  }
}

// The values of a row; `room` is for one in its file form.
void read_row_values(const StoredMatrix& matrix, std::int64_t row, std::vector<std::byte>& room,
                     std::span<float> values) {
  const auto stored_row = [&](std::size_t row_bytes) {
    return matrix.tensor->bytes.subspan(static_cast<std::size_t>(matrix.order.place_of(row)) * row_bytes, row_bytes);
  };
  if (matrix.coding == RowCoding::fp8) {
    read_fp8_row({matrix.parts.codes->bytes, matrix.parts.scales}, row, values);
    return;
  }
  const std::size_t row_bytes = file_row_bytes(matrix.format.type, matrix.columns);
  if (matrix.coding == RowCoding::awq) {
    room.resize(row_bytes);
    read_file_row(matrix, row, room);
    dequantize_row(matrix.format.type, room, values);
  } else if (matrix.format.type == ElementType::float16x) {
    floats_from_16x(matrix.format.float16x, stored_row(row_bytes), values);
  } else {
    dequantize_row(matrix.format.type, stored_row(row_bytes), values);
  }
}

}  // namespace

FormatNotes::FormatNotes(const std::string& recipe) : metadata_{{kVersionKey, kVersion}, {kRecipeKey, recipe}} {}

void FormatNotes::add(const std::string& tensor, ElementType format, std::span<const std::int64_t> shape) {
  metadata_[kFormatPrefix + tensor] = format_note(format, shape);
}

void FormatNotes::add(const std::string& tensor, Float16x format, std::span<const std::int64_t> shape) {
  metadata_[kFormatPrefix + tensor] = format_note(ElementType::float16x, shape) + float16x_note(format);
}

bool FormatNotes::are_in(const Safetensors& file) {
  const std::string_view prefix = kFormatPrefix;
  bool found = false;
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(prefix)) {
      found = true;
      if (file.find(std::string_view(key).substr(prefix.size())) == nullptr) {
        fail_with(file, std::string_view(key).substr(prefix.size()),
                  "the metadata has a format for it, but it is not in the file");
      }
    }
  }
  const auto version = file.metadata().find(kVersionKey);
  if (version == file.metadata().end() && !found) {
    return false;
  }
  if (version == file.metadata().end() || version->second != kVersion) {
    throw ModelError(fmt::format("{}: its metadata must say {} {}, not {}: quantize the model again with this program",
                                 file.path().string(), kVersionKey, kVersion,
                                 version == file.metadata().end() ? "nothing" : quoted_name(version->second)));
  }
  return true;
}

std::string FormatNotes::recipe_of(const Safetensors& file) {
  const auto found = file.metadata().find(kRecipeKey);
  return found == file.metadata().end() ? "" : found->second;
}

std::optional<StoredFormat> FormatNotes::format_of(const Safetensors& file, const StoredTensor& tensor,
                                                   const TensorSpec& spec) {
  const auto found = file.metadata().find(kFormatPrefix + tensor.name);
  if (found == file.metadata().end()) {
    return std::nullopt;
  }
  const std::string& note = found->second;
  const auto format = element_type_from(std::string_view(note).substr(0, note.find(' ')));
  if (!format || !is_matrix_format(*format)) {
    fail_with(file, tensor.name,
              fmt::format("the metadata says {}, which begins with no format of matrices", quoted_name(note)));
  }
  if (spec.kind != TensorKind::matrix) {
    fail_with(file, tensor.name, fmt::format("the metadata says {}, but it is no matrix", quoted_name(note)));
  }
  const std::string expected = format_note(*format, spec.shape);
  const bool has_codes = *format == ElementType::float16x && tensor.type == StoredType::U8;
  if (has_codes ? !note.starts_with(expected) : note != expected) {
    fail_with(file, tensor.name,
              fmt::format("the metadata says {}, the model has the shape [{}]", quoted_name(note),
                          fmt::join(spec.shape, ", ")));
  }
  if (tensor.type == StoredType::U8) {
    check_rows(file, tensor, *format, spec);
  }
  StoredFormat stored{*format, {}};
  if (has_codes) {
    const auto float16x = read_float16x_note(std::string_view(note).substr(expected.size()));
    if (!float16x) {
      fail_with(file, tensor.name,
                fmt::format("the metadata says {}, which does not end with exponent_bits from 4 to 8 and the bias of "
                            "float16x",
                            quoted_name(note)));
    }
    stored.float16x = *float16x;
  }
  return stored;
}

void read_file_row(const StoredMatrix& matrix, std::int64_t row, std::span<std::byte> out) {
  if (matrix.coding == RowCoding::awq) {
    read_awq_row({matrix.parts.codes, matrix.parts.zeros, matrix.parts.scales}, row, out);
    return;
  }
  const auto place = static_cast<std::size_t>(matrix.order.place_of(row));
  std::copy_n(matrix.tensor->bytes.begin() + static_cast<std::ptrdiff_t>(place * out.size()), out.size(), out.begin());
}

void read_matrix(const StoredMatrix& matrix, std::int64_t first, ElementType to, std::span<std::byte> out) {
  std::vector<std::byte> unpacked;
  std::vector<float> values(static_cast<std::size_t>(matrix.columns));
  std::int64_t row = first / matrix.columns;
  auto inside = static_cast<std::size_t>(first % matrix.columns);
  while (!out.empty()) {
    read_row_values(matrix, row, unpacked, values);
    const std::size_t count = std::min(values.size() - inside, out.size() / size_of(to));
    const auto unfit = convert_weights(StoredType::F32, std::as_bytes(std::span(values).subspan(inside, count)), to,
                                       out.first(count * size_of(to)));
    if (unfit) {
      throw ModelError(
          fmt::format("tensor {}: value {} of row {}, {}, {}", quoted_name(matrix.tensor->name), inside + unfit->index,
                      row, unfit->value,
                      std::isfinite(unfit->value)
                          ? fmt::format("is beyond the range of {}; load the weights as float32", name_of(to))
                          : "is not finite; the checkpoint is damaged"));
    }
    out = out.subspan(count * size_of(to));
    inside = 0;
    row += 1;
  }
}

}  // namespace pascaline
