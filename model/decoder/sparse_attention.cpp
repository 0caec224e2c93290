#include "model/decoder/sparse_attention.hpp"

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

void SparseAttention::run(FusionDecisions& fusion, LinearLayers& linear, const AttentionSite& attention,
                          std::int64_t layer) const {
  SparseAttentionSite site{attention, choice_, {}, {}, {}};
  if (choice_.chooses_blocks()) {
    const std::int64_t block = choice_.mask.block;
    const std::int64_t keys = blocks_of(site.keys(), block);
    const std::int64_t kv_heads = site.k_cache.shape[1];
    const std::int64_t rows = blocks_of(site.rows(), block);
    site.means = {
        means_[static_cast<std::size_t>(layer)].data(), ElementType::float32, {keys, kv_heads, site.k_cache.shape[2]}};
    site.scores = {scores_.data(), ElementType::float32, {kv_heads, rows, keys}};
    site.lists = {lists_.data(),
                  ElementType::int32,
                  {kv_heads, rows, ops::ChooseBlocks::width_for(site.keys(), block, choice_.part())}};
  }
  fusion.run(linear, site);
}

}  // namespace pascaline
