#include "runtime/ops/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace pascaline::ops {
namespace {

std::string extents_text(const TensorView& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape.begin(), tensor.shape.begin() + std::max(0, tensor.rank), ","));
}

// "[M,N] = [4,8]"
std::string wanted_text(std::initializer_list<Extent> extents) {
  std::vector<const char*> names;
  std::vector<std::int64_t> values;
  for (const Extent& extent : extents) {
    names.push_back(extent.name);
    values.push_back(extent.value);
  }
  return fmt::format("[{}] = [{}]", fmt::join(names, ","), fmt::join(values, ","));
}

std::string types_text(std::initializer_list<ElementType> types) {
  std::string text;
  for (const ElementType type : types) {
    text += (text.empty() ? "" : " or ") + std::string(name_of(type));
  }
  return text;
}

// Of an operand's type, which may be a value that is none.
std::string type_text(ElementType type) {
  return is_element_type(type) ? std::string(name_of(type))
                               : fmt::format("of no element type (value {})", static_cast<unsigned>(type));
}

// Whether kernels take elements of the type in whole vectors; integers are indices and counts, but int8 is what values
// are quantized to.
bool comes_in_vectors(ElementType type) noexcept {
  switch (type) {
    case ElementType::float32:
    case ElementType::float16:
    case ElementType::bfloat16:
    case ElementType::float64:
    case ElementType::int8:
      return true;
    default:
      return is_matrix_format(type);
  }
}

struct Bytes {
  std::uintptr_t begin;
  std::uintptr_t end;
};

// All that lies between the tensor's first and last byte. It was found countable before.
Bytes bytes_of(const TensorView& tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (is_matrix_format(tensor.type)) {
    return {begin, begin + static_cast<std::uintptr_t>(layout_of(tensor.type).bytes(tensor.shape[0], tensor.shape[1]))};
  }
  const std::int64_t elements = (tensor.shape[0] - 1) * row_stride(tensor) + row_length(tensor);
  return {begin, begin + static_cast<std::uintptr_t>(elements) * size_of(tensor.type)};
}

bool overlap(const TensorView& a, const TensorView& b) {
  if (is_empty(a) || is_empty(b)) {
    return false;
  }
  const Bytes first = bytes_of(a);
  const Bytes second = bytes_of(b);
  return first.begin < second.end && second.begin < first.end;
}

}  // namespace

std::int64_t row_length(const TensorView& tensor) noexcept {
  std::int64_t length = 1;
  for (int i = 1; i < tensor.rank; ++i) {
    length *= tensor.shape[static_cast<std::size_t>(i)];
  }
  return length;
}

std::int64_t row_stride(const TensorView& tensor) noexcept {
  return tensor.row_stride != 0 ? tensor.row_stride : row_length(tensor);
}

void Checks::fail(const std::string& problem) const { throw Error(fmt::format("{}: {}", op_, problem)); }

void Checks::at_least_one(Extent extent) const {
  if (extent.value < 1) {
    fail(fmt::format("{} is {}; it must be at least 1", extent.name, extent.value));
  }
}

void Checks::shaped(Operand operand, std::initializer_list<ElementType> types,
                    std::initializer_list<Extent> extents) const {
  const TensorView& tensor = *operand.tensor;
  if (tensor.rank != static_cast<int>(extents.size())) {
    fail(fmt::format("{} has {} dimensions; it must be {}", operand.name, tensor.rank, wanted_text(extents)));
  }
  std::size_t i = 0;
  for (const Extent& extent : extents) {
    const std::int64_t size = tensor.shape[i++];
    if (size < 0 || size > kMaxExtent) {
      fail(fmt::format("extent {} of {} is {}; it must be from 0 to {}", extent.name, operand.name, size, kMaxExtent));
    }
  }
  if (!std::equal(extents.begin(), extents.end(), tensor.shape.begin(),
                  [](const Extent& extent, std::int64_t size) { return extent.value == size; })) {
    fail(fmt::format("{} is {}; it must be {}", operand.name, extents_text(tensor), wanted_text(extents)));
  }
  typed(operand, types);
}

void Checks::typed(Operand operand, std::initializer_list<ElementType> types) const {
  if (std::find(types.begin(), types.end(), operand.tensor->type) == types.end()) {
    fail(fmt::format("{} is {}; it must be {}", operand.name, type_text(operand.tensor->type), types_text(types)));
  }
}

// `row_length` and `bytes_of` count on no product of extents overflowing.
void Checks::countable(Operand operand) const {
  const TensorView& tensor = *operand.tensor;
  if (is_empty(tensor)) {
    return;
  }
  // A value of a format takes at most two bytes with its share of the scales, but for a header of a few.
  const auto element = is_matrix_format(tensor.type) ? 2 : static_cast<std::int64_t>(size_of(tensor.type));
  std::int64_t bytes = element;
  bool overflows = false;
  for (int i = 1; i < tensor.rank; ++i) {
    overflows = overflows || __builtin_mul_overflow(bytes, tensor.shape[static_cast<std::size_t>(i)], &bytes);
  }
  if (!overflows && tensor.row_stride != 0) {
    if (tensor.row_stride < row_length(tensor) || tensor.row_stride > kMaxExtent) {
      fail(fmt::format("rows of {} are {} elements apart; it must be from {}, their length, to {}", operand.name,
                       tensor.row_stride, row_length(tensor), kMaxExtent));
    }
    bytes = tensor.row_stride * element;
  }
  if (overflows || __builtin_mul_overflow(bytes, tensor.shape[0], &bytes)) {
    fail(fmt::format("{} is {} of {}, which is more than 2^63 bytes", operand.name, extents_text(tensor),
                     name_of(tensor.type)));
  }
}

void Checks::strided(Operand operand, std::initializer_list<ElementType> types,
                     std::initializer_list<Extent> extents) const {
  shaped(operand, types, extents);
  countable(operand);
  if (!is_empty(*operand.tensor) && row_length(*operand.tensor) > kMaxExtent) {
    fail(fmt::format("a row of {} has {} elements; it may have {}", operand.name, row_length(*operand.tensor),
                     kMaxExtent));
  }
}

void Checks::same_shape(Operand operand, std::initializer_list<ElementType> types, Operand other) const {
  const TensorView& tensor = *operand.tensor;
  if (tensor.rank < 1 || tensor.rank > TensorView::kMaxRank) {
    fail(fmt::format("{} has {} dimensions; it must have 1 to {}", operand.name, tensor.rank, TensorView::kMaxRank));
  }
  if (std::any_of(tensor.shape.begin(), tensor.shape.begin() + tensor.rank,
                  [](std::int64_t size) { return size < 0; })) {
    fail(fmt::format("{} is {}; extents must not be negative", operand.name, extents_text(tensor)));
  }
  if (tensor.rank != other.tensor->rank ||
      !std::equal(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, other.tensor->shape.begin())) {
    fail(fmt::format("{} is {}; it must be as {}: {}", operand.name, extents_text(tensor), other.name,
                     extents_text(*other.tensor)));
  }
  typed(operand, types);
  countable(operand);
  packed(operand);
}

// After `countable`.
void Checks::packed(Operand operand) const {
  const TensorView& tensor = *operand.tensor;
  if (!is_empty(tensor) && tensor.shape[0] > 1 && row_stride(tensor) != row_length(tensor)) {
    fail(fmt::format("rows of {} are {} elements apart; they must follow each other, {} apart", operand.name,
                     row_stride(tensor), row_length(tensor)));
  }
}

void Checks::fail_as_given(Operand operand, const char* reason) const {
  fail(fmt::format("{} is given, but {}; leave it out", operand.name, reason));
}

void Checks::address(Operand operand) const {
  const TensorView& tensor = *operand.tensor;
  const std::uintptr_t alignment = comes_in_vectors(tensor.type) ? kAlignment : size_of(tensor.type);
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (!is_empty(tensor) && (address == 0 || address % alignment != 0)) {
    fail(fmt::format("the address of {} is {}; it must be one of the device's memory, aligned to {} bytes",
                     operand.name, fmt::ptr(tensor.data), alignment));
  }
}

void Checks::memory(std::span<const UsedOperand> operands) const {
  if (lie_plainly(operands)) [[likely]] {
    return;
  }
  for (const UsedOperand& used : operands) {
    address(used.operand);
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t j = i + 1; j < operands.size(); ++j) {
      const UsedOperand& first = operands[i];
      const UsedOperand& second = operands[j];
      if (is_written(first.use)) {
        apart(first.operand, second);
      } else if (is_written(second.use)) {
        apart(second.operand, first);
      }
    }
  }
}

void Checks::apart(Operand written, const UsedOperand& other) const {
  const TensorView& tensor = *written.tensor;
  const TensorView& others = *other.operand.tensor;
  const bool in_place = other.use == Use::read_in_place;
  if ((in_place && tensor.data == others.data && tensor.type == others.type) || !overlap(tensor, others)) {
    return;
  }
  fail(fmt::format("{} overlaps {}; it must {}lie in memory of its own", written.name, other.operand.name,
                   in_place ? "be the same tensor or " : ""));
}

void check_scales(const Checks& check, Operand scales, const TensorView& cache, Extent rows, Extent heads) {
  if (cache.type == ElementType::int8) {
    check.dense(scales, {ElementType::float32}, {rows, heads});
  } else {
    check.absent(scales, "only int8 has scales");
  }
}

}  // namespace pascaline::ops
