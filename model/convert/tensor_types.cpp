#include "model/convert/tensor_types.hpp"

#include <fmt/format.h>

#include "model/checkpoint/gguf/projector_weights.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

// Of a tensor that is stored as numbers.
GgufType stored_number(StoredType type) noexcept {
  return type == StoredType::F32 ? GgufType::F32 : type == StoredType::F16 ? GgufType::F16 : GgufType::BF16;
}

[[noreturn]] void refuse_stored(const TensorSpec& tensor, const StoredKind& stored) {
  const bool can_be_quantized = !stored.format;  // the others were
  throw ModelError(fmt::format(
      "tensor {}: GGUF has no blocks of {}; --weights float32, float16{} writes its rounded values, and the folder of "
      "the original weights can become blocks",
      quoted_name(tensor.name), stored.name(), can_be_quantized ? ", bfloat16 or q8_0" : " or bfloat16"));
}

[[noreturn]] void refuse_asked(const TensorSpec& tensor, ElementType format) {
  throw ModelError(fmt::format("tensor {}: GGUF has no blocks of {}; give another format in the recipe of --weights",
                               quoted_name(tensor.name), name_of(format)));
}

// Nothing if GGUF has none.
std::optional<GgufType> type_in_format(ElementType format) noexcept {
  if (format == ElementType::float32 || format == ElementType::float16) {
    return format == ElementType::float32 ? GgufType::F32 : GgufType::F16;
  }
  return gguf_type_of(format);
}

GgufType asked_type(const TensorSpec& tensor, const StoredKind& stored, const WantedTypes& wanted) {
  if (wanted.number) {
    return *wanted.number;
  }
  const auto type = wanted.recipe ? type_in_format(wanted.recipe->of(tensor.name)) : stored.type;
  if (!type && wanted.recipe) {
    refuse_asked(tensor, wanted.recipe->of(tensor.name));
  }
  if (!type) {
    refuse_stored(tensor, stored);
  }
  return *type;
}

bool has_whole_blocks(const TensorSpec& tensor, GgufType type) noexcept {
  return tensor.shape.back() % block_values(type) == 0;
}

}  // namespace

ElementType number_of(GgufType type) noexcept {
  return type == GgufType::F32   ? ElementType::float32
         : type == GgufType::F16 ? ElementType::float16
                                 : ElementType::bfloat16;
}

StoredKind stored_kind(const Checkpoint& checkpoint, std::size_t index) {
  StoredKind kind;
  if (const auto& format = checkpoint.format(index)) {
    kind.format = format->type;
  }
  kind.is_fp8 = checkpoint.stored(index).type == StoredType::F8_E4M3;
  const bool is_awq = checkpoint.is_transposed(index);
  if (kind.is_fp8 || is_awq) {
    kind.type = std::nullopt;
  } else if (checkpoint.stored(index).type == StoredType::U8) {
    kind.type = type_in_format(checkpoint.kept_type(index, ElementType::float32));
  } else {
    kind.type = stored_number(checkpoint.stored(index).type);
  }
  return kind;
}

std::string_view StoredKind::name() const { return is_fp8 ? "fp8" : name_of(format.value()); }

GgufType written_type(const TensorSpec& tensor, const StoredKind& stored, const WantedTypes& wanted,
                      bool rows_are_blocks) {
  if (tensor.kind != TensorKind::matrix) {
    return GgufType::F32;
  }
  GgufType type = asked_type(tensor, stored, wanted);
  if (rows_are_blocks && is_patch_embedding(tensor.name)) {
    return type == GgufType::F16 ? GgufType::F16 : GgufType::F32;
  }
  if (rows_are_blocks && !has_whole_blocks(tensor, type)) {
    type = has_whole_blocks(tensor, GgufType::Q8_0) ? GgufType::Q8_0 : GgufType::F16;
  }
  if (wanted.recipe && stored.format && format_of(type) && *format_of(type) != *stored.format) {
    throw ModelError(
        fmt::format("tensor {}: it is stored in {}, and quantizing twice loses accuracy: give the folder of "
                    "the original weights, or {}",
                    quoted_name(tensor.name), name_of(*stored.format),
                    stored.type ? "leave out --weights" : "name numbers, such as --weights float16"));
  }
  return type;
}

std::optional<GgufType> unfit_type(const TensorSpec& tensor, const StoredKind& stored, const WantedTypes& wanted) {
  if (tensor.kind != TensorKind::matrix || is_patch_embedding(tensor.name)) {
    return std::nullopt;
  }
  const GgufType type = asked_type(tensor, stored, wanted);
  return has_whole_blocks(tensor, type) ? std::nullopt : std::optional(type);
}

}  // namespace pascaline
