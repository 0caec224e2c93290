#include "model/vision/vision_tower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "model/decoder/positions.hpp"
#include "model/fusion/sites.hpp"
#include "model/requirements.hpp"
#include "model/tensor_memory.hpp"
#include "model/vision/vision_layout.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/position_embedding.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kPixelSlotBytes = std::size_t{2} << 20;
constexpr std::size_t kPixelSlots = 8;

bool has_packed_weights(const VisionWeights& weights) {
  const auto packed = [](std::initializer_list<const LinearWeights*> layers) {
    return std::any_of(layers.begin(), layers.end(),
                       [](const LinearWeights* layer) { return is_packed_format(layer->weight.type); });
  };
  const auto in_block = [&](const VisionBlockWeights& block) {
    return packed({&block.qkv, &block.projection, &block.fc1, &block.fc2});
  };
  const auto in_merger = [&](const MergerWeights& merger) { return packed({&merger.fc1, &merger.fc2}); };
  return packed({&weights.patch_embed}) || in_merger(weights.merger) ||
         std::any_of(weights.blocks.begin(), weights.blocks.end(), in_block) ||
         std::any_of(weights.deepstack.begin(), weights.deepstack.end(), in_merger);
}

void check_images(const VisionConfig& config, std::span<const PatchView> images) {
  for (const PatchView& image : images) {
    const std::int64_t merge = config.merge;
    const bool whole = image.rows > 0 && image.columns > 0 && image.rows % merge == 0 && image.columns % merge == 0 &&
                       image.rows <= (1 << 20) && image.columns <= (1 << 20);
    const std::int64_t count = whole ? image.rows * image.columns * config.patch_values() : -1;
    if (count != static_cast<std::int64_t>(image.values.size())) {
      throw Error(
          fmt::format("an image of {} x {} patches with {} values; whole blocks of {} x {} patches of {} values "
                      "each are needed",
                      image.rows, image.columns, image.values.size(), merge, merge, config.patch_values()));
    }
  }
}

std::int64_t patch_count(std::span<const PatchView> images) {
  std::int64_t sum = 0;
  for (const PatchView& image : images) {
    sum += image.rows * image.columns;
  }
  return sum;
}

std::int64_t longest_side_of(std::span<const PatchView> images) {
  std::int64_t side = 1;
  for (const PatchView& image : images) {
    side = std::max({side, image.rows, image.columns});
  }
  return side;
}

}  // namespace

// What encoding some images works with.
struct VisionTower::Pass {
  Pass(DeviceMemory& device, const Arena& arena, const VisionConfig& config, std::span<const PatchView> images)
      : count(patch_count(images)), memory(&arena) {
    std::array<std::vector<std::int32_t>, 2> position_axes;
    std::vector<std::int32_t> starts{0};
    for (const PatchView& image : images) {
      const auto own = patch_positions(image.rows, image.columns, config.merge);
      for (std::size_t axis = 0; axis < 2; ++axis) {
        position_axes[axis].insert(position_axes[axis].end(), own[axis].begin(), own[axis].end());
      }
      starts.push_back(static_cast<std::int32_t>(starts.back() + image.rows * image.columns));
    }
    position_axes[0].insert(position_axes[0].end(), position_axes[1].begin(), position_axes[1].end());
    const RopeTables tables = vision_tables(config, longest_side_of(images));
    const auto filled = [&](const char* name, ElementType type, const auto& values,
                            std::initializer_list<std::int64_t> extents) {
      const TensorView tensor = tensor_in(memory->view(name), type, extents);
      device.upload({}, span_of(tensor), std::as_bytes(std::span(values)));
      return tensor;
    };
    positions = filled("positions", ElementType::int32, position_axes[0], {2, count});
    cosine = filled("cosine", ElementType::float32, tables.cosine, {tables.positions, tables.slots});
    sine = filled("sine", ElementType::float32, tables.sine, {tables.positions, tables.slots});
    if (images.size() > 1) {
      segment_starts = filled("segment_starts", ElementType::int32, starts, {static_cast<std::int64_t>(starts.size())});
    }
    device.synchronize(StreamId{});
  }

  [[nodiscard]] TensorView view(std::string_view name, std::initializer_list<std::int64_t> extents) const {
    return tensor_in(memory->view(name), ElementType::float32, extents);
  }

  std::int64_t count;
  const Arena* memory;
  TensorView positions;
  TensorView cosine;
  TensorView sine;
  TensorView segment_starts;
};

VisionTower::VisionTower(LinearLayers& linear, FusionDecisions& fusion, const VisionConfig& config,
                         const VisionWeights& weights, WeightStream* stream)
    : linear_(&linear),
      fusion_(&fusion),
      executor_(&linear.executor()),
      config_(&config),
      parts_(config),
      weights_(&weights),
      stream_(stream) {}

std::uint64_t VisionTower::bytes_for(const VisionConfig& config, std::int64_t patches, std::int64_t longest_side) {
  return lay_out_arena(vision_tensors(config, patches, longest_side)).total_bytes;
}

bool VisionTower::release() {
  if (!arena_) {
    return false;
  }
  executor_->device().synchronize();
  arena_.reset();
  arena_patches_ = arena_side_ = 0;
  return true;
}

// The arena serves all images up to the largest so far.
void VisionTower::make_room(std::int64_t patches, std::int64_t longest_side) {
  if (patches <= arena_patches_ && longest_side <= arena_side_) {
    return;
  }
  patches = std::max(patches, arena_patches_);
  longest_side = std::max(longest_side, arena_side_);
  (void)release();
  if (has_packed_weights(*weights_)) {
    linear_->reserve(patches, LinearLayers::widest(*config_));
  }
  const std::uint64_t needed = bytes_for(*config_, patches, longest_side);
  const std::uint64_t free = executor_->memory().state().free_bytes;
  if (needed > free) {
    throw OutOfMemoryError(fmt::format("{} patches of images need {} MiB, and the device has {} MiB free; make them "
                                       "smaller with --max-image-tokens",
                                       patches, needed >> 20, free >> 20),
                           needed, free);
  }
  arena_.emplace(executor_->memory(), vision_tensors(*config_, patches, longest_side));
  arena_patches_ = patches;
  arena_side_ = longest_side;
}

ImageFeatures VisionTower::encode(std::span<const PatchView> images) {
  check_images(*config_, images);
  ImageFeatures features;
  if (images.empty()) {
    return features;
  }
  const std::int64_t patches = patch_count(images);
  make_room(patches, longest_side_of(images));
  Pass pass(executor_->memory(), *arena_, *config_, images);
  const std::int64_t tokens = patches / (config_->merge * config_->merge);
  const auto feature = [&](std::size_t index) { return pass.view(feature_name(index), {tokens, config_->out_hidden}); };
  with_weights<PatchWeights>(VisionParts::kEmbedding, *weights_,
                             [&](const PatchWeights& weights) { embed(weights, pass, images); });
  for (std::size_t i = 0; i < weights_->blocks.size(); ++i) {
    with_weights(parts_.block(i), weights_->blocks[i],
                 [&](const VisionBlockWeights& weights) { run_block(weights, pass); });
    const auto& indexes = config_->deepstack_indexes;
    const auto found = std::find(indexes.begin(), indexes.end(), static_cast<std::int64_t>(i));
    if (found != indexes.end()) {
      const auto index = static_cast<std::size_t>(found - indexes.begin());
      features.deepstack.push_back(feature(1 + index));
      with_weights(parts_.deepstack(index), weights_->deepstack[index],
                   [&](const MergerWeights& weights) { merge(weights, true, pass, features.deepstack.back()); });
    }
  }
  features.embeddings = feature(0);
  with_weights(parts_.merger(), weights_->merger,
               [&](const MergerWeights& weights) { merge(weights, false, pass, features.embeddings); });
  return features;
}

// Does some work with the weights of a part of the tower, where they are or streamed.
template <typename Weights, typename Work>
void VisionTower::with_weights(std::size_t part, const Weights& weights, const Work& work) {
  const WeightPart streamed{PartKind::vision, part};
  if (stream_ == nullptr || !stream_->has(streamed)) {
    work(weights);
    return;
  }
  work(stream_->enter(streamed, weights));
  stream_->leave(streamed);
}

// Large images go to a GPU by several threads through page-locked slots: copying them there takes as long as the copy
// to the device. When it returns the caller may drop the values.
void VisionTower::bring(const TensorView& pixels, std::span<const PatchView> images) {
  DeviceMemory& memory = executor_->memory();
  const bool in_slots = span_of(pixels).bytes > kPixelSlotBytes && !executor_->on_processor();
  if (in_slots && !staging_) {
    staging_.emplace(memory, kPixelSlotBytes, kPixelSlots);
  }
  const auto width = static_cast<std::size_t>(config_->patch_values());
  std::int64_t first = 0;
  for (const PatchView& image : images) {
    const std::int64_t count = image.rows * image.columns;
    const auto copy = [&](std::size_t begin, std::size_t end) {
      const auto rows = static_cast<std::int64_t>(end - begin);
      const DeviceSpan to = span_of(rows_of(pixels, first + static_cast<std::int64_t>(begin), rows));
      const auto from = std::as_bytes(image.values.subspan(begin * width, (end - begin) * width));
      in_slots ? staging_->upload(to, from) : memory.upload({}, to, from);
    };
    if (in_slots) {
      worker_pool().run(static_cast<std::size_t>(count),
                        std::max<std::size_t>(1, kPixelSlotBytes / (width * sizeof(float))), copy);
    } else {
      copy(0, static_cast<std::size_t>(count));
    }
    first += count;
  }
  if (in_slots) {
    staging_->order_before({});
  } else {
    memory.synchronize(StreamId{});
  }
}

void VisionTower::embed(const PatchWeights& weights, Pass& pass, std::span<const PatchView> images) {
  const TensorView pixels = pass.view("pixels", {pass.count, config_->patch_values()});
  const TensorView patches = pass.view("patches", {pass.count, config_->hidden});
  const TensorView hidden = pass.view("hidden", {pass.count, config_->hidden});
  bring(pixels, images);
  linear_->run({.a = pixels,
                .b = weights.patch_embed.weight,
                .c = patches,
                .bias = weights.patch_embed.bias,
                .epilogue = ops::Epilogue::bias});
  std::int64_t first = 0;
  for (const PatchView& image : images) {
    const std::int64_t count = image.rows * image.columns;
    executor_->run(ops::PositionEmbedding{.x = rows_of(patches, first, count),
                                          .table = weights.positions,
                                          .y = rows_of(hidden, first, count),
                                          .grid_h = image.rows,
                                          .grid_w = image.columns,
                                          .merge = config_->merge});
    first += count;
  }
}

void VisionTower::run_block(const VisionBlockWeights& weights, Pass& pass) {
  attend(weights, pass);
  fusion_->run(*linear_, VisionMlpSite{.hidden = pass.view("hidden", {pass.count, config_->hidden}),
                                       .norm = weights.norm2,
                                       .fc1 = weights.fc1,
                                       .fc2 = weights.fc2,
                                       .input = pass.view("mlp_input", {pass.count, config_->hidden}),
                                       .wide = pass.view("wide", {pass.count, config_->intermediate})});
}

void VisionTower::attend(const VisionBlockWeights& weights, Pass& pass) {
  const std::int64_t count = pass.count;
  const std::int64_t head_dim = padded_head_dim(*config_);
  fusion_->run(*linear_, VisionAttentionSite{.hidden = pass.view("hidden", {count, config_->hidden}),
                                             .norm = weights.norm1,
                                             .qkv_weight = weights.qkv,
                                             .projection = weights.projection,
                                             .cosine = pass.cosine,
                                             .sine = pass.sine,
                                             .positions = pass.positions,
                                             .segment_starts = pass.segment_starts,
                                             .normed = pass.view("normed", {count, config_->hidden}),
                                             .qkv = pass.view("qkv", {count, 3, config_->heads, head_dim}),
                                             .attended = pass.view("attended", {count, config_->heads, head_dim})});
}

void VisionTower::merge(const MergerWeights& weights, bool norm_merged, Pass& pass, const TensorView& out) {
  fusion_->run(*linear_, MergerSite{.hidden = pass.view("hidden", {pass.count, config_->hidden}),
                                    .norm = weights.norm,
                                    .fc1 = weights.fc1,
                                    .fc2 = weights.fc2,
                                    .out = out,
                                    .merged_first = norm_merged,
                                    .input = pass.view("merge_input", {pass.count, config_->hidden}),
                                    .wide = pass.view("merge_wide", {out.shape[0], config_->merged()})});
}

}  // namespace pascaline
