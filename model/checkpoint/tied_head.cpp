#include "model/checkpoint/tied_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/hf/folder_codings.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/model_files.hpp"
#include "model/checkpoint/tensor_names.hpp"

namespace pascaline {
namespace {

struct HeadAndEmbedding {
  const StoredTensor* head = nullptr;
  const StoredTensor* embedding = nullptr;
};

HeadAndEmbedding find_both(const std::vector<Safetensors>& files, const ModelConfig& config) {
  HeadAndEmbedding found;
  for (const Safetensors& file : files) {
    for (const StoredTensor& tensor : file.tensors()) {
      const auto part = part_of_matrix(tensor, config.quantization);
      const std::string name = official_tensor_name(part ? part->matrix : tensor.name, config.family);
      if (name == kHeadTensor) {
        found.head = &tensor;
      } else if (is_embedding_tensor(name)) {
        found.embedding = &tensor;
      }
    }
  }
  return found;
}

bool is_number(StoredType type) noexcept {
  return type == StoredType::F32 || type == StoredType::F16 || type == StoredType::BF16;
}

// Of tensors of one shape that are stored as numbers of two types.
bool same_numbers(const StoredTensor& a, const StoredTensor& b) {
  constexpr std::size_t kBlock = 1 << 16;
  std::vector<float> of_a(kBlock);
  std::vector<float> of_b(kBlock);
  const std::size_t count = a.bytes.size() / size_of(a.type);
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = std::min(kBlock, count - first);
    for (const auto& [tensor, values] : {std::pair(&a, &of_a), std::pair(&b, &of_b)}) {
      values->resize(size);
      read_weights(*tensor, static_cast<std::int64_t>(first), ElementType::float32,
                   std::as_writable_bytes(std::span(*values)));
    }
    if (of_a != of_b) {
      return false;
    }
  }
  return true;
}

bool have_other_values(const StoredTensor& head, const StoredTensor& embedding) {
  if (head.type == embedding.type && head.shape == embedding.shape) {
    return !std::equal(head.bytes.begin(), head.bytes.end(), embedding.bytes.begin(), embedding.bytes.end());
  }
  if (is_number(head.type) && is_number(embedding.type)) {
    return head.shape == embedding.shape && !same_numbers(head, embedding);  // another shape is another fault
  }
  return true;
}

}  // namespace

bool is_embedding_tensor(std::string_view official) noexcept {
  return official == "model.embed_tokens.weight" || official == "model.language_model.embed_tokens.weight";
}

void untie_other_head(const std::filesystem::path& folder, ModelConfig& config) {
  if (!config.text.tied) {
    return;
  }
  std::string contradiction;
  try {
    const std::vector<Safetensors> files = open_model_files(folder);
    const HeadAndEmbedding found = find_both(files, config);
    if (found.head == nullptr || found.embedding == nullptr || !have_other_values(*found.head, *found.embedding)) {
      return;
    }
    contradiction = fmt::format(
        "{}: tie_word_embeddings is true, but the checkpoint's {} has other values than its {}; the head is "
        "used as it is stored, as Transformers does; set tie_word_embeddings to false there to avoid this warning",
        (folder / "config.json").string(), quoted_name(found.head->name), quoted_name(found.embedding->name));
  } catch (const Error&) {
    return;
  }
  config.text.tied = false;
  pass_over(contradiction);
}

}  // namespace pascaline
