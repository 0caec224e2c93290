#include "runtime/model/text_decoder.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "runtime/model/positions.hpp"
#include "runtime/model/tensor_memory.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/rope.hpp"

namespace pascaline {
namespace {

// Steps of a layer, by which activations share memory; every layer takes the same.
enum LayerStep : int { kNorm, kProject, kRotate, kAttend, kOutput, kPostNorm, kGate, kDown };

std::vector<ArenaTensor> layer_tensors(const TextConfig& config, std::int64_t rows) {
  const auto bytes = [&](std::int64_t width) { return static_cast<std::size_t>(rows * width) * sizeof(float); };
  const std::int64_t heads = config.heads * config.head_dim;
  const std::int64_t kv_heads = config.kv_heads * config.head_dim;
  return {{"hidden", bytes(config.hidden), kNorm, kDown},
          {"attention_input", bytes(config.hidden), kNorm, kProject},
          {"qkv", bytes(heads + 2 * kv_heads), kProject, kRotate},
          {"q", bytes(heads), kRotate, kAttend},
          {"attended", bytes(heads), kAttend, kOutput},
          {"mlp_input", bytes(config.hidden), kPostNorm, kGate},
          {"gated", bytes(config.intermediate), kGate, kDown}};
}

std::int64_t checked_rows(std::int64_t rows) {
  if (rows < 1) {
    throw Error(fmt::format("a pass of {} tokens does nothing", rows));
  }
  return rows;
}

}  // namespace

TextDecoder::TextDecoder(LinearLayers& linear, Executor& executor, const TextConfig& config,
                         const TextWeights& weights, KvCache& cache, std::int64_t context, std::int64_t most_rows)
    : linear_(&linear),
      executor_(&executor),
      config_(&config),
      weights_(&weights),
      cache_(&cache),
      most_rows_(checked_rows(most_rows)),
      activations_(executor.memory(), layer_tensors(config, most_rows)),
      angle_rows_(context) {
  const RopeTables tables = rope_tables(context, config.head_dim / 2, config.rope_theta);
  cosine_ = uploaded(executor.memory(), std::as_bytes(std::span(tables.cosine)));
  sine_ = uploaded(executor.memory(), std::as_bytes(std::span(tables.sine)));
}

std::uint64_t TextDecoder::bytes() const noexcept {
  return activations_.plan().total_bytes + cosine_.bytes() + sine_.bytes();
}

std::uint64_t TextDecoder::activation_bytes(const TextConfig& config, std::int64_t rows) {
  return plan_arena(layer_tensors(config, rows)).total_bytes;
}

std::uint64_t TextDecoder::table_bytes(const TextConfig& config, std::int64_t context) noexcept {
  return static_cast<std::uint64_t>(context * config.head_dim) * sizeof(float);
}

TensorView TextDecoder::activation(const char* name, std::initializer_list<std::int64_t> extents) const {
  return tensor_in(activations_.view(name), ElementType::float32, extents);
}

void TextDecoder::forward(const TextPass& pass) {
  if (pass.count() < 1 || pass.count() > most_rows_) {
    throw Error(fmt::format("a pass of {} tokens; it may have 1 to {}", pass.count(), most_rows_));
  }
  embed(pass);
  for (std::size_t i = 0; i < weights_->layers.size(); ++i) {
    attend(weights_->layers[i], static_cast<std::int64_t>(i), pass);
    feed_forward(weights_->layers[i], pass.count());
    add_deepstack(pass, i);
  }
}

void TextDecoder::embed(const TextPass& pass) {
  const TensorView hidden = activation("hidden", {pass.count(), config_->hidden});
  executor_->run(ops::Gather{weights_->embedding, pass.tokens, hidden});
  for (const ImageRows& image : pass.images) {
    executor_->memory().copy({}, span_of(rows_of(hidden, image.first, image.embeddings.shape[0])),
                             span_of(image.embeddings));
  }
}

void TextDecoder::attend(const TextLayerWeights& layer, std::int64_t index, const TextPass& pass) {
  const std::int64_t rows = pass.count();
  const std::int64_t head_dim = config_->head_dim;
  const std::int64_t all_heads = config_->heads + 2 * config_->kv_heads;
  const TensorView hidden = activation("hidden", {rows, config_->hidden});
  const TensorView input = activation("attention_input", {rows, config_->hidden});
  const TensorView qkv = activation("qkv", {rows, all_heads, head_dim});
  const TensorView q = activation("q", {rows, config_->heads, head_dim});
  const TensorView attended = activation("attended", {rows, config_->heads, head_dim});

  linear_->run_normed(ops::Rmsnorm{.x = hidden, .weight = layer.input_norm, .y = input},
                      {.a = input, .b = layer.qkv, .c = reshaped(qkv, {rows, all_heads * head_dim})});
  executor_->run(ops::QkNormRope{.qkv = qkv,
                                 .q_weight = layer.q_norm,
                                 .k_weight = layer.k_norm,
                                 .cosine = {cosine_.data(), ElementType::float32, {angle_rows_, head_dim / 2}},
                                 .sine = {sine_.data(), ElementType::float32, {angle_rows_, head_dim / 2}},
                                 .positions = pass.positions,
                                 .slots = pass.slots,
                                 .k_cache = cache_->keys(index),
                                 .v_cache = cache_->values(index),
                                 .q = q,
                                 .section_h = config_->mrope_section[1],
                                 .section_w = config_->mrope_section[2],
                                 .k_scales = cache_->key_scales(index),
                                 .v_scales = cache_->value_scales(index)});
  attend_to_cache(q, attended, index, pass);
  linear_->run({.a = reshaped(attended, {rows, config_->heads * head_dim}),
                             .b = layer.output,
                             .c = hidden,
                             .residual = hidden,
                             .epilogue = ops::Epilogue::residual});
}

void TextDecoder::attend_to_cache(const TensorView& q, const TensorView& out, std::int64_t index,
                                  const TextPass& pass) {
  const TensorView keys = cache_->keys(index);
  const TensorView values = cache_->values(index);
  const TensorView key_scales = cache_->key_scales(index);
  const TensorView value_scales = cache_->value_scales(index);
  if (pass.count() == 1) {
    executor_->run(ops::AttentionDecode{.q = reshaped(q, {config_->heads, config_->head_dim}),
                                        .k = keys,
                                        .v = values,
                                        .length = pass.length,
                                        .out = reshaped(out, {config_->heads, config_->head_dim}),
                                        .k_scales = key_scales,
                                        .v_scales = value_scales});
    return;
  }
  const std::int64_t length = pass.cached + pass.count();
  const bool scaled = ops::is_given(key_scales);
  executor_->run(ops::AttentionPrefill{.q = q,
                                       .k = rows_of(keys, 0, length),
                                       .v = rows_of(values, 0, length),
                                       .out = out,
                                       .causal = true,
                                       .k_scales = scaled ? rows_of(key_scales, 0, length) : key_scales,
                                       .v_scales = scaled ? rows_of(value_scales, 0, length) : value_scales});
}

void TextDecoder::feed_forward(const TextLayerWeights& layer, std::int64_t rows) {
  const TensorView hidden = activation("hidden", {rows, config_->hidden});
  const TensorView input = activation("mlp_input", {rows, config_->hidden});
  const TensorView gated = activation("gated", {rows, config_->intermediate});
  linear_->run_gated(
      {.x = hidden, .weight = layer.post_norm, .y = input},
      {.a = input, .b = layer.gate_up, .c = gated, .epilogue = ops::Epilogue::swiglu},
      {.a = gated, .b = layer.down, .c = hidden, .residual = hidden, .epilogue = ops::Epilogue::residual});
}

void TextDecoder::add_deepstack(const TextPass& pass, std::size_t index) {
  const TensorView hidden = activation("hidden", {pass.count(), config_->hidden});
  for (const ImageRows& image : pass.images) {
    if (index < image.deepstack.size()) {
      const TensorView rows = rows_of(hidden, image.first, image.embeddings.shape[0]);
      executor_->run(ops::Add{rows, image.deepstack[index], rows});
    }
  }
}

void TextDecoder::project(std::int64_t first, std::int64_t count, const TensorView& logits) {
  const TensorView hidden = rows_of(activation("hidden", {most_rows_, config_->hidden}), first, count);
  const TensorView normed = activation("mlp_input", {count, config_->hidden});
  linear_->run_normed(ops::Rmsnorm{.x = hidden, .weight = weights_->norm, .y = normed},
                      {.a = normed, .b = weights_->head, .c = logits});
}

}  // namespace pascaline
