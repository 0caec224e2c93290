#include "runtime/model/device_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "runtime/checkpoint/tensor_list.hpp"
#include "runtime/memory/staging.hpp"
#include "runtime/model/tensor_memory.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{4} << 20;
constexpr std::size_t kAhead = 4;  // tensors that the system is asked to fetch before they are read

// A part of the device's memory, and the tensors that it is filled from.
struct WeightUpload {
  DeviceSpan to;
  std::vector<const TensorSpec*> from;  // rows of these in turn
  ElementType type = ElementType::float32;
};

// Fills `piece`, which begins at byte `offset` of an upload.
void fill_piece(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                std::size_t offset) {
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
    uploads_.push_back({span_of(view), {&one, &other}, matrices_});
    return view;
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
      uploads_.push_back({span_of(rows_of(view, first, tensor->shape[0])), {tensor}, type});
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
  for (std::int64_t i = 0; i < config.depth; ++i) {
    const std::string block = fmt::format("{}blocks.{}.", model, i);
    vision.blocks.push_back({plan.norm(block + "norm1"), plan.affine(block + "attn.qkv"),
                             plan.affine(block + "attn.proj"), plan.norm(block + "norm2"),
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
  for (int i = 1; i < threads; ++i) {
    workers.emplace_back(work);
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

}  // namespace

std::uint64_t device_weight_bytes(const ModelConfig& config, ElementType matrices) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : required_tensors(config)) {
    bytes += static_cast<std::uint64_t>(tensor.elements()) *
             size_of(is_matrix(tensor.name) ? matrices : ElementType::float32);
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
