#include "model/convert/tensor_writing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "model/checkpoint/gguf/projector_weights.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/convert/tensor_types.hpp"
#include "runtime/formats/lost_blocks.hpp"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kValuesAtOnce = std::int64_t{1} << 20;

// Rows of a planned tensor that are converted together.
struct RowPiece {
  std::size_t planned;
  std::int64_t first;
  std::int64_t rows;
};

// Of a matrix; a vector has rows of one element.
std::int64_t columns_of(const TensorSpec& tensor) { return tensor.elements() / tensor.shape.front(); }

std::vector<RowPiece> pieces_of(const WeightSource& source, std::span<const WrittenTensor> tensors) {
  std::vector<RowPiece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& tensor = source.tensors()[tensors[i].index];
    const std::int64_t all = tensor.shape.front();
    const std::int64_t rows = tensors[i].frame ? all : std::max<std::int64_t>(1, kValuesAtOnce / columns_of(tensor));
    for (std::int64_t first = 0; first < all; first += rows) {
      pieces.push_back({i, first, std::min(rows, all - first)});
    }
  }
  return pieces;
}

// Those at the places from `first` on.
std::vector<std::byte> numbers(const WeightSource& source, const TensorSpec& tensor, const WrittenTensor& planned,
                               std::int64_t first, std::int64_t rows) {
  const ElementType type = number_of(planned.type);
  const std::int64_t columns = columns_of(tensor);
  const auto row_bytes = static_cast<std::size_t>(columns * block_bytes(planned.type));
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * row_bytes);
  if (planned.order.head_rows == 0) {
    source.read(tensor, type, first * columns, bytes);
    return bytes;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    source.read(tensor, type, planned.order.row_at(first + i) * columns,
                std::span(bytes).subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes));
  }
  return bytes;
}

// Rows in a packed format; those that are stored in it as they are. Adds to `lost` blocks that became zeros.
std::vector<std::byte> packed_rows(const WeightSource& source, const TensorSpec& tensor, ElementType format,
                                   RowOrder order, std::int64_t first, std::int64_t rows,
                                   std::atomic<std::uint64_t>& lost) {
  const std::int64_t columns = columns_of(tensor);
  const std::size_t row_bytes = file_row_bytes(format, columns);
  const auto stored = source.rows(tensor);
  const bool is_kept = stored && stored->format.type == format;
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * row_bytes);
  std::vector<float> values(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::span<std::byte> row = std::span(bytes).subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes);
    const std::int64_t number = order.row_at(first + i);
    if (is_kept) {
      const auto place = static_cast<std::size_t>(stored->order.place_of(number));
      std::copy_n(stored->bytes.begin() + static_cast<std::ptrdiff_t>(place * row_bytes), row_bytes, row.begin());
      continue;
    }
    source.read(tensor, ElementType::float32, number * columns, std::as_writable_bytes(std::span(values)));
    if (const auto unfit = quantize_row(format, values, row)) {
      throw ModelError(fmt::format("{}: value {} of row {} {}, so it cannot be kept as {}", source.where(tensor),
                                   unfit->value, number, unfit->reason, name_of(format)));
    }
    lost += lost_blocks(format, values, row);
  }
  return bytes;
}

}  // namespace

TensorWriting::TensorWriting(const WeightSource& source, std::vector<std::uint64_t> stored_bytes,
                             ConvertSettings settings)
    : source_(&source), stored_bytes_(std::move(stored_bytes)), settings_(std::move(settings)) {
  progress_.all_tensors = source.tensors().size();
  progress_.all_bytes = std::accumulate(stored_bytes_.begin(), stored_bytes_.end(), std::uint64_t{0});
}

bool TensorWriting::write(std::span<const WrittenTensor> tensors, const Write& write) {
  const std::vector<RowPiece> pieces = pieces_of(*source_, tensors);
  std::vector<std::atomic<std::int64_t>> left(tensors.size());
  for (const RowPiece& piece : pieces) {
    left[piece.planned] += piece.rows;
  }
  std::atomic<std::uint64_t> lost{0};
  std::atomic<std::uint64_t> read{0};
  std::atomic<std::size_t> done{0};
  const auto convert = [&](std::size_t number) {
    const RowPiece& piece = pieces[number];
    const WrittenTensor& planned = tensors[piece.planned];
    const TensorSpec& tensor = source_->tensors()[planned.index];
    const auto format = format_of(planned.type);
    std::vector<std::byte> bytes =
        format ? packed_rows(*source_, tensor, *format, planned.order, piece.first, piece.rows, lost)
               : numbers(*source_, tensor, planned, piece.first, piece.rows);
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(piece.rows);
    if (planned.frame) {
      bytes = patch_frame(bytes, static_cast<std::size_t>(tensor.shape[2]), static_cast<std::size_t>(*planned.frame),
                          static_cast<std::size_t>(tensor.shape[3] * tensor.shape[4] * block_bytes(planned.type)));
    }
    write(piece.planned, static_cast<std::uint64_t>(piece.first) * row_bytes, bytes);
    const bool counts = planned.frame.value_or(0) == 0;
    const std::uint64_t stored = stored_bytes_.at(planned.index);
    read +=
        counts ? stored * static_cast<std::uint64_t>(piece.rows) / static_cast<std::uint64_t>(tensor.shape.front()) : 0;
    if ((left[piece.planned] -= piece.rows) == 0) {
      done += counts ? 1 : 0;
      source_->forget(tensor);
    }
  };
  const TensorProgress before = progress_;
  const auto count = [&] {
    progress_.tensors = before.tensors + done;
    progress_.read_bytes = before.read_bytes + read;
    progress_.lost_blocks = before.lost_blocks + lost;
    progress_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  };
  PieceWorkSettings work{settings_.threads, {}};
  if (settings_.goes_on) {
    work.goes_on = [&] {
      count();
      return settings_.goes_on(progress_);
    };
  }
  const bool is_done = work_through(pieces.size(), convert, work);
  count();
  return is_done;
}

}  // namespace pascaline
