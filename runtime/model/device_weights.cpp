#include "runtime/model/device_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <variant>

#include "core/error.hpp"
#include "runtime/checkpoint/weight_table.hpp"
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

// How a weight lies on the device: rows of so many elements.
struct WeightExtent {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  ElementType type = ElementType::float32;
  std::optional<HeadPadding> padding;
};

WeightExtent extent_of(const WeightEntry& entry, const ModelConfig& config, WeightStorage matrices) {
  WeightExtent extent{entry.rows(), entry.width(), ElementType::float32, {}};
  if (entry.kind() == TensorKind::matrix) {
    extent.type = matrices.type;
  }
  const bool in_rows = entry.layout == WeightLayout::head_rows;
  if (in_rows || entry.layout == WeightLayout::head_columns) {
    const HeadPadding heads{config.vision.value().head_dim(), padded_head_dim(*config.vision),
                            in_rows ? extent.width : 1};
    if (heads.size != heads.padded) {
      std::int64_t& elements = in_rows ? extent.rows : extent.width;
      elements = elements / heads.size * heads.padded;
      extent.padding = heads;
    }
  }
  return extent;
}

// Places the weights of the table in memory of the device, and notes what is to be brought where.
class WeightPlacer {
 public:
  WeightPlacer(WeightSource& source, DeviceMemory& memory, DeviceWeights& result)
      : source_(&source), memory_(&memory), result_(&result) {}

  void place(const WeightEntry& entry, const WeightExtent& extent) {
    std::vector<const TensorSpec*> tensors;
    for (const TensorSpec& tensor : entry.tensors) {
      tensors.push_back(&source_->take(tensor.name));
    }
    const TensorView view = allocated(extent);
    if (tensors.size() == 1 || entry.layout == WeightLayout::interleaved) {
      uploads_.push_back({span_of(view), tensors, extent.type, extent.padding});
    } else {
      stack(view, tensors);
    }
    if (WeightView* const* matrix = std::get_if<WeightView*>(&entry.place)) {
      **matrix = view;
    } else {
      const bool is_vector = entry.tensors.front().shape.size() == 1;
      *std::get<TensorView*>(entry.place) = is_vector ? reshaped(view, {extent.rows}) : view;
    }
  }

  [[nodiscard]] const std::vector<WeightUpload>& uploads() const noexcept { return uploads_; }

 private:
  void stack(const TensorView& view, const std::vector<const TensorSpec*>& tensors) {
    std::int64_t first = 0;
    for (const TensorSpec* tensor : tensors) {
      uploads_.push_back({span_of(rows_of(view, first, tensor->shape[0])), {tensor}, view.type, {}});
      first += tensor->shape[0];
    }
  }

  TensorView allocated(const WeightExtent& extent) {
    const std::size_t bytes = bytes_of(extent.type, extent.rows * extent.width);
    result_->bytes += bytes;
    const DeviceSpan memory = result_->buffers.emplace_back(memory_->allocate_raw(bytes)).span();
    return tensor_in(memory, extent.type, {extent.rows, extent.width});
  }

  WeightSource* source_;
  DeviceMemory* memory_;
  DeviceWeights* result_;
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

}  // namespace

std::uint64_t device_weight_bytes(const ModelConfig& config, WeightStorage matrices) {
  ModelWeights unused;
  std::uint64_t bytes = 0;
  for (const WeightEntry& entry : weight_table(config, unused)) {
    const WeightExtent extent = extent_of(entry, config, matrices);
    bytes += bytes_of(extent.type, extent.rows * extent.width);
  }
  return bytes;
}

DeviceWeights load_weights(const ModelConfig& config, WeightSource& source, DeviceMemory& memory,
                           WeightStorage matrices, int threads) {
  if (matrices.type != ElementType::float32 && matrices.type != ElementType::float16) {
    throw Error("weights are kept as float32 or float16");
  }
  const std::uint64_t needed = device_weight_bytes(config, matrices);
  const std::uint64_t free = memory.state().free_bytes;
  if (needed > free) {
    const char* advice = matrices.type == ElementType::float32 ? "; --weights float16 needs half of it" : "";
    throw OutOfMemoryError(
        fmt::format("the weights need {} MiB, and the device has {} MiB free{}", needed >> 20, free >> 20, advice),
        needed, free);
  }
  DeviceWeights weights;
  WeightPlacer placer(source, memory, weights);
  for (const WeightEntry& entry : weight_table(config, weights)) {
    placer.place(entry, extent_of(entry, config, matrices));
  }
  finish_views(config, weights);
  source.require_all_taken();
  if (threads < 1) {
    threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  }
  bring(source, placer.uploads(), memory, threads);
  return weights;
}

}  // namespace pascaline
