#include "model/residency/weight_upload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/checkpoint/model_error.hpp"
#include "runtime/formats/float16x_search.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/formats/row_check.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kCodesAtOnce = std::size_t{1} << 16;

// Elements of heads that lie one after the other as they do in the tensor, or zeros.
struct HeadRun {
  std::optional<std::int64_t> from;  // the first one's number in the tensor
  std::int64_t count = 0;
};

// Those from number `place` on.
HeadRun run_of_heads(const HeadLayout& heads, std::int64_t place) {
  const std::int64_t head = place / heads.padded;
  const std::int64_t element = place % heads.padded;
  const std::int64_t quarter = heads.size / 4;
  const std::int64_t padded_quarter = heads.padded / 4;
  const bool paired = head < heads.paired;
  const std::int64_t slot = paired ? element / 2 : element;  // of a pair's first elements, if it is one
  const std::int64_t inside = slot % padded_quarter;
  const std::int64_t rest = (inside < quarter ? quarter : padded_quarter) - inside;
  if (inside >= quarter) {
    return {std::nullopt, paired ? 1 : rest};
  }
  const std::int64_t half = paired ? element % 2 * (heads.size / 2) : 0;
  return {head * heads.size + half + slot / padded_quarter * quarter + inside, paired ? 1 : rest};
}

// Heads as they lie on the device.
void fill_heads(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                std::size_t offset) {
  // Rows that are quantized are read as float32.
  const ElementType type = is_matrix_format(upload.type) ? ElementType::float32 : upload.type;
  const std::size_t element = size_of(type);
  const HeadLayout& heads = *upload.heads;
  auto place = static_cast<std::int64_t>(offset / element);
  while (!piece.empty()) {
    const HeadRun run = run_of_heads(heads, place / heads.width);
    const std::int64_t inside = place % heads.width;
    const std::size_t bytes =
        std::min(piece.size(), static_cast<std::size_t>(run.count * heads.width - inside) * element);
    if (run.from) {
      source.read(*upload.from[0], type, *run.from * heads.width + inside, piece.first(bytes));
    } else {
      std::fill_n(piece.begin(), bytes, std::byte{0});
    }
    piece = piece.subspan(bytes);
    place += static_cast<std::int64_t>(bytes / element);
  }
}

// Where a row of a matrix on the device comes from: a row of one of its tensors, counted by `from`.
struct RowOrigin {
  std::size_t tensor = 0;
  std::int64_t row = 0;
};

// Nothing for a row that has zeros put between its values, or only zeros.
std::optional<RowOrigin> origin_of(const WeightUpload& upload, std::int64_t row) {
  if (upload.heads) {
    const HeadRun run = upload.layout == WeightLayout::head_rows ? run_of_heads(*upload.heads, row) : HeadRun();
    return run.from ? std::optional(RowOrigin{0, *run.from}) : std::nullopt;
  }
  const std::size_t count = upload.from.size();
  if (upload.layout == WeightLayout::interleaved) {
    const auto number = static_cast<std::size_t>(row);
    return RowOrigin{number % count, static_cast<std::int64_t>(number / count)};
  }
  std::size_t tensor = 0;
  for (; row >= upload.from[tensor]->shape.front(); ++tensor) {
    row -= upload.from[tensor]->shape.front();
  }
  return RowOrigin{tensor, row};
}

// Brings rows of a matrix in a format into their form on the device: those that are stored in that format as they are,
// others quantized.
class RowPacker {
 public:
  RowPacker(const WeightSource& source, const WeightUpload& upload)
      : source_(&source), upload_(&upload), row_bytes_(file_row_bytes(upload.type, upload.width)) {
    for (const TensorSpec* tensor : upload.from) {
      auto rows = source.rows(*tensor);
      const bool is_kept = rows && rows->format.type == upload.type;
      stored_.push_back(is_kept ? std::move(rows) : std::nullopt);
    }
  }

  // Packs 32 rows, or those that are left.
  void fill_group(std::int64_t first, std::span<std::byte> group) {
    std::fill(group.begin(), group.end(), std::byte{0});
    for (std::int64_t i = 0; i < layout_of(upload_->type).group_rows && first + i < upload_->rows; ++i) {
      pack_row(upload_->type, row(first + i), upload_->width, i, group);
    }
  }

 private:
  // In its file form.
  [[nodiscard]] std::span<const std::byte> row(std::int64_t number) {
    const std::optional<RowOrigin> origin = origin_of(*upload_, number);
    if (!origin || !stored_[origin->tensor]) {
      return quantized(number, origin);
    }
    const std::span<const std::byte> bytes = stored_row(*stored_[origin->tensor], origin->row);
    if (const auto unfit = check_row(upload_->type, bytes)) {
      throw ModelError(fmt::format("{}: the block of value {} of row {} {}; the checkpoint is damaged",
                                   source_->where(*upload_->from[origin->tensor]), unfit->value, origin->row,
                                   unfit->reason));
    }
    return bytes;
  }
  [[nodiscard]] std::span<const std::byte> stored_row(const WeightSource::Rows& rows, std::int64_t row) {
    if (!rows.unpack) {
      return rows.bytes.subspan(static_cast<std::size_t>(rows.order.place_of(row)) * row_bytes_, row_bytes_);
    }
    row_.resize(row_bytes_);
    rows.unpack(row, row_);
    return row_;
  }
  [[nodiscard]] std::span<const std::byte> quantized(std::int64_t number, const std::optional<RowOrigin>& origin) {
    values_.resize(static_cast<std::size_t>(upload_->width));
    row_.resize(row_bytes_);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(values_));
    if (origin) {
      source_->read(*upload_->from[origin->tensor], ElementType::float32, origin->row * upload_->width, bytes);
    } else {
      fill_heads(*source_, *upload_, bytes, static_cast<std::size_t>(number) * bytes.size());
    }
    if (const auto unfit = quantize_row(upload_->type, values_, row_)) {
      throw ModelError(fmt::format("{}: value {} of row {} {}, so it cannot be kept as {}",
                                   source_->where(*upload_->from[origin ? origin->tensor : 0]), unfit->value,
                                   origin ? origin->row : number, unfit->reason, name_of(upload_->type)));
    }
    return row_;
  }

  const WeightSource* source_;
  const WeightUpload* upload_;
  std::size_t row_bytes_;
  std::vector<std::optional<WeightSource::Rows>> stored_;  // of each tensor; nothing if it is to be quantized
  std::vector<float> values_;
  std::vector<std::byte> row_;
};

// Pieces may begin and end within a group.
void fill_packed(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
                 std::size_t offset) {
  const MatrixLayout layout = layout_of(upload.type);
  const auto bytes = static_cast<std::size_t>(layout.group_bytes(upload.width));
  RowPacker packer(source, upload);
  std::vector<std::byte> room;
  while (!piece.empty()) {
    const std::int64_t first = static_cast<std::int64_t>(offset / bytes) * layout.group_rows;
    const std::size_t inside = offset % bytes;
    const std::size_t filled = std::min(piece.size(), bytes - inside);
    if (filled == bytes) {
      packer.fill_group(first, piece.first(bytes));
    } else {
      room.resize(bytes);
      packer.fill_group(first, room);
      std::copy_n(room.begin() + static_cast<std::ptrdiff_t>(inside), filled, piece.begin());
    }
    piece = piece.subspan(filled);
    offset += filled;
  }
}

// Of elements by themselves.
void fill_elements(const WeightSource& source, const WeightUpload& upload, std::span<std::byte> piece,
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

// Values of a matrix in a format from element `first` on, as float32.
void read_matrix_values(const WeightSource& source, const WeightUpload& upload, std::int64_t first,
                        std::span<float> out) {
  if (upload.heads) {
    fill_heads(source, upload, std::as_writable_bytes(out), static_cast<std::size_t>(first) * sizeof(float));
    return;
  }
  while (!out.empty()) {
    const RowOrigin origin = origin_of(upload, first / upload.width).value();
    const std::int64_t inside = first % upload.width;
    const TensorSpec& tensor = *upload.from[origin.tensor];
    // Rows of one tensor lie one after the other unless they take turns with those of others.
    const std::int64_t rows = upload.layout == WeightLayout::interleaved ? 1 : tensor.shape.front() - origin.row;
    const std::size_t count = std::min(out.size(), static_cast<std::size_t>(rows * upload.width - inside));
    source.read(tensor, ElementType::float32, origin.row * upload.width + inside,
                std::as_writable_bytes(out.first(count)));
    out = out.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
}

// Of a tensor, from element `first` on. What is not finite is refused as packing does it.
void read_finite(const WeightSource& source, const TensorSpec& tensor, std::int64_t first, std::span<float> out) {
  source.read(tensor, ElementType::float32, first, std::as_writable_bytes(out));
  const auto unfit = std::find_if(out.begin(), out.end(), [](float value) { return !std::isfinite(value); });
  if (unfit != out.end()) {
    const std::int64_t at = first + (unfit - out.begin());
    const std::int64_t width = tensor.elements() / tensor.shape.front();
    throw ModelError(fmt::format("{}: value {} of row {} is not finite, so it cannot be kept as float16x",
                                 source.where(tensor), at % width, at / width));
  }
}

// The format that all tensors are stored in, or nothing if there are several or some are numbers.
std::optional<Float16x> stored_float16x(const WeightSource& source, const WeightUpload& upload) {
  std::optional<Float16x> common;
  for (const TensorSpec* tensor : upload.from) {
    const auto rows = source.rows(*tensor);
    if (!rows || rows->format.type != ElementType::float16x || (common && *common != rows->format.float16x)) {
      return std::nullopt;
    }
    common = rows->format.float16x;
  }
  return common;
}

Float16x chosen_float16x(const WeightSource& source, const WeightUpload& upload) {
  if (const auto stored = stored_float16x(source, upload)) {
    return *stored;
  }
  // Tensor by tensor, as where a model is quantized to a file: sums of errors in another order may be rounded
  // otherwise.
  std::vector<std::int64_t> sizes;
  for (const TensorSpec* tensor : upload.from) {
    sizes.push_back(tensor->elements());
  }
  return best_float16x(sizes, [&](std::size_t tensor, std::int64_t first, std::span<float> out) {
    read_finite(source, *upload.from[tensor], first, out);
  });
}

void fill_float16x(const WeightSource& source, const WeightUpload& upload, Float16x format, std::span<std::byte> piece,
                   std::size_t offset) {
  const auto head = static_cast<std::size_t>(layout_of(ElementType::float16x).head_bytes);
  if (offset < head) {
    std::vector<std::byte> header(head);
    put_float16x_header(format, header);
    const std::size_t count = std::min(piece.size(), head - offset);
    std::copy_n(header.begin() + static_cast<std::ptrdiff_t>(offset), count, piece.begin());
    piece = piece.subspan(count);
    offset += count;
  }
  std::vector<float> values;
  while (!piece.empty()) {
    values.resize(std::min(kCodesAtOnce, piece.size() / sizeof(std::uint16_t)));
    const auto first = static_cast<std::int64_t>((offset - head) / sizeof(std::uint16_t));
    read_matrix_values(source, upload, first, values);
    const std::size_t bytes = values.size() * sizeof(std::uint16_t);
    to_float16x(format, values, piece.first(bytes));
    piece = piece.subspan(bytes);
    offset += bytes;
  }
}

}  // namespace

UploadFiller::UploadFiller(const WeightSource& source, const WeightUpload& upload)
    : source_(&source),
      upload_(&upload),
      float16x_(upload.type == ElementType::float16x ? chosen_float16x(source, upload) : Float16x()) {}

void UploadFiller::operator()(std::span<std::byte> piece, std::size_t offset) const {
  if (upload_->type == ElementType::float16x) {
    fill_float16x(*source_, *upload_, float16x_, piece, offset);
  } else if (is_matrix_format(upload_->type)) {
    fill_packed(*source_, *upload_, piece, offset);
  } else if (upload_->heads) {
    fill_heads(*source_, *upload_, piece, offset);
  } else {
    fill_elements(*source_, *upload_, piece, offset);
  }
}

}  // namespace pascaline
