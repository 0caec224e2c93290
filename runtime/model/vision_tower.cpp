#include "runtime/model/vision_tower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/model/positions.hpp"
#include "runtime/model/tensor_memory.hpp"

namespace pascaline {
namespace {

constexpr double kAngleBase = 10000.0;

// Steps by which activations share memory: before the blocks, within each of them, and behind some of them.
enum VisionStep : int {
  kTowerPatches,
  kTowerPositions,
  kTowerNormed,
  kTowerProjected,
  kTowerAttended,
  kTowerOutput,
  kTowerWide,
  kTowerNarrow,
  kTowerMerged,
  kTowerFeature
};

std::vector<ArenaTensor> vision_tensors(const VisionConfig& config, std::int64_t patches) {
  const auto bytes = [](std::int64_t rows, std::int64_t width) {
    return static_cast<std::size_t>(rows * width) * sizeof(float);
  };
  const std::int64_t tokens = patches / (config.merge * config.merge);
  return {{"pixels", bytes(patches, config.patch_values()), kTowerPatches, kTowerPatches},
          {"patches", bytes(patches, config.hidden), kTowerPatches, kTowerPositions},
          {"hidden", bytes(patches, config.hidden), kTowerPositions, kTowerFeature},
          {"normed", bytes(patches, config.hidden), kTowerNormed, kTowerProjected},
          {"qkv", bytes(patches, 3 * config.hidden), kTowerProjected, kTowerAttended},
          {"attended", bytes(patches, config.hidden), kTowerAttended, kTowerOutput},
          {"mlp_input", bytes(patches, config.hidden), kTowerOutput, kTowerWide},
          {"wide", bytes(patches, config.intermediate), kTowerWide, kTowerNarrow},
          {"merge_input", bytes(patches, config.hidden), kTowerMerged, kTowerMerged},
          {"merge_wide", bytes(tokens, config.merged()), kTowerMerged, kTowerFeature}};
}

void check_pictures(const VisionConfig& config, std::span<const PatchView> pictures) {
  for (const PatchView& picture : pictures) {
    const std::int64_t merge = config.merge;
    const bool whole = picture.rows > 0 && picture.columns > 0 && picture.rows % merge == 0 &&
                       picture.columns % merge == 0 && picture.rows <= (1 << 20) && picture.columns <= (1 << 20);
    const std::int64_t count = whole ? picture.rows * picture.columns * config.patch_values() : -1;
    if (count != static_cast<std::int64_t>(picture.values.size())) {
      throw Error(
          fmt::format("a picture of {} x {} patches with {} values; whole blocks of {} x {} patches of {} values "
                      "each are needed",
                      picture.rows, picture.columns, picture.values.size(), merge, merge, config.patch_values()));
    }
  }
}

}  // namespace

// Everything that lives while some pictures are encoded.
struct VisionTower::Pass {
  Pass(const Executor& executor, const VisionConfig& config, std::span<const PatchView> pictures)
      : count(patches_of(pictures)), memory(executor.memory(), vision_tensors(config, count)) {
    std::int64_t largest = 1;
    std::array<std::vector<std::int32_t>, 2> places;
    std::vector<std::int32_t> starts{0};
    for (const PatchView& picture : pictures) {
      const auto own = patch_positions(picture.rows, picture.columns, config.merge);
      for (std::size_t axis = 0; axis < 2; ++axis) {
        places[axis].insert(places[axis].end(), own[axis].begin(), own[axis].end());
      }
      starts.push_back(static_cast<std::int32_t>(starts.back() + picture.rows * picture.columns));
      largest = std::max({largest, picture.rows, picture.columns});
    }
    places[0].insert(places[0].end(), places[1].begin(), places[1].end());
    const RopeTables tables = rope_tables(largest, config.head_dim() / 4, kAngleBase);
    DeviceMemory& device = executor.memory();
    position_memory = uploaded(device, std::as_bytes(std::span(places[0])));
    start_memory = uploaded(device, std::as_bytes(std::span(starts)));
    cosine_memory = uploaded(device, std::as_bytes(std::span(tables.cosine)));
    sine_memory = uploaded(device, std::as_bytes(std::span(tables.sine)));
    positions = {position_memory.data(), ElementType::int32, {2, count}};
    cosine = {cosine_memory.data(), ElementType::float32, {tables.positions, tables.slots}};
    sine = {sine_memory.data(), ElementType::float32, {tables.positions, tables.slots}};
    if (pictures.size() > 1) {
      segment_starts = {start_memory.data(), ElementType::int32, {static_cast<std::int64_t>(starts.size())}};
    }
  }

  static std::int64_t patches_of(std::span<const PatchView> pictures) {
    std::int64_t sum = 0;
    for (const PatchView& picture : pictures) {
      sum += picture.rows * picture.columns;
    }
    return sum;
  }
  [[nodiscard]] TensorView view(const char* name, std::initializer_list<std::int64_t> extents) const {
    return tensor_in(memory.view(name), ElementType::float32, extents);
  }

  std::int64_t count;
  Arena memory;
  RawBuffer position_memory;
  RawBuffer start_memory;
  RawBuffer cosine_memory;
  RawBuffer sine_memory;
  TensorView positions;
  TensorView cosine;
  TensorView sine;
  TensorView segment_starts;
};

VisionTower::VisionTower(Executor& executor, const VisionConfig& config, const VisionWeights& weights)
    : executor_(&executor), config_(&config), weights_(&weights) {}

std::uint64_t VisionTower::bytes_for(std::int64_t patches) const {
  const std::int64_t tokens = patches / (config_->merge * config_->merge);
  const auto features = static_cast<std::uint64_t>(1 + weights_->deepstack.size());
  return plan_arena(vision_tensors(*config_, patches)).total_bytes +
         features * static_cast<std::uint64_t>(tokens * config_->out_hidden) * sizeof(float);
}

ImageFeatures VisionTower::encode(std::span<const PatchView> pictures) {
  check_pictures(*config_, pictures);
  ImageFeatures features;
  if (pictures.empty()) {
    return features;
  }
  const std::int64_t patches = Pass::patches_of(pictures);
  const std::uint64_t free = executor_->memory().state().free_bytes;
  if (bytes_for(patches) > free) {
    throw OutOfMemoryError(fmt::format("{} patches of pictures need {} MiB, and the device has {} MiB free; make them "
                                       "smaller with --max-image-tokens",
                                       patches, bytes_for(patches) >> 20, free >> 20),
                           bytes_for(patches), free);
  }
  Pass pass(*executor_, *config_, pictures);
  const std::int64_t tokens = patches / (config_->merge * config_->merge);
  const auto feature = [&] {
    const auto bytes = static_cast<std::size_t>(tokens * config_->out_hidden) * sizeof(float);
    return tensor_in(features.buffers.emplace_back(executor_->memory().allocate_raw(bytes)).span(),
                     ElementType::float32, {tokens, config_->out_hidden});
  };
  embed(pass, pictures);
  for (std::size_t i = 0; i < weights_->blocks.size(); ++i) {
    run_block(weights_->blocks[i], pass);
    const auto& indexes = config_->deepstack_indexes;
    const auto found = std::find(indexes.begin(), indexes.end(), static_cast<std::int64_t>(i));
    if (found != indexes.end()) {
      features.deepstack.push_back(feature());
      merge(weights_->deepstack[static_cast<std::size_t>(found - indexes.begin())], true, pass,
            features.deepstack.back());
    }
  }
  features.embeddings = feature();
  merge(weights_->merger, false, pass, features.embeddings);
  executor_->device().synchronize();  // the pass's memory goes
  return features;
}

void VisionTower::embed(Pass& pass, std::span<const PatchView> pictures) {
  const TensorView pixels = pass.view("pixels", {pass.count, config_->patch_values()});
  const TensorView patches = pass.view("patches", {pass.count, config_->hidden});
  const TensorView hidden = pass.view("hidden", {pass.count, config_->hidden});
  std::int64_t first = 0;
  for (const PatchView& picture : pictures) {
    const std::int64_t count = picture.rows * picture.columns;
    executor_->memory().upload({}, span_of(rows_of(pixels, first, count)), std::as_bytes(picture.values));
    first += count;
  }
  executor_->matmul({.a = pixels,
                     .b = weights_->patch_embed.weight,
                     .c = patches,
                     .bias = weights_->patch_embed.bias,
                     .residual = {},
                     .epilogue = ops::Epilogue::bias});
  first = 0;
  for (const PatchView& picture : pictures) {
    const std::int64_t count = picture.rows * picture.columns;
    executor_->position_embedding({.x = rows_of(patches, first, count),
                                   .table = weights_->positions,
                                   .y = rows_of(hidden, first, count),
                                   .grid_h = picture.rows,
                                   .grid_w = picture.columns,
                                   .merge = config_->merge});
    first += count;
  }
}

void VisionTower::run_block(const VisionBlockWeights& weights, Pass& pass) {
  attend(weights, pass);
  const TensorView hidden = pass.view("hidden", {pass.count, config_->hidden});
  const TensorView input = pass.view("mlp_input", {pass.count, config_->hidden});
  const TensorView wide = pass.view("wide", {pass.count, config_->intermediate});
  executor_->layernorm(
      {.x = hidden, .weight = weights.norm2.weight, .bias = weights.norm2.bias, .y = input, .residual = {}});
  executor_->matmul({.a = input,
                     .b = weights.fc1.weight,
                     .c = wide,
                     .bias = weights.fc1.bias,
                     .residual = {},
                     .epilogue = ops::Epilogue::bias_gelu_tanh});
  executor_->matmul({.a = wide,
                     .b = weights.fc2.weight,
                     .c = hidden,
                     .bias = weights.fc2.bias,
                     .residual = hidden,
                     .epilogue = ops::Epilogue::bias_residual});
}

void VisionTower::attend(const VisionBlockWeights& weights, Pass& pass) {
  const std::int64_t count = pass.count;
  const std::int64_t head_dim = config_->head_dim();
  const TensorView hidden = pass.view("hidden", {count, config_->hidden});
  const TensorView normed = pass.view("normed", {count, config_->hidden});
  const TensorView qkv = pass.view("qkv", {count, 3, config_->heads, head_dim});
  const TensorView attended = pass.view("attended", {count, config_->heads, head_dim});
  executor_->layernorm(
      {.x = hidden, .weight = weights.norm1.weight, .bias = weights.norm1.bias, .y = normed, .residual = {}});
  executor_->matmul({.a = normed,
                     .b = weights.qkv.weight,
                     .c = reshaped(qkv, {count, 3 * config_->hidden}),
                     .bias = weights.qkv.bias,
                     .residual = {},
                     .epilogue = ops::Epilogue::bias});
  executor_->rope_vision({.qkv = qkv, .cosine = pass.cosine, .sine = pass.sine, .positions = pass.positions});
  const auto part = [&](std::int64_t which) {
    void* const data = static_cast<float*>(qkv.data) + which * config_->hidden;
    return TensorView(data, ElementType::float32, {count, config_->heads, head_dim})
        .with_row_stride(3 * config_->hidden);
  };
  executor_->attention_prefill({.q = part(0),
                                .k = part(1),
                                .v = part(2),
                                .out = attended,
                                .segment_starts = pass.segment_starts,
                                .causal = false});
  executor_->matmul({.a = reshaped(attended, {count, config_->hidden}),
                     .b = weights.projection.weight,
                     .c = hidden,
                     .bias = weights.projection.bias,
                     .residual = hidden,
                     .epilogue = ops::Epilogue::bias_residual});
}

void VisionTower::merge(const MergerWeights& weights, bool norm_merged, Pass& pass, const TensorView& out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t merged = config_->merged();
  const TensorView hidden = pass.view("hidden", {pass.count, config_->hidden});
  const TensorView input = pass.view("merge_input", {pass.count, config_->hidden});
  const TensorView wide = pass.view("merge_wide", {tokens, merged});
  // PatchView that become one token follow each other: merging them is another view.
  const TensorView x = norm_merged ? reshaped(hidden, {tokens, merged}) : hidden;
  const TensorView y = norm_merged ? reshaped(input, {tokens, merged}) : input;
  executor_->layernorm({.x = x, .weight = weights.norm.weight, .bias = weights.norm.bias, .y = y, .residual = {}});
  executor_->matmul({.a = reshaped(input, {tokens, merged}),
                     .b = weights.fc1.weight,
                     .c = wide,
                     .bias = weights.fc1.bias,
                     .residual = {},
                     .epilogue = ops::Epilogue::bias_gelu_erf});
  executor_->matmul({.a = wide,
                     .b = weights.fc2.weight,
                     .c = out,
                     .bias = weights.fc2.bias,
                     .residual = {},
                     .epilogue = ops::Epilogue::bias});
}

}  // namespace pascaline
