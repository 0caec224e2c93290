#include "model/checkpoint/hf/folder_codings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/model_error.hpp"
#include "runtime/formats/int4_groups.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kGroupBytes = 68;  // of a group of int4_g128 in a file
// In which four bits of an int32, counted from the lowest, an output out of eight lies.
constexpr std::array<unsigned, 8> kAwqPlace{0, 4, 1, 5, 2, 6, 3, 7};

const std::array<float, 256>& e4m3_numbers() noexcept {
  static const std::array<float, 256> numbers = [] {
    std::array<float, 256> all{};
    for (std::size_t code = 0; code < all.size(); ++code) {
      all[code] = float_of_e4m3(static_cast<std::uint8_t>(code));
    }
    return all;
  }();
  return numbers;
}

// Eight codes of an int32, that of output `row`.
std::uint8_t awq_code(const StoredTensor& tensor, std::size_t line, std::size_t row) noexcept {
  std::uint32_t word = 0;
  const auto words = static_cast<std::size_t>(tensor.shape[1]);
  std::memcpy(&word, tensor.bytes.data() + (line * words + row / 8) * sizeof word, sizeof word);
  return static_cast<std::uint8_t>(word >> 4 * kAwqPlace[row % 8] & 15U);
}

struct PartName {
  std::string_view ending;
  MatrixPart part;
};

constexpr std::array kFp8Parts{PartName{".weight_scale_inv", MatrixPart::scales}};
constexpr std::array kAwqParts{PartName{".qweight", MatrixPart::codes}, PartName{".qzeros", MatrixPart::zeros},
                               PartName{".scales", MatrixPart::scales}};

// Types that a part may have, and its shape.
struct PartForm {
  std::vector<StoredType> types;
  std::vector<std::int64_t> shape;
};

PartForm form_of(MatrixPart part, const TensorSpec& spec, FolderQuantization quantization) {
  const std::int64_t rows = spec.shape.front();
  const std::int64_t columns = spec.elements() / rows;
  const auto blocks = [](std::int64_t extent) { return (extent + kFp8Block - 1) / kFp8Block; };
  if (quantization == FolderQuantization::fp8_blocks) {
    return part == MatrixPart::codes
               ? PartForm{{StoredType::F8_E4M3}, {rows, columns}}
               : PartForm{{StoredType::F32, StoredType::BF16, StoredType::F16}, {blocks(rows), blocks(columns)}};
  }
  constexpr auto kGroup = static_cast<std::int64_t>(kInt4Group);
  switch (part) {
    case MatrixPart::codes:
      return {{StoredType::I32}, {columns, rows / 8}};
    case MatrixPart::zeros:
      return {{StoredType::I32}, {columns / kGroup, rows / 8}};
    default:
      return {{StoredType::F16}, {columns / kGroup, rows}};
  }
}

}  // namespace

std::optional<PartOfMatrix> part_of_matrix(const StoredTensor& tensor, FolderQuantization quantization) {
  constexpr std::string_view kWeight = ".weight";
  const bool is_fp8 = quantization == FolderQuantization::fp8_blocks;
  if (quantization == FolderQuantization::none) {
    return std::nullopt;
  }
  if (is_fp8 && tensor.type == StoredType::F8_E4M3) {
    return PartOfMatrix{tensor.name, MatrixPart::codes};
  }
  for (const PartName& name : is_fp8 ? std::span<const PartName>(kFp8Parts) : std::span<const PartName>(kAwqParts)) {
    if (tensor.name.ends_with(name.ending)) {
      return PartOfMatrix{tensor.name.substr(0, tensor.name.size() - name.ending.size()).append(kWeight), name.part};
    }
  }
  return std::nullopt;
}

std::string fault_of_parts(const MatrixParts& parts, const TensorSpec& spec, FolderQuantization quantization) {
  const bool is_awq = quantization == FolderQuantization::awq;
  const std::int64_t columns = spec.elements() / spec.shape.front();
  if (spec.kind != TensorKind::matrix || spec.shape.size() != 2) {
    return fmt::format("{} is quantized, though it is no matrix of a linear layer", quoted_name(spec.name));
  }
  if (is_awq && (columns % static_cast<std::int64_t>(kInt4Group) != 0 || spec.shape.front() % 8 != 0)) {
    return fmt::format("{} [{}] is quantized, though it is not whole groups of {} values and 8 outputs",
                       quoted_name(spec.name), fmt::join(spec.shape, ", "), kInt4Group);
  }
  for (const MatrixPart part : {MatrixPart::codes, MatrixPart::scales, MatrixPart::zeros}) {
    if (part == MatrixPart::zeros && !is_awq) {
      continue;
    }
    const StoredTensor* const tensor = MatrixParts(parts).of(part);
    if (tensor == nullptr) {
      constexpr std::array kParts{"codes", "scales", "zero points"};
      return fmt::format("{} has no {} in this folder, though the matrix is quantized", quoted_name(spec.name),
                         kParts[static_cast<std::size_t>(part)]);
    }
    const PartForm form = form_of(part, spec, quantization);
    if (std::find(form.types.begin(), form.types.end(), tensor->type) == form.types.end() ||
        tensor->shape != form.shape) {
      return fmt::format("tensor {} is {} [{}] instead of {} [{}]", quoted_name(tensor->name), name_of(tensor->type),
                         fmt::join(tensor->shape, ", "), name_of(form.types.front()), fmt::join(form.shape, ", "));
    }
  }
  return {};
}

float float_of_e4m3(std::uint8_t code) noexcept {
  const std::uint32_t magnitude = code & 0x7FU;
  const std::uint32_t sign = (code & 0x80U) << 24U;
  if (magnitude == 0x7FU) {
    return std::bit_cast<float>(sign | 0x7FC00000U);
  }
  // The exponent of a normal code is moved from bias 7 to 127; a subnormal one counts in 2^-9.
  const std::uint32_t bits = magnitude < 8 ? std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1.0p-9F)
                                           : (magnitude << 20U) + (120U << 23U);
  return std::bit_cast<float>(sign | bits);
}

void read_fp8_row(const Fp8Matrix& matrix, std::int64_t row, std::span<float> values) {
  const std::array<float, 256>& numbers = e4m3_numbers();
  const std::byte* const codes = matrix.codes.data() + static_cast<std::size_t>(row) * values.size();
  const std::int64_t blocks = matrix.scales->shape[1];
  std::vector<float> scales(static_cast<std::size_t>(blocks));
  read_weights(*matrix.scales, row / kFp8Block * blocks, ElementType::float32,
               std::as_writable_bytes(std::span(scales)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = numbers[std::to_integer<std::size_t>(codes[i])] * scales[i / static_cast<std::size_t>(kFp8Block)];
  }
}

void read_awq_row(const AwqMatrix& matrix, std::int64_t row, std::span<std::byte> out) {
  const auto number = static_cast<std::size_t>(row);
  const auto rows = static_cast<std::size_t>(matrix.scales->shape[1]);
  for (std::size_t group = 0; group < out.size() / kGroupBytes; ++group) {
    std::byte* const to = out.data() + group * kGroupBytes;
    const std::size_t first = group * kInt4Group;
    for (std::size_t i = 0; i < kInt4Group / 2; ++i) {
      const std::uint8_t low = awq_code(*matrix.codes, first + i, number);
      const std::uint8_t high = awq_code(*matrix.codes, first + kInt4Group / 2 + i, number);
      to[i] = static_cast<std::byte>(low | high << 4U);
    }
    std::memcpy(to + 64, matrix.scales->bytes.data() + (group * rows + number) * 2, 2);
    to[66] = static_cast<std::byte>(awq_code(*matrix.zeros, group, number));
    to[67] = std::byte{0};
  }
}

}  // namespace pascaline
