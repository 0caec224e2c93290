#include "model/checkpoint/table_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pascaline {
namespace {

// Products with the matrices write one after the other, each to an address that is aligned to 16 bytes whatever the
// number of rows.
constexpr std::int64_t kAlignedRows = 4;

void add_layer(const TableWriter& layer, const TextConfig& text, TextLayerWeights& places) {
  const std::int64_t q = text.heads * text.head_dim;
  const std::int64_t kv = text.kv_heads * text.head_dim;
  layer.vector(places.input_norm, TensorKind::norm, "input_layernorm.weight", {text.hidden});
  layer.matrix(places.qkv, {{"self_attn.q_proj.weight", {q, text.hidden}},
                            {"self_attn.k_proj.weight", {kv, text.hidden}},
                            {"self_attn.v_proj.weight", {kv, text.hidden}}});
  if (text.normalises_heads) {
    layer.vector(places.q_norm, TensorKind::norm, "self_attn.q_norm.weight", {text.head_dim});
    layer.vector(places.k_norm, TensorKind::norm, "self_attn.k_norm.weight", {text.head_dim});
  }
  layer.matrix(places.output, {{"self_attn.o_proj.weight", {text.hidden, q}}});
  layer.vector(places.post_norm, TensorKind::norm, "post_attention_layernorm.weight", {text.hidden});
  layer.matrix(places.gate_up,
               {{"mlp.gate_proj.weight", {text.intermediate, text.hidden}},
                {"mlp.up_proj.weight", {text.intermediate, text.hidden}}},
               WeightLayout::interleaved);
  layer.matrix(places.down, {{"mlp.down_proj.weight", {text.hidden, text.intermediate}}});
}

}  // namespace

void TableWriter::matrix(TensorView& place, std::vector<Part> parts, WeightLayout layout) const {
  WeightEntry& entry = table_->emplace_back();
  entry.place = &place;
  entry.layout = layout;
  entry.part = part_;
  for (Part& part : parts) {
    entry.tensors.push_back({prefix_ + part.first, std::move(part.second), TensorKind::matrix});
  }
}

void TableWriter::matrix(StackedMatrix& place, std::vector<Part> parts) const {
  matrix(place.parts.front(), std::move(parts));
  WeightEntry& entry = table_->back();
  const auto is_aligned = [](const TensorSpec& tensor) { return tensor.shape.front() % kAlignedRows == 0; };
  entry.most_matrices = std::all_of(entry.tensors.begin(), entry.tensors.end(), is_aligned) ? place.parts.size() : 1;
}

void TableWriter::vector(TensorView& place, TensorKind kind, const std::string& name, Shape shape,
                         WeightLayout layout) const {
  table_->push_back({&place, {{prefix_ + name, std::move(shape), kind}}, layout, part_});
}

void TableWriter::linear(LinearWeights& place, const std::string& name, Shape shape, WeightLayout layout) const {
  const WeightLayout of_bias = layout == WeightLayout::head_rows ? layout : WeightLayout::stacked;
  const std::int64_t rows = shape.front();
  matrix(place.weight, {{name + ".weight", std::move(shape)}}, layout);
  vector(place.bias, TensorKind::bias, name + ".bias", {rows}, of_bias);
}

void TableWriter::norm(NormWeights& place, const std::string& name, std::int64_t size) const {
  vector(place.weight, TensorKind::norm, name + ".weight", {size});
  vector(place.bias, TensorKind::bias, name + ".bias", {size});
}

void add_decoder(const TableWriter& decoder, const TextConfig& config, TextWeights& places) {
  decoder.of({PartKind::embedding}).matrix(places.embedding, {{"embed_tokens.weight", {config.vocab, config.hidden}}});
  places.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < places.layers.size(); ++i) {
    add_layer(decoder.below(fmt::format("layers.{}.", i)).of({PartKind::layer, i}), config, places.layers[i]);
  }
  decoder.of({PartKind::head}).vector(places.norm, TensorKind::norm, "norm.weight", {config.hidden});
}

void add_head(const TableWriter& root, const TextConfig& config, TextWeights& places) {
  if (!config.tied) {
    root.of({PartKind::head}).matrix(places.head, {{"lm_head.weight", {config.vocab, config.hidden}}});
  }
}

std::vector<WeightEntry> text_only_table(const ModelConfig& config, ModelWeights& places) {
  std::vector<WeightEntry> table;
  const TableWriter root(table, "");
  add_decoder(root.below("model."), config.text, places.text);
  add_head(root, config.text, places.text);
  return table;
}

}  // namespace pascaline
