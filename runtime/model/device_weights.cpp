#include "runtime/model/device_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "core/error.hpp"
#include "runtime/checkpoint/tensor_list.hpp"
#include "runtime/memory/staging.hpp"
#include "runtime/model/requirements.hpp"
#include "runtime/model/tensor_memory.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{4} << 20;
constexpr std::size_t kAhead = 4;  // tensors that the system is asked to fetch before they are read

// Heads that are filled up with zeros: each quarter of the `size` elements at the beginning of one of `padded`.
struct HeadPadding {
  std::int64_t size = 0;
  std::int64_t padded = 0;
  std::int64_t width = 1;  // values of an element of a head
};

// A part of the device's memory, and the tensors that it is filled from.
struct WeightUpload {
  DeviceSpan to;
  std::vector<const TensorSpec*> from;  // rows of these in turn
  ElementType type = ElementType::float32;
  std::optional<HeadPadding> padding;  // then of one tensor
};

// Likewise with zeros between what the tensor has.
void fill_padded(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                 std::size_t offset) {
  const std::size_t element = size_of(upload.type);
  const HeadPadding& heads = *upload.padding;
  const std::int64_t quarter = heads.size / 4 * heads.width;
  const std::int64_t padded_quarter = heads.padded / 4 * heads.width;
  auto place = static_cast<std::int64_t>(offset / element);
  while (!piece.empty()) {
    const std::int64_t number = place / padded_quarter;
    const std::int64_t inside = place % padded_quarter;
    const std::int64_t run = inside < quarter ? quarter - inside : padded_quarter - inside;
    const std::size_t bytes = std::min(piece.size(), static_cast<std::size_t>(run) * element);
    if (inside < quarter) {
      source.read(*upload.from[0], upload.type, number * quarter + inside, piece.first(bytes));
    } else {
      std::fill_n(piece.begin(), bytes, std::byte{0});
    }
    piece = piece.subspan(bytes);
    place += static_cast<std::int64_t>(bytes / element);
  }
}

// Fills `piece`, which begins at byte `offset` of an upload.
void fill_piece(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                std::size_t offset) {
  if (upload.padding) {
    fill_padded(source, upload, piece, offset);
    return;
  }
  const std::size_t element = size_of(upload.type);
  const auto count = upload.from.size();
  const auto total = static_cast<std::size_t>(upload.from[0]->elements());
  const std::size_t row = count == 1 ? total : total / static_cast<std::size_t>(upload.from[0]->shape[0]);
  std::size_t first = offset / element;
  while (!piece.empty()) {
    const std::size_t number = first / row;
    const std::size_t inside = first % row;
    const std::size_t bytes = std::min(piece.size(), (row - inside) * element);
    source.read(*upload.from[number % count], upload.type, static_cast<std::int64_t>(number / count * row + inside),
                piece.first(bytes));
    piece = piece.subspan(bytes);
    first += bytes / element;
  }
}

// Lays out weights: takes tensors by name, allocates, and notes what is to be brought where.
class WeightPlan {
 public:
  WeightPlan(WeightSource& source, DeviceMemory& memory, ElementType matrices, DeviceWeights& result)
      : source_(&source), memory_(&memory), matrices_(matrices), result_(&result) {}

  TensorView matrix(const std::string& name) { return joined({name}, matrices_); }
  TensorView values(const std::string& name) { return joined({name}, ElementType::float32); }
  AffineWeights affine(const std::string& name) { return {matrix(name + ".weight"), values(name + ".bias")}; }
  AffineWeights norm(const std::string& name) { return {values(name + ".weight"), values(name + ".bias")}; }

  // Matrices below each other.
  TensorView stacked(const std::vector<std::string>& names) { return joined(names, matrices_); }

  // Rows of two matrices in turn.
  TensorView alternating(const std::string& first, const std::string& second) {
    const TensorSpec& one = source_->take(first);
    const TensorSpec& other = source_->take(second);
    const TensorView view = place(one.shape[0] + other.shape[0], one.shape[1], matrices_);
    uploads_.push_back({span_of(view), {&one, &other}, matrices_, {}});
    return view;
  }

  // A matrix whose rows (or columns, of which one is one value) are elements of heads.
  TensorView with_padded_heads(const std::string& name, HeadPadding heads, bool as_rows) {
    const bool is_bias = name.ends_with(".bias");
    if (heads.size == heads.padded) {
      return is_bias ? values(name) : matrix(name);
    }
    const TensorSpec& tensor = source_->take(name);
    const std::int64_t columns = is_bias ? 1 : tensor.shape[1];
    heads.width = as_rows ? columns : 1;
    const std::int64_t rows = as_rows ? tensor.shape[0] / heads.size * heads.padded : tensor.shape[0];
    const TensorView view = place(rows, as_rows ? columns : columns / heads.size * heads.padded,
                                  is_bias ? ElementType::float32 : matrices_);
    uploads_.push_back({span_of(view), {&tensor}, view.type, heads});
    return is_bias ? reshaped(view, {rows}) : view;
  }

  [[nodiscard]] const std::vector<WeightUpload>& uploads() const noexcept { return uploads_; }

 private:
  TensorView joined(const std::vector<std::string>& names, ElementType type) {
    std::vector<const TensorSpec*> tensors;
    std::int64_t rows = 0;
    for (const std::string& name : names) {
      tensors.push_back(&source_->take(name));
      rows += tensors.back()->shape[0];
    }
    const std::int64_t width = tensors[0]->elements() / tensors[0]->shape[0];
    const TensorView view = place(rows, width, type);
    std::int64_t first = 0;
    for (const TensorSpec* tensor : tensors) {
      uploads_.push_back({span_of(rows_of(view, first, tensor->shape[0])), {tensor}, type, {}});
      first += tensor->shape[0];
    }
    return tensors[0]->shape.size() == 1 ? reshaped(view, {rows}) : view;
  }

  TensorView place(std::int64_t rows, std::int64_t width, ElementType type) {
    const std::size_t bytes = static_cast<std::size_t>(rows * width) * size_of(type);
    result_->bytes += bytes;
    return tensor_in(result_->buffers.emplace_back(memory_->allocate_raw(bytes)).span(), type, {rows, width});
  }

  WeightSource* source_;
  DeviceMemory* memory_;
  ElementType matrices_;
  DeviceWeights* result_;
  std::vector<WeightUpload> uploads_;
};

void plan_text(const TextConfig& config, WeightPlan& plan, TextWeights& text) {
  const std::string model = "model.language_model.";
  text.embedding = plan.matrix(model + "embed_tokens.weight");
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("{}layers.{}.", model, i);
    const std::string attention = layer + "self_attn.";
    TextLayerWeights& weights = text.layers.emplace_back();
    weights.input_norm = plan.values(layer + "input_layernorm.weight");
    weights.qkv = plan.stacked({attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"});
    weights.q_norm = plan.values(attention + "q_norm.weight");
    weights.k_norm = plan.values(attention + "k_norm.weight");
    weights.output = plan.matrix(attention + "o_proj.weight");
    weights.post_norm = plan.values(layer + "post_attention_layernorm.weight");
    weights.gate_up = plan.alternating(layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight");
    weights.down = plan.matrix(layer + "mlp.down_proj.weight");
  }
  text.norm = plan.values(model + "norm.weight");
  text.head = config.tied ? text.embedding : plan.matrix("lm_head.weight");
}

MergerWeights plan_merger(WeightPlan& plan, const std::string& name) {
  return {plan.norm(name + ".norm"), plan.affine(name + ".linear_fc1"), plan.affine(name + ".linear_fc2")};
}

void plan_vision(const VisionConfig& config, WeightPlan& plan, VisionWeights& vision) {
  const std::string model = "model.visual.";
  vision.patch_embed = plan.affine(model + "patch_embed.proj");
  const std::int64_t side = config.position_side();
  vision.positions = reshaped(plan.values(model + "pos_embed.weight"), {side, side, config.hidden});
  const HeadPadding heads{config.head_dim(), padded_head_dim(config), 1};
  for (std::int64_t i = 0; i < config.depth; ++i) {
    const std::string block = fmt::format("{}blocks.{}.", model, i);
    const AffineWeights qkv{plan.with_padded_heads(block + "attn.qkv.weight", heads, true),
                            plan.with_padded_heads(block + "attn.qkv.bias", heads, true)};
    const AffineWeights projection{plan.with_padded_heads(block + "attn.proj.weight", heads, false),
                                   plan.values(block + "attn.proj.bias")};
    vision.blocks.push_back({plan.norm(block + "norm1"), qkv, projection, plan.norm(block + "norm2"),
                             plan.affine(block + "mlp.linear_fc1"), plan.affine(block + "mlp.linear_fc2")});
  }
  vision.merger = plan_merger(plan, model + "merger");
  for (std::size_t k = 0; k < config.deepstack_indexes.size(); ++k) {
    vision.deepstack.push_back(plan_merger(plan, fmt::format("{}deepstack_merger_list.{}", model, k)));
  }
}

// Brings all uploads to the device, several at a time; the first error ends it.
void bring(const WeightSource& source, const std::vector<WeightUpload>& uploads, DeviceMemory& memory, int threads) {
  StagingRing ring(memory, kSlotBytes, 2 * static_cast<std::size_t>(threads));
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < uploads.size(); i = next++) {
        for (const TensorSpec* tensor : uploads[std::min(i + kAhead, uploads.size() - 1)].from) {
          source.announce(*tensor);
        }
        const WeightUpload& upload = uploads[i];
        ring.upload(upload.to,
                    [&](std::span<std::byte> piece, std::size_t offset) { fill_piece(source, upload, piece, offset); });
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = failure ? failure : std::current_exception();
      next = uploads.size();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  try {
    for (int i = 1; i < threads; ++i) {
      workers.emplace_back(work);
    }
  } catch (const std::system_error&) {
    // Those that could be started do it, if only this one.
  }
  work();
  for (std::thread& worker : workers) {
    worker.join();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  ring.order_before(StreamId{});
  ring.finish();
}

// Whether a tensor of that name is kept in the type chosen: matrices, of which norms, biases and positions are none.
bool is_matrix(const std::string& name) {
  return !name.ends_with(".bias") && name.find("norm") == std::string::npos && !name.ends_with("pos_embed.weight");
}

// Whether elements of the vision tower's heads are its rows or columns.
bool has_vision_heads(const std::string& name) {
  return name.find(".visual.") != std::string::npos &&
         (name.find(".attn.qkv.") != std::string::npos || name.ends_with(".attn.proj.weight"));
}

}  // namespace

std::uint64_t device_weight_bytes(const ModelConfig& config, ElementType matrices) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : required_tensors(config)) {
    const std::int64_t elements = has_vision_heads(tensor.name)
                                      ? tensor.elements() / config.vision.head_dim() * padded_head_dim(config.vision)
                                      : tensor.elements();
    bytes += static_cast<std::uint64_t>(elements) * size_of(is_matrix(tensor.name) ? matrices : ElementType::float32);
  }
  return bytes;
}

DeviceWeights load_weights(const ModelConfig& config, WeightSource& source, DeviceMemory& memory, ElementType matrices,
                           int threads) {
  if (matrices != ElementType::float32 && matrices != ElementType::float16) {
    throw Error("weights are kept as float32 or float16");
  }
  const std::uint64_t needed = device_weight_bytes(config, matrices);
  const std::uint64_t free = memory.state().free_bytes;
  if (needed > free) {
    const char* advice = matrices == ElementType::float32 ? "; --weights float16 needs half of it" : "";
    throw OutOfMemoryError(
        fmt::format("the weights need {} MiB, and the device has {} MiB free{}", needed >> 20, free >> 20, advice),
        needed, free);
  }
  DeviceWeights weights;
  WeightPlan plan(source, memory, matrices, weights);
  plan_text(config.text, plan, weights.text);
  plan_vision(config.vision, plan, weights.vision);
  source.require_all_taken();
  if (threads < 1) {
    threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  }
  bring(source, plan.uploads(), memory, threads);
  return weights;
}

}  // namespace pascaline
