#include "model/residency/device_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "core/error.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "model/requirements.hpp"
#include "model/residency/weight_upload.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/memory/staging.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{4} << 20;
constexpr std::size_t kAhead = 4;  // tensors that the system is asked to fetch before they are read

// How a weight lies on the device: rows of so many elements.
struct WeightExtent {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  ElementType type = ElementType::float32;
  std::optional<HeadLayout> heads;

  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(layout_of(type).bytes(rows, width)); }
};

WeightExtent extent_of(const WeightEntry& entry, const ModelConfig& config, const WeightRecipe& matrices) {
  WeightExtent extent{entry.rows(), entry.width(), matrices.of(entry), {}};
  const bool in_rows = entry.layout == WeightLayout::head_rows;
  if (in_rows || entry.layout == WeightLayout::head_columns) {
    HeadLayout heads{config.vision.value().head_dim(), padded_head_dim(*config.vision), in_rows ? extent.width : 1, 0};
    std::int64_t& elements = in_rows ? extent.rows : extent.width;
    const std::int64_t count = elements / heads.size;
    heads.paired = in_rows ? count / 3 * 2 : 0;
    elements = count * heads.padded;
    if (in_rows || heads.size != heads.padded) {
      extent.heads = heads;
    }
  }
  return extent;
}

std::uint64_t aligned_in_block(std::uint64_t bytes) {
  return (bytes + DeviceMemory::kAlignment - 1) / DeviceMemory::kAlignment * DeviceMemory::kAlignment;
}

Residency residency_of(const WeightPart& part, const ModelResidency* residency) {
  if (residency == nullptr) {
    return Residency::device;
  }
  switch (part.kind) {
    case PartKind::embedding:
      return residency->embedding;
    case PartKind::head:
      return residency->head;
    case PartKind::vision:
      return residency->residency_of_tower(part.index);
    case PartKind::layer:
      break;
  }
  return residency->layers.at(part.index);
}

// Page-locked memory that the system refuses is taken as plain memory.
WeightBlock block_of(const WeightMemories& memories, std::uint64_t bytes) {
  WeightBlock block;
  try {
    block.pinned = memories.device->allocate_pinned(bytes);
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error&) {
    block.plain = memories.host->allocate_raw(bytes);
  }
  return block;
}

// Places the weights of the table in memory, and notes what is to be brought where.
class WeightAllocator {
 public:
  WeightAllocator(WeightSource& source, const WeightMemories& memories, const ResidencySizes& sizes,
                  DeviceWeights& result)
      : source_(&source), memories_(memories), sizes_(&sizes), result_(&result) {}

  void allocate(const WeightEntry& entry, const WeightExtent& extent) {
    part_ = entry.part;
    where_ = residency_of(part_, memories_.residency);
    std::vector<const TensorSpec*> tensors;
    for (const TensorSpec& tensor : entry.tensors) {
      tensors.push_back(&source_->take(tensor.name));
    }
    const TensorView view = allocated(extent);
    if (is_matrix_format(extent.type)) {
      uploads_.push_back({span_of(view), tensors, extent.type, extent.heads, entry.layout, extent.rows, extent.width,
                          where_ != Residency::device});
    } else if (tensors.size() == 1 || entry.layout == WeightLayout::interleaved) {
      upload(view, tensors, extent.heads);
    } else {
      stack(view, tensors);
    }
    const bool is_vector = entry.tensors.front().shape.size() == 1;
    *entry.place = is_vector ? reshaped(view, {extent.rows}) : view;
  }

  [[nodiscard]] const std::vector<WeightUpload>& uploads() const noexcept { return uploads_; }

 private:
  void upload(const TensorView& to, const std::vector<const TensorSpec*>& from,
              const std::optional<HeadLayout>& heads) {
    uploads_.push_back({span_of(to), from, to.type, heads, WeightLayout::stacked, 0, 0, where_ != Residency::device});
  }

  void stack(const TensorView& view, const std::vector<const TensorSpec*>& tensors) {
    std::int64_t first = 0;
    for (const TensorSpec* tensor : tensors) {
      upload(rows_of(view, first, tensor->shape[0]), {tensor}, {});
      first += tensor->shape[0];
    }
  }

  TensorView allocated(const WeightExtent& extent) {
    const std::uint64_t bytes = extent.bytes();
    (where_ == Residency::device ? result_->bytes : result_->host_bytes) += bytes;
    if (where_ == Residency::streamed) {
      return tensor_in(next_of_block(bytes), extent.type, {extent.rows, extent.width});
    }
    DeviceMemory& memory = where_ == Residency::device ? *memories_.device : *memories_.host;
    const DeviceSpan span = result_->buffers.emplace_back(memory.allocate_raw(bytes)).span();
    return tensor_in(span, extent.type, {extent.rows, extent.width});
  }

  DeviceSpan next_of_block(std::uint64_t bytes) {
    WeightBlock& block = result_->blocks[part_];
    if (block.used_bytes == 0) {
      const std::vector<PartSize>& parts = part_.kind == PartKind::layer ? sizes_->layers : sizes_->tower;
      block = block_of(memories_, parts.at(part_.index).bytes);
      result_->not_pinned_bytes += block.plain.bytes();
    }
    const DeviceSpan span = block.span().slice(block.used_bytes, bytes);
    block.used_bytes += aligned_in_block(bytes);
    return span;
  }

  WeightSource* source_;
  WeightMemories memories_;
  const ResidencySizes* sizes_;
  DeviceWeights* result_;
  WeightPart part_;  // of the weight that is placed
  Residency where_ = Residency::device;
  std::vector<WeightUpload> uploads_;
};

// What the table leaves to be said of the views: which share memory, and which have other extents than their tensors.
void finish_views(const ModelConfig& config, DeviceWeights& weights) {
  if (config.text.tied) {
    weights.text.head = weights.text.embedding;
  }
  if (config.vision) {
    const std::int64_t side = config.vision->position_side();
    weights.vision.positions = reshaped(weights.vision.positions, {side, side, config.vision->hidden});
  }
}

// In pieces, as through a slot.
template <typename Fill>
void fill_host(DeviceSpan to, const Fill& fill) {
  auto* const data = static_cast<std::byte*>(to.data);
  for (std::size_t offset = 0; offset < to.bytes; offset += kSlotBytes) {
    fill(std::span(data + offset, std::min(kSlotBytes, to.bytes - offset)), offset);
  }
}

// Brings all uploads to their memories, several at a time; the first error ends it.
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
        const UploadFiller fill(source, upload);
        upload.in_host ? fill_host(upload.to, fill) : ring.upload(upload.to, fill);
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

std::uint64_t bytes_on_device(const ModelConfig& config, const WeightRecipe& matrices,
                              const ModelResidency* residency) {
  ModelWeights unused;
  std::uint64_t bytes = 0;
  for (const WeightEntry& entry : weight_table(config, unused, matrices)) {
    bytes += residency_of(entry.part, residency) == Residency::device ? extent_of(entry, config, matrices).bytes() : 0;
  }
  return bytes;
}

}  // namespace

std::uint64_t device_weight_bytes(const ModelConfig& config, const WeightRecipe& matrices) {
  return bytes_on_device(config, matrices, nullptr);
}

ResidencySizes weight_sizes(const ModelConfig& config, const WeightRecipe& matrices) {
  ModelWeights unused;
  ResidencySizes sizes;
  sizes.tied = config.text.tied;
  sizes.layers.resize(static_cast<std::size_t>(config.text.layers));
  const std::optional<VisionParts> tower =
      config.vision ? std::optional<VisionParts>(*config.vision) : std::optional<VisionParts>();
  sizes.tower.resize(tower ? tower->count() : 0);
  for (const WeightEntry& entry : weight_table(config, unused, matrices)) {
    const WeightExtent extent = extent_of(entry, config, matrices);
    const WeightPart where = entry.part;
    PartSize& part = where.kind == PartKind::layer       ? sizes.layers.at(where.index)
                     : where.kind == PartKind::embedding ? sizes.embedding
                     : where.kind == PartKind::head      ? sizes.head
                                                         : sizes.tower.at(where.index);
    part.bytes += aligned_in_block(extent.bytes());
    if (entry.kind() == TensorKind::matrix) {
      const bool of_merged = where.kind == PartKind::vision && tower->takes_merged(where.index);
      const std::int64_t share = of_merged ? config.vision->merge * config.vision->merge : 1;
      part.parameters += static_cast<std::uint64_t>(extent.rows * extent.width / share);
    }
  }
  return sizes;
}

ElementType layer_type(const ModelConfig& config, const WeightRecipe& matrices) {
  ModelWeights views;
  for (const WeightEntry& entry : weight_table(config, views, matrices)) {
    if (entry.place == &views.text.layers.front().gate_up) {
      return matrices.of(entry);
    }
  }
  return ElementType::float32;
}

DeviceWeights load_weights(const ModelConfig& config, WeightSource& source, DeviceMemory& memory,
                           const WeightRecipe& matrices, int threads) {
  return load_weights(config, source, WeightMemories{&memory, nullptr, nullptr}, matrices, threads);
}

DeviceWeights load_weights(const ModelConfig& config, WeightSource& source, const WeightMemories& memories,
                           const WeightRecipe& matrices, int threads) {
  const std::uint64_t needed = bytes_on_device(config, matrices, memories.residency);
  const std::uint64_t free = memories.device->state().free_bytes;
  if (needed > free) {
    const char* advice = matrices == ElementType::float32 ? "; --weights float16 needs half of it" : "";
    throw OutOfMemoryError(
        fmt::format("the weights need {} MiB, and the device has {} MiB free{}", needed >> 20, free >> 20, advice),
        needed, free);
  }
  DeviceWeights weights;
  const ResidencySizes sizes = weight_sizes(config, matrices);
  WeightAllocator allocator(source, memories, sizes, weights);
  const std::vector<WeightEntry> table = weight_table(config, weights, matrices);
  matrices.require_uses(table);
  for (const WeightEntry& entry : table) {
    allocator.allocate(entry, extent_of(entry, config, matrices));
  }
  finish_views(config, weights);
  source.require_all_taken();
  if (!source.has_values()) {
    return weights;
  }
  if (threads < 1) {
    threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  }
  bring(source, allocator.uploads(), *memories.device, threads);
  return weights;
}

}  // namespace pascaline
