#include "model/decoder/text_decoder.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "model/decoder/positions.hpp"
#include "model/fusion/sites.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"

namespace pascaline {
namespace {

// Steps of a layer, by which activations share memory; every layer takes the same.
enum LayerStep : int { kNorm, kProject, kRotate, kAttend, kOutput, kPostNorm, kGate, kDown };

// What is named row_… is of passes of one token: it is little, and no two of it share memory, so that any operations of
// a layer may be joined.
std::vector<ArenaTensor> layer_tensors(const TextConfig& config, std::int64_t rows) {
  const auto bytes = [&](std::int64_t width) { return static_cast<std::size_t>(rows * width) * sizeof(float); };
  const auto row_bytes = [](std::int64_t width) { return static_cast<std::size_t>(width) * sizeof(float); };
  const std::int64_t heads = config.heads * config.head_dim;
  const std::int64_t kv_heads = config.kv_heads * config.head_dim;
  return {{"hidden", bytes(config.hidden), kNorm, kDown},
          {"attention_input", bytes(config.hidden), kNorm, kProject},
          {"qkv", bytes(heads + 2 * kv_heads), kProject, kRotate},
          {"q", bytes(heads), kRotate, kAttend},
          {"attended", bytes(heads), kAttend, kOutput},
          {"mlp_input", bytes(config.hidden), kPostNorm, kGate},
          {"gated", bytes(config.intermediate), kGate, kDown},
          {"row_attention_input", row_bytes(config.hidden), kNorm, kDown},
          {"row_qkv", row_bytes(heads + 2 * kv_heads), kNorm, kDown},
          {"row_q", row_bytes(heads), kNorm, kDown},
          {"row_attended", row_bytes(heads), kNorm, kDown},
          {"row_mlp_input", row_bytes(config.hidden), kNorm, kDown},
          {"row_gated", row_bytes(config.intermediate), kNorm, kDown}};
}

constexpr std::size_t kPassTensors = 4;

std::int64_t checked_rows(std::int64_t rows) {
  if (rows < 1) {
    throw Error(fmt::format("a pass of {} tokens does nothing", rows));
  }
  return rows;
}

}  // namespace

LayerRunner::LayerRunner(LinearLayers& linear, FusionDecisions& fusion, const TextConfig& config, KvCache* cache,
                         std::int64_t context, std::int64_t most_rows, const AttentionChoice& attention)
    : linear_(&linear),
      fusion_(&fusion),
      executor_(&linear.executor()),
      config_(&config),
      cache_(cache),
      most_rows_(checked_rows(most_rows)),
      activations_(linear.executor().memory(), layer_tensors(config, most_rows)),
      angle_rows_(context) {
  const RopeTables tables = rope_tables(context, config.head_dim / 2, config.rope_theta, config.rope_divisors);
  cosine_ = uploaded(executor_->memory(), std::as_bytes(std::span(tables.cosine)));
  sine_ = uploaded(executor_->memory(), std::as_bytes(std::span(tables.sine)));
  if (!attention.is_dense() && cache != nullptr) {
    sparse_.emplace(executor_->memory(), config, attention, context, most_rows, cache->layers());
  }
}

std::uint64_t LayerRunner::bytes() const noexcept {
  return activations_.plan().total_bytes + cosine_.bytes() + sine_.bytes() + (sparse_ ? sparse_->bytes() : 0);
}

TensorView LayerRunner::activation(const char* name, std::initializer_list<std::int64_t> extents) const {
  return tensor_in(activations_.view(name), ElementType::float32, extents);
}

TensorView LayerRunner::angles(const RawBuffer& table) const {
  return {table.data(), ElementType::float32, {angle_rows_, config_->head_dim / 2}};
}

TensorView LayerRunner::hidden(std::int64_t rows) const { return activation("hidden", {rows, config_->hidden}); }

void LayerRunner::run(const TextLayerWeights& layer, std::int64_t index, const TextPass& pass) {
  attend(layer, index, pass);
  feed_forward(layer, pass.count());
}

void LayerRunner::attend(const TextLayerWeights& layer, std::int64_t index, const TextPass& pass) {
  const std::int64_t rows = pass.count();
  const std::int64_t head_dim = config_->head_dim;
  const bool one = rows == 1;
  const std::initializer_list<std::int64_t> heads{rows, config_->heads, head_dim};
  AttentionSite site;
  site.q_weight = layer.q_norm;
  site.k_weight = layer.k_norm;
  site.cosine = angles(cosine_);
  site.sine = angles(sine_);
  site.positions = pass.positions;
  site.length = pass.length;
  site.k_cache = cache_->keys(index);
  site.v_cache = cache_->values(index);
  site.k_scales = cache_->key_scales(index);
  site.v_scales = cache_->value_scales(index);
  site.section_h = config_->mrope_section[1];
  site.section_w = config_->mrope_section[2];
  site.epsilon = config_->norm_epsilon;
  site.hidden = activation("hidden", {rows, config_->hidden});
  site.input_norm = layer.input_norm;
  site.qkv_weight = layer.qkv;
  site.slots = pass.slots;
  site.output = layer.output;
  site.input = activation(one ? "row_attention_input" : "attention_input", {rows, config_->hidden});
  site.qkv = activation(one ? "row_qkv" : "qkv", {rows, config_->heads + 2 * config_->kv_heads, head_dim});
  site.q = activation(one ? "row_q" : "q", heads);
  site.attended = activation(one ? "row_attended" : "attended", heads);
  site.cached = pass.cached;
  if (sparse_) {
    sparse_->run(*fusion_, *linear_, site, index);
  } else {
    fusion_->run(*linear_, site);
  }
}

void LayerRunner::feed_forward(const TextLayerWeights& layer, std::int64_t rows) {
  const bool one = rows == 1;
  fusion_->run(*linear_, MlpSite{.hidden = activation("hidden", {rows, config_->hidden}),
                                 .post_norm = layer.post_norm,
                                 .gate_up = layer.gate_up,
                                 .down = layer.down,
                                 .input = activation(one ? "row_mlp_input" : "mlp_input", {rows, config_->hidden}),
                                 .gated = activation(one ? "row_gated" : "gated", {rows, config_->intermediate}),
                                 .epsilon = config_->norm_epsilon});
}

void LayerRunner::project(const TextWeights& weights, std::int64_t first, std::int64_t count,
                          const TensorView& logits) {
  fusion_->run(*linear_,
               HeadSite{.hidden = rows_of(activation("hidden", {most_rows_, config_->hidden}), first, count),
                        .norm = weights.norm,
                        .head = weights.head,
                        .logits = logits,
                        .input = activation(count == 1 ? "row_mlp_input" : "mlp_input", {count, config_->hidden}),
                        .epsilon = config_->norm_epsilon});
}

TextDecoder::TextDecoder(const DecoderSide& device, const DecoderSide& processor, const TextConfig& config,
                         const TextWeights& weights, const ModelResidency& residency, WeightStream* stream,
                         std::int64_t context, std::int64_t most_rows, const AttentionChoice& attention)
    : device_(&device.linear->executor()),
      weights_(&weights),
      residency_(residency),
      stream_(stream),
      most_rows_(checked_rows(most_rows)) {
  if (residency_.device_decodes()) {
    runners_[kDevice].emplace(*device.linear, *device.fusion, config, device.cache, context, most_rows, attention);
  }
  if (residency_.processor_decodes()) {
    runners_[kProcessor].emplace(*processor.linear, *processor.fusion, config, processor.cache, context, most_rows,
                                 attention);
    const auto rows = static_cast<std::size_t>(most_rows);
    pass_memory_ = processor.linear->executor().memory().allocate_raw(kPassTensors * DeviceMemory::kAlignment +
                                                                      (5 * rows + 1) * sizeof(std::int32_t));
  }
  std::array<std::int64_t, 2> counts{};
  for (const Residency where : residency_.layers) {
    cache_indexes_.push_back(counts[side_of(where)]++);
  }
}

std::uint64_t TextDecoder::bytes() const noexcept { return runners_[kDevice] ? runners_[kDevice]->bytes() : 0; }

std::uint64_t TextDecoder::host_bytes() const noexcept {
  return (runners_[kProcessor] ? runners_[kProcessor]->bytes() : 0) + pass_memory_.bytes() + logits_memory_.bytes();
}

std::uint64_t TextDecoder::activation_bytes(const TextConfig& config, std::int64_t rows) {
  return lay_out_arena(layer_tensors(config, rows)).total_bytes;
}

std::uint64_t TextDecoder::table_bytes(const TextConfig& config, std::int64_t context) noexcept {
  return static_cast<std::uint64_t>(context * config.head_dim) * sizeof(float);
}

void TextDecoder::check(const TextPass& pass) const {
  if (pass.count() < 1 || pass.count() > most_rows_) {
    throw Error(fmt::format("a pass of {} tokens; it may have 1 to {}", pass.count(), most_rows_));
  }
}

void TextDecoder::forward(const TextPass& pass) {
  embed(pass);
  run_layers(pass);
}

void TextDecoder::embed(const TextPass& pass) {
  check(pass);
  embed_there(side_of(residency_.embedding) == kProcessor ? on_processor(pass) : pass);
}

TensorView TextDecoder::embedding_of_next() {
  hidden_at_ = kDevice;
  return runner(kDevice).hidden(1);
}

void TextDecoder::run_layers(const TextPass& pass) {
  check(pass);
  const std::array<TextPass, 2> passes{pass, runners_[kProcessor] ? on_processor(pass) : TextPass{}};
  for (std::size_t i = 0; i < weights_->layers.size(); ++i) {
    const Side side = side_of(residency_.layers[i]);
    move_hidden(side, 0, pass.count());
    hidden_at_ = side;
    run_layer(i, passes[side]);
    add_deepstack(pass, i);
  }
}

// The pass with its tensors in the host's memory; its images stay on the device.
TextPass TextDecoder::on_processor(const TextPass& pass) {
  TextPass there = pass;
  std::size_t offset = 0;
  for (TensorView* const tensor : {&there.tokens, &there.positions, &there.slots, &there.length}) {
    const DeviceSpan from = span_of(*tensor);
    const DeviceSpan to = pass_memory_.span().slice(offset, from.bytes);
    device_memory().download({}, {static_cast<std::byte*>(to.data), to.bytes}, from);
    tensor->data = to.data;
    offset += (from.bytes / DeviceMemory::kAlignment + 1) * DeviceMemory::kAlignment;
  }
  device_memory().synchronize(StreamId{});
  return there;
}

void TextDecoder::embed_there(const TextPass& pass) {
  const Side side = side_of(residency_.embedding);
  const TensorView hidden = runner(side).hidden(pass.count());
  runner(side).executor().run(ops::Gather{weights_->embedding, pass.tokens, hidden});
  for (const ImageRows& image : pass.images) {
    const DeviceSpan to = span_of(rows_of(hidden, image.first, image.embeddings.shape[0]));
    const DeviceSpan from = span_of(image.embeddings);
    if (side == kDevice) {
      device_memory().copy({}, to, from);
    } else {
      device_memory().download({}, {static_cast<std::byte*>(to.data), to.bytes}, from);
      device_memory().synchronize(StreamId{});
    }
  }
  hidden_at_ = side;
}

// Copies rows of the residual stream, unless they are there.
void TextDecoder::move_hidden(Side to, std::int64_t first, std::int64_t rows) {
  if (to == hidden_at_) {
    return;
  }
  const DeviceSpan from_span = span_of(rows_of(runner(hidden_at_).hidden(most_rows_), first, rows));
  const DeviceSpan to_span = span_of(rows_of(runner(to).hidden(most_rows_), first, rows));
  if (to == kDevice) {
    device_memory().upload({}, to_span, {static_cast<const std::byte*>(from_span.data), from_span.bytes});
  } else {
    device_memory().download({}, {static_cast<std::byte*>(to_span.data), to_span.bytes}, from_span);
  }
  device_memory().synchronize(StreamId{});
}

void TextDecoder::run_layer(std::size_t index, const TextPass& pass) {
  const Residency where = residency_.layers[index];
  LayerRunner& there = runner(side_of(where));
  if (where != Residency::streamed) {
    there.run(weights_->layers[index], cache_indexes_[index], pass);
    return;
  }
  const WeightPart part{PartKind::layer, index};
  there.run(stream_->enter(part, weights_->layers[index]), cache_indexes_[index], pass);
  stream_->leave(part);
}

void TextDecoder::add_deepstack(const TextPass& pass, std::size_t index) {
  const TensorView hidden = runner(hidden_at_).hidden(pass.count());
  for (const ImageRows& image : pass.images) {
    if (index >= image.deepstack.size()) {
      continue;
    }
    const TensorView rows = rows_of(hidden, image.first, image.embeddings.shape[0]);
    TensorView features = image.deepstack[index];
    RawBuffer here;
    if (hidden_at_ == kProcessor) {
      here = runner(kProcessor).executor().memory().allocate_raw(bytes_of(features));
      device_memory().download({}, {static_cast<std::byte*>(here.data()), here.bytes()}, span_of(features));
      device_memory().synchronize(StreamId{});
      features.data = here.data();
    }
    runner(hidden_at_).executor().run(ops::Add{rows, features, rows});
  }
}

void TextDecoder::project(std::int64_t first, std::int64_t count, const TensorView& logits) {
  const Side side = side_of(residency_.head);
  move_hidden(side, first, count);
  if (side == kDevice) {
    runner(side).project(*weights_, first, count, logits);
    return;
  }
  const DeviceSpan there = span_of(logits);
  if (there.bytes > logits_memory_.bytes()) {
    logits_memory_ = RawBuffer();
    logits_memory_ = runner(side).executor().memory().allocate_raw(there.bytes);
  }
  TensorView here = logits;
  here.data = logits_memory_.data();
  runner(side).project(*weights_, first, count, here);
  device_memory().upload({}, there, {static_cast<const std::byte*>(here.data), there.bytes});
  device_memory().synchronize(StreamId{});
}

}  // namespace pascaline
