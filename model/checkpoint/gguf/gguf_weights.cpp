#include "model/checkpoint/gguf/gguf_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;  // official, GGUF's

constexpr std::array<NamePair, 11> kLayerNames{{{"input_layernorm", "attn_norm"},
                                                {"self_attn.q_proj", "attn_q"},
                                                {"self_attn.k_proj", "attn_k"},
                                                {"self_attn.v_proj", "attn_v"},
                                                {"self_attn.o_proj", "attn_output"},
                                                {"self_attn.q_norm", "attn_q_norm"},
                                                {"self_attn.k_norm", "attn_k_norm"},
                                                {"post_attention_layernorm", "ffn_norm"},
                                                {"mlp.gate_proj", "ffn_gate"},
                                                {"mlp.up_proj", "ffn_up"},
                                                {"mlp.down_proj", "ffn_down"}}};

constexpr std::array<NamePair, 3> kOuterNames{{{"embed_tokens.weight", "token_embd.weight"},
                                               {"norm.weight", "output_norm.weight"},
                                               {"lm_head.weight", "output.weight"}}};

std::string_view other_name(std::span<const NamePair> names, std::string_view official) {
  const auto found =
      std::find_if(names.begin(), names.end(), [official](const NamePair& pair) { return pair.first == official; });
  return found == names.end() ? std::string_view() : found->second;
}

StoredType number_of(GgufType type) noexcept {
  return type == GgufType::F32 ? StoredType::F32 : type == GgufType::F16 ? StoredType::F16 : StoredType::BF16;
}

GgufWeight weight_of(const GgufTensor& tensor, const TensorSpec& spec) {
  GgufWeight weight;
  weight.tensor.name = std::string(tensor.name);
  weight.tensor.bytes = tensor.bytes;
  if (block_values(tensor.type) == 1) {
    weight.tensor.type = number_of(tensor.type);
    weight.tensor.shape = spec.shape;
    return weight;
  }
  const std::int64_t rows = spec.shape.front();
  weight.tensor.type = StoredType::U8;
  weight.tensor.shape = {rows, static_cast<std::int64_t>(tensor.bytes.size()) / rows};
  weight.format = StoredFormat{format_of(tensor.type).value(), {}};
  return weight;
}

std::string listed(const std::vector<std::string>& names, const char* what) {
  return names.empty() ? "" : fmt::format("; {} {}: {}", names.size(), what, quoted_names(names));
}

}  // namespace

std::string gguf_tensor_name(std::string_view official) {
  for (const std::string_view prefix : {"model.language_model.", "model."}) {
    if (official.starts_with(prefix)) {
      official.remove_prefix(prefix.size());
      break;
    }
  }
  constexpr std::string_view kLayers = "layers.";
  if (!official.starts_with(kLayers)) {
    return std::string(other_name(kOuterNames, official));
  }
  official.remove_prefix(kLayers.size());
  const std::size_t dot = official.find('.');
  const std::size_t last = official.rfind('.');
  if (dot == std::string_view::npos || last <= dot) {
    return {};
  }
  const std::string_view name = other_name(kLayerNames, official.substr(dot + 1, last - dot - 1));
  return name.empty() ? std::string()
                      : fmt::format("blk.{}.{}{}", official.substr(0, dot), name, official.substr(last));
}

// Files of Llama have the two halves of each head that turns in turn.
RowOrder gguf_row_order(const ModelConfig& config, std::string_view official) noexcept {
  const bool turns = official.ends_with("self_attn.q_proj.weight") || official.ends_with("self_attn.k_proj.weight");
  return {config.family == ModelFamily::llama && turns ? config.text.head_dim : 0};
}

std::vector<GgufWeight> match_gguf_weights(const GgufFile& file, const std::vector<TensorSpec>& specs,
                                           const GgufNaming& naming, std::string_view ignored) {
  std::vector<GgufWeight> weights;
  std::vector<std::string> missing;
  std::vector<std::string> misshapen;
  std::vector<std::string> mistyped;
  std::set<std::string_view> used;
  used.insert(ignored);
  for (const TensorSpec& spec : specs) {
    GgufWeight& weight = weights.emplace_back();
    const std::string name = naming(spec.name);
    const GgufTensor* const tensor = file.find(name);
    if (tensor == nullptr) {
      missing.push_back(name);
      continue;
    }
    used.insert(tensor->name);
    if (!std::equal(spec.shape.rbegin(), spec.shape.rend(), tensor->shape.begin(), tensor->shape.end())) {
      misshapen.push_back(fmt::format("{} [{}] instead of [{}]", tensor->name, fmt::join(tensor->shape, ", "),
                                      fmt::join(spec.shape.rbegin(), spec.shape.rend(), ", ")));
    } else if (spec.kind != TensorKind::matrix && block_values(tensor->type) != 1) {
      mistyped.push_back(fmt::format("{} ({})", tensor->name, name_of(tensor->type)));
    } else {
      weight = weight_of(*tensor, spec);
    }
  }
  std::vector<std::string> unknown;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!used.contains(tensor.name)) {
      unknown.emplace_back(tensor.name);
    }
  }
  const std::string text = listed(missing, "missing") + listed(unknown, "unknown") +
                           listed(misshapen, "of another shape") + listed(mistyped, "quantized, but no matrices");
  if (!text.empty()) {
    throw ModelError(fmt::format("{}: the tensors are not those of the model that its metadata describes{}",
                                 file.path().string(), text));
  }
  return weights;
}

std::vector<GgufWeight> match_gguf_text_weights(const GgufFile& file, const std::vector<TensorSpec>& specs,
                                                const ModelConfig& config) {
  const bool has_factors = config.family == ModelFamily::llama;
  std::vector<GgufWeight> weights =
      match_gguf_weights(file, specs, gguf_tensor_name, has_factors ? kGgufRopeFactors : "");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    weights[i].order = gguf_row_order(config, specs[i].name);
  }
  return weights;
}

}  // namespace pascaline
