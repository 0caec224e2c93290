#include "runtime/checkpoint/tensor_list.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxParameters = 1'000'000'000'000;

// Names below one prefix.
class Group {
 public:
  Group(std::vector<TensorSpec>& out, std::string prefix) : out_(&out), prefix_(std::move(prefix)) {}
  void tensor(const char* name, std::vector<std::int64_t> shape) const {
    out_->push_back({prefix_ + name, std::move(shape)});
  }
  void weight_and_bias(const std::string& name, std::vector<std::int64_t> shape) const {
    const std::int64_t rows = shape.front();
    tensor((name + ".weight").c_str(), std::move(shape));
    tensor((name + ".bias").c_str(), {rows});
  }

 private:
  std::vector<TensorSpec>* out_;
  std::string prefix_;
};

void add_layer(const Group& layer, const TextConfig& text) {
  const std::int64_t q = text.heads * text.head_dim;
  const std::int64_t kv = text.kv_heads * text.head_dim;
  layer.tensor("input_layernorm.weight", {text.hidden});
  layer.tensor("self_attn.q_proj.weight", {q, text.hidden});
  layer.tensor("self_attn.k_proj.weight", {kv, text.hidden});
  layer.tensor("self_attn.v_proj.weight", {kv, text.hidden});
  layer.tensor("self_attn.q_norm.weight", {text.head_dim});
  layer.tensor("self_attn.k_norm.weight", {text.head_dim});
  layer.tensor("self_attn.o_proj.weight", {text.hidden, q});
  layer.tensor("post_attention_layernorm.weight", {text.hidden});
  layer.tensor("mlp.gate_proj.weight", {text.intermediate, text.hidden});
  layer.tensor("mlp.up_proj.weight", {text.intermediate, text.hidden});
  layer.tensor("mlp.down_proj.weight", {text.hidden, text.intermediate});
}

void add_block(const Group& block, const VisionConfig& vision) {
  block.weight_and_bias("norm1", {vision.hidden});
  block.weight_and_bias("attn.qkv", {3 * vision.hidden, vision.hidden});
  block.weight_and_bias("attn.proj", {vision.hidden, vision.hidden});
  block.weight_and_bias("norm2", {vision.hidden});
  block.weight_and_bias("mlp.linear_fc1", {vision.intermediate, vision.hidden});
  block.weight_and_bias("mlp.linear_fc2", {vision.hidden, vision.intermediate});
}

void add_merger(const Group& merger, const VisionConfig& vision, std::int64_t norm) {
  merger.weight_and_bias("norm", {norm});
  merger.weight_and_bias("linear_fc1", {vision.merged(), vision.merged()});
  merger.weight_and_bias("linear_fc2", {vision.out_hidden, vision.merged()});
}

void add_vision(std::vector<TensorSpec>& out, const VisionConfig& vision) {
  const std::string prefix = "model.visual.";
  const Group tower(out, prefix);
  tower.weight_and_bias("patch_embed.proj",
                        {vision.hidden, vision.in_channels, vision.temporal_patch, vision.patch, vision.patch});
  tower.tensor("pos_embed.weight", {vision.positions, vision.hidden});
  for (std::int64_t b = 0; b < vision.depth; ++b) {
    add_block(Group(out, fmt::format("{}blocks.{}.", prefix, b)), vision);
  }
  add_merger(Group(out, prefix + "merger."), vision, vision.hidden);
  for (std::size_t k = 0; k < vision.deepstack_indexes.size(); ++k) {
    // These normalise after the patches were put side by side, the one above before.
    add_merger(Group(out, fmt::format("{}deepstack_merger_list.{}.", prefix, k)), vision, vision.merged());
  }
}

}  // namespace

std::int64_t TensorSpec::elements() const noexcept { return element_count(shape); }

std::int64_t element_count(std::span<const std::int64_t> shape) noexcept {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return -1;
    }
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count)) {
      return -1;
    }
  }
  return empty ? 0 : count;
}

std::vector<TensorSpec> required_tensors(const ModelConfig& config) {
  const TextConfig& text = config.text;
  const std::string prefix = "model.language_model.";
  std::vector<TensorSpec> out;
  Group(out, prefix).tensor("embed_tokens.weight", {text.vocab, text.hidden});
  for (std::int64_t i = 0; i < text.layers; ++i) {
    add_layer(Group(out, fmt::format("{}layers.{}.", prefix, i)), text);
  }
  Group(out, prefix).tensor("norm.weight", {text.hidden});
  add_vision(out, config.vision);
  if (!text.tied) {
    out.push_back({"lm_head.weight", {text.vocab, text.hidden}});
  }
  return out;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t total = 0;
  for (const TensorSpec& tensor : required_tensors(config)) {
    const std::int64_t count = tensor.elements();
    if (count < 0 || __builtin_add_overflow(total, count, &total) || total > kMaxParameters) {
      throw ModelError(fmt::format("these sizes imply more than {} parameters", kMaxParameters));
    }
  }
  return total;
}

}  // namespace pascaline
