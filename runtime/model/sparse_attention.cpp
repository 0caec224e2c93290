#include "runtime/model/sparse_attention.hpp"

#include <algorithm>

#include "runtime/formats/int8_activations.hpp"
#include "runtime/model/place_steps.hpp"
#include "runtime/model/tensor_memory.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"

namespace pascaline {
namespace {

std::int64_t blocks_of(std::int64_t rows, std::int64_t block) noexcept { return (rows + block - 1) / block; }

std::uint64_t score_bytes(const TextConfig& config, const AttentionChoice& choice, std::int64_t context,
                          std::int64_t rows) noexcept {
  const std::int64_t block = choice.mask.block;
  return static_cast<std::uint64_t>(config.kv_heads * blocks_of(rows, block) * blocks_of(context, block)) *
         sizeof(float);
}

std::uint64_t list_bytes(const TextConfig& config, const AttentionChoice& choice, std::int64_t context,
                         std::int64_t rows) noexcept {
  const std::int64_t block = choice.mask.block;
  return static_cast<std::uint64_t>(config.kv_heads * blocks_of(rows, block) *
                                    ops::ChooseBlocks::width_for(context, block, choice.part())) *
         sizeof(std::int32_t);
}

}  // namespace

SparseAttention::SparseAttention(DeviceMemory& memory, const TextConfig& config, const AttentionChoice& choice,
                                 std::int64_t context, std::int64_t rows, std::int64_t layers)
    : choice_(choice) {
  if (!choice.chooses_blocks()) {
    return;
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    means_.push_back(memory.allocate_raw(layer_bytes(config, choice, context)));
  }
  scores_ = memory.allocate_raw(score_bytes(config, choice, context, rows));
  lists_ = memory.allocate_raw(list_bytes(config, choice, context, rows));
}

std::uint64_t SparseAttention::bytes() const noexcept {
  std::uint64_t sum = scores_.bytes() + lists_.bytes();
  for (const RawBuffer& means : means_) {
    sum += means.bytes();
  }
  return sum;
}

std::uint64_t SparseAttention::layer_bytes(const TextConfig& config, const AttentionChoice& choice,
                                           std::int64_t context) noexcept {
  return choice.chooses_blocks()
             ? static_cast<std::uint64_t>(blocks_of(context, choice.mask.block) * config.kv_heads * config.head_dim) *
                   sizeof(float)
             : 0;
}

std::uint64_t SparseAttention::shared_bytes(const TextConfig& config, const AttentionChoice& choice,
                                            std::int64_t context, std::int64_t rows) noexcept {
  return choice.chooses_blocks()
             ? score_bytes(config, choice, context, rows) + list_bytes(config, choice, context, rows)
             : 0;
}

void SparseAttention::run(LinearLayers& linear, const AttentionPlace& place, std::int64_t layer) {
  linear.run_normed(input_norm_of(place), projection_of(place));
  linear.executor().run(rotation_of(place));
  const ops::Matmul output = output_of(place, place.attended);
  if (place.rows() > 1) {
    attend_to_prompt(linear, place, layer);
    linear.run(output);
    return;
  }
  const std::int64_t heads = place.q.shape[1];
  const std::int64_t head_dim = place.q.shape[2];
  if (head_dim % kActivationBlock == 0 && linear.takes_rounded_blocks(output)) {
    const ops::QuantizedRows rounded = linear.rows_for(output);
    attend_to_token(linear, place, layer, {reshaped(rounded.values, {heads, head_dim}), rounded.scales});
    linear.run_rounded(output, rounded);
    return;
  }
  attend_to_token(linear, place, layer, {reshaped(place.attended, {heads, head_dim}), {}});
  linear.run(output);
}

TensorView SparseAttention::choose(LinearLayers& linear, const AttentionPlace& place, std::int64_t layer,
                                   std::int64_t keys) {
  if (!choice_.chooses_blocks()) {
    return {};
  }
  const std::int64_t block = choice_.mask.block;
  const std::int64_t kv_heads = place.k_cache.shape[1];
  const std::int64_t rows = blocks_of(place.rows(), block);
  const std::int64_t width = ops::ChooseBlocks::width_for(keys, block, choice_.part());
  const TensorView means(means_[static_cast<std::size_t>(layer)].data(), ElementType::float32,
                         {blocks_of(keys, block), kv_heads, place.k_cache.shape[2]});
  const TensorView scores(scores_.data(), ElementType::float32, {kv_heads, rows, blocks_of(keys, block)});
  const TensorView lists(lists_.data(), ElementType::int32, {kv_heads, rows, width});
  const bool scaled = ops::is_given(place.k_scales);
  Executor& executor = linear.executor();
  executor.run(ops::PoolBlocks{.k = rows_of(place.k_cache, 0, keys),
                               .length = place.length,
                               .means = means,
                               .block = block,
                               .added = place.rows(),
                               .k_scales = scaled ? rows_of(place.k_scales, 0, keys) : place.k_scales});
  executor.run(ops::ScoreBlocks{
      .q = place.q, .means = means, .length = place.length, .scores = scores, .keys = keys, .block = block});
  executor.run(ops::ChooseBlocks{.scores = scores,
                                 .length = place.length,
                                 .blocks = lists,
                                 .queries = place.rows(),
                                 .keys = keys,
                                 .block = block,
                                 .part = choice_.part()});
  return lists;
}

void SparseAttention::attend_to_prompt(LinearLayers& linear, const AttentionPlace& place, std::int64_t layer) {
  const std::int64_t length = place.cached + place.rows();
  const bool scaled = ops::is_given(place.k_scales);
  const TensorView lists = choose(linear, place, layer, length);
  linear.executor().run(
      ops::AttentionSparsePrefill{.q = place.q,
                                  .k = rows_of(place.k_cache, 0, length),
                                  .v = rows_of(place.v_cache, 0, length),
                                  .out = place.attended,
                                  .blocks = lists,
                                  .mask = choice_.mask,
                                  .k_scales = scaled ? rows_of(place.k_scales, 0, length) : place.k_scales,
                                  .v_scales = scaled ? rows_of(place.v_scales, 0, length) : place.v_scales});
}

void SparseAttention::attend_to_token(LinearLayers& linear, const AttentionPlace& place, std::int64_t layer,
                                      const ops::QuantizedRows& to) {
  const TensorView lists = choose(linear, place, layer, place.k_cache.shape[0]);
  linear.executor().run(ops::AttentionSparseDecode{
      .q = reshaped(place.q, {place.q.shape[1], place.q.shape[2]}),
      .k = place.k_cache,
      .v = place.v_cache,
      .length = place.length,
      .out = to.values,
      .blocks = ops::is_given(lists) ? reshaped(lists, {lists.shape[0], lists.shape[2]}) : lists,
      .mask = choice_.mask,
      .k_scales = place.k_scales,
      .v_scales = place.v_scales,
      .scales = to.scales});
}

}  // namespace pascaline
