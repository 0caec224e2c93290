#include "runtime/convert/tensor_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/checkpoint/gguf/projector_weights.hpp"
#include "runtime/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::pair<ElementType, GgufType>, 5> kPackedTypes{{{ElementType::q8_0, GgufType::Q8_0},
                                                                        {ElementType::q4_0, GgufType::Q4_0},
                                                                        {ElementType::q4_1, GgufType::Q4_1},
                                                                        {ElementType::q4_k, GgufType::Q4_K},
                                                                        {ElementType::q6_k, GgufType::Q6_K}}};

// Of a tensor that is stored as numbers.
GgufType stored_number(StoredType type) noexcept {
  return type == StoredType::F32 ? GgufType::F32 : type == StoredType::F16 ? GgufType::F16 : GgufType::BF16;
}

[[noreturn]] void refuse_format(const TensorSpec& tensor, ElementType format) {
  throw ModelError(
      fmt::format("tensor {}: GGUF has no blocks of {}; name another format with --weights, and give the "
                  "folder of the original weights",
                  quoted_name(tensor.name), name_of(format)));
}

GgufType type_in_format(const TensorSpec& tensor, ElementType format) {
  if (format == ElementType::float32 || format == ElementType::float16) {
    return format == ElementType::float32 ? GgufType::F32 : GgufType::F16;
  }
  const auto type = gguf_type_of(format);
  if (!type) {
    refuse_format(tensor, format);
  }
  return *type;
}

// As it is stored. Blocks that no matrix is kept in have one type that holds them all.
GgufType stored_type_of(const Checkpoint& checkpoint, std::size_t index) {
  const TensorSpec& tensor = checkpoint.tensors()[index];
  if (checkpoint.stored(index).type != StoredType::U8) {
    return stored_number(checkpoint.stored(index).type);
  }
  return type_in_format(tensor, checkpoint.kept_type(index, ElementType::float32));
}

}  // namespace

std::optional<GgufType> gguf_type_of(ElementType format) noexcept {
  const auto* const found = std::find_if(kPackedTypes.begin(), kPackedTypes.end(),
                                         [format](const auto& pair) { return pair.first == format; });
  return found == kPackedTypes.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ElementType> format_of(GgufType type) noexcept {
  const auto* const found =
      std::find_if(kPackedTypes.begin(), kPackedTypes.end(), [type](const auto& pair) { return pair.second == type; });
  return found == kPackedTypes.end() ? std::nullopt : std::optional(found->first);
}

ElementType number_of(GgufType type) noexcept {
  return type == GgufType::F32   ? ElementType::float32
         : type == GgufType::F16 ? ElementType::float16
                                 : ElementType::bfloat16;
}

GgufType written_type(const Checkpoint& checkpoint, std::size_t index, const WantedTypes& wanted,
                      bool rows_are_blocks) {
  const TensorSpec& tensor = checkpoint.tensors()[index];
  if (tensor.kind != TensorKind::matrix) {
    return GgufType::F32;
  }
  GgufType type = wanted.number   ? *wanted.number
                  : wanted.recipe ? type_in_format(tensor, wanted.recipe->of(tensor.name))
                                  : stored_type_of(checkpoint, index);
  if (rows_are_blocks && is_patch_embedding(tensor.name)) {
    return type == GgufType::F16 ? GgufType::F16 : GgufType::F32;
  }
  const auto is_whole = [columns = tensor.shape.back()](GgufType blocks) {
    return columns % block_values(blocks) == 0;
  };
  if (rows_are_blocks && !is_whole(type)) {
    type = is_whole(GgufType::Q8_0) ? GgufType::Q8_0 : GgufType::F16;
  }
  const auto& stored = checkpoint.format(index);
  if (wanted.recipe && stored && format_of(type) && *format_of(type) != stored->type) {
    throw ModelError(
        fmt::format("tensor {}: it is stored in {}, and quantizing twice loses accuracy: give the folder of "
                    "the original weights, or leave out --weights",
                    quoted_name(tensor.name), name_of(stored->type)));
  }
  return type;
}

}  // namespace pascaline
