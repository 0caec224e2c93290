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
#include "runtime/formats/int8_rows.hpp"
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
  WeightFormat format = WeightFormat::dense;
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

// Fills `piece` with values of rows in int8, or with scales of rows, as the type of the upload says.
void fill_int8_rows(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                    std::size_t offset) {
  const bool brings_scales = upload.type == ElementType::float32;
  const auto count = upload.from.size();
  const auto width = static_cast<std::size_t>(upload.from[0]->elements() / upload.from[0]->shape[0]);
  const std::size_t row_bytes = brings_scales ? sizeof(float) : width;
  std::vector<float> row(width);
  std::vector<std::int8_t> values(width);
  while (!piece.empty()) {
    const std::size_t number = offset / row_bytes;
    const std::size_t inside = offset % row_bytes;
    source.read(*upload.from[number % count], ElementType::float32, static_cast<std::int64_t>(number / count * width),
                std::as_writable_bytes(std::span(row)));
    const float scale = int8_row_scale(row);
    if (!brings_scales) {
      quantise_to_int8(row, scale, values);
    }
    const std::span<const std::byte> bytes =
        brings_scales ? std::as_bytes(std::span(&scale, 1)) : std::as_bytes(std::span(values));
    const std::size_t filled = std::min(piece.size(), row_bytes - inside);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(inside), filled, piece.begin());
    piece = piece.subspan(filled);
    offset += filled;
  }
}

// Fills `piece`, which begins at byte `offset` of an upload.
void fill_piece(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                std::size_t offset) {
  if (upload.format == WeightFormat::int8_rows) {
    fill_int8_rows(source, upload, piece, offset);
    return;
  }
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
  WeightFormat format = WeightFormat::dense;

  [[nodiscard]] std::uint64_t bytes() const {
    const auto elements = static_cast<std::size_t>(rows * width);
    const auto scales = format == WeightFormat::int8_rows ? static_cast<std::size_t>(rows) : 0;
    return bytes_of(type, elements) + bytes_of(ElementType::float32, scales);
  }
};

// Whether the weight is of a linear layer of the text decoder.
bool is_decoder_layer(const WeightEntry& entry, const TextWeights& places) {
  WeightView* const* matrix = std::get_if<WeightView*>(&entry.place);
  return matrix != nullptr &&
         (*matrix == &places.head ||
          std::any_of(places.layers.begin(), places.layers.end(), [&](const TextLayerWeights& layer) {
            return *matrix == &layer.qkv || *matrix == &layer.output || *matrix == &layer.gate_up ||
                   *matrix == &layer.down;
          }));
}

// `places` is what the entry's table was made for.
WeightExtent extent_of(const WeightEntry& entry, const ModelConfig& config, WeightStorage matrices,
                       const ModelWeights& places) {
  WeightExtent extent{entry.rows(), entry.width(), ElementType::float32, {}, WeightFormat::dense};
  if (entry.kind() == TensorKind::matrix) {
    extent.type = matrices.type;
  }
  if (matrices.format == WeightFormat::int8_rows && is_decoder_layer(entry, places.text)) {
    extent.type = ElementType::int8;
    extent.format = WeightFormat::int8_rows;
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
    WeightView view = allocated(extent.type, extent.rows, extent.width);
    view.format = extent.format;
    if (view.format == WeightFormat::int8_rows) {
      view.scales = reshaped(allocated(ElementType::float32, extent.rows, 1), {extent.rows});
    }
    if (tensors.size() == 1 || entry.layout == WeightLayout::interleaved) {
      upload(view, 0, extent.rows, tensors, extent.padding);
    } else {
      stack(view, tensors);
    }
    if (WeightView* const* matrix = std::get_if<WeightView*>(&entry.place)) {
      **matrix = view;
    } else {
      const bool is_vector = entry.tensors.front().shape.size() == 1;
      *std::get<TensorView*>(entry.place) = is_vector ? reshaped(view.values, {extent.rows}) : view.values;
    }
  }

  [[nodiscard]] const std::vector<WeightUpload>& uploads() const noexcept { return uploads_; }

 private:
  // Brings `count` rows from `first` on.
  void upload(const WeightView& to, std::int64_t first, std::int64_t count, const std::vector<const TensorSpec*>& from,
              const std::optional<HeadPadding>& padding) {
    uploads_.push_back({span_of(rows_of(to.values, first, count)), from, to.values.type, padding, to.format});
    if (to.format == WeightFormat::int8_rows) {
      uploads_.push_back({span_of(rows_of(to.scales, first, count)), from, to.scales.type, {}, to.format});
    }
  }

  void stack(const WeightView& view, const std::vector<const TensorSpec*>& tensors) {
    std::int64_t first = 0;
    for (const TensorSpec* tensor : tensors) {
      upload(view, first, tensor->shape[0], {tensor}, {});
      first += tensor->shape[0];
    }
  }

  TensorView allocated(ElementType type, std::int64_t rows, std::int64_t width) {
    const std::size_t bytes = bytes_of(type, static_cast<std::size_t>(rows * width));
    result_->bytes += bytes;
    const DeviceSpan memory = result_->buffers.emplace_back(memory_->allocate_raw(bytes)).span();
    return tensor_in(memory, type, {rows, width});
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
    bytes += extent_of(entry, config, matrices, unused).bytes();
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
    placer.place(entry, extent_of(entry, config, matrices, weights));
  }
  finish_views(config, weights);
  source.require_all_taken();
  if (!source.has_values()) {
    return weights;
  }
  if (threads < 1) {
    threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  }
  bring(source, placer.uploads(), memory, threads);
  return weights;
}

}  // namespace pascaline
