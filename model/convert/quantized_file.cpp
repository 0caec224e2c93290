#include "model/convert/quantized_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/stored_formats.hpp"
#include "model/requirements.hpp"
#include "runtime/formats/float16x_search.hpp"
#include "runtime/formats/lost_blocks.hpp"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

using ProgressClock = std::chrono::steady_clock;

constexpr std::int64_t kPieceValues = std::int64_t{1} << 21;

// A tensor of the original, and how it is written.
struct RewrittenTensor {
  const TensorSpec* spec = nullptr;
  const StoredTensor* from = nullptr;
  std::string where;     // as messages begin
  ElementType type{};    // of a matrix
  Float16x float16x;     // of a matrix in that format
  bool is_kept = false;  // as it is stored
  std::atomic<std::int64_t> rows_left = 0;

  [[nodiscard]] std::int64_t rows() const noexcept { return spec->shape.front(); }
  [[nodiscard]] std::int64_t columns() const noexcept { return spec->elements() / rows(); }
  [[nodiscard]] std::size_t from_row_bytes() const noexcept {
    return static_cast<std::size_t>(columns()) * size_of(from->type);
  }
};

// Rows of a tensor that are converted together.
struct Piece {
  std::size_t tensor;
  std::int64_t first;
  std::int64_t rows;
};

// Whether zeros are put between the values of its rows on a device, so that blocks of values are not those of the file.
bool spreads_rows(const WeightEntry& weight, const ModelConfig& config) {
  return weight.layout == WeightLayout::head_columns && config.vision &&
         config.vision->head_dim() != padded_head_dim(*config.vision);
}

StoredType number_type(ElementType type) { return type == ElementType::float16 ? StoredType::F16 : StoredType::F32; }

// Thrown where `goes_on` says no before there are workers.
struct QuantizingStopped : std::exception {};

class FileQuantizer {
 public:
  FileQuantizer(const Checkpoint& checkpoint, const ModelConfig& config, const WeightRecipe& recipe,
                const std::filesystem::path& file, const QuantizeSettings& settings)
      : tensors_(checkpoint.tensors().size()),
        all_(totals_of(checkpoint)),
        out_(file, plan(checkpoint, config, recipe, settings), notes_.metadata()) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::int64_t rows = std::max<std::int64_t>(1, kPieceValues / tensors_[i].columns());
      for (std::int64_t first = 0; first < tensors_[i].rows(); first += rows) {
        pieces_.push_back({i, first, std::min(rows, tensors_[i].rows() - first)});
      }
    }
    all_.written_bytes = out_.bytes();
  }

  [[nodiscard]] bool run(const QuantizeSettings& settings) {
    const auto begin = ProgressClock::now();
    PieceWorkSettings work{settings.threads, {}};
    if (settings.goes_on) {
      work.goes_on = [&] {
        all_.tensors = tensors_done_;
        all_.read_bytes = read_bytes_;
        all_.lost_blocks = lost_blocks_;
        all_.seconds = std::chrono::duration<double>(ProgressClock::now() - begin).count();
        return settings.goes_on(all_);
      };
    }
    if (!work_through(
            pieces_.size(), [this](std::size_t piece) { do_piece(pieces_[piece]); }, work)) {
      return false;
    }
    out_.finish();
    return true;
  }

 private:
  static TensorProgress totals_of(const Checkpoint& checkpoint) {
    TensorProgress all;
    all.all_tensors = checkpoint.tensors().size();
    all.all_bytes = static_cast<std::uint64_t>(checkpoint.stored_bytes());
    return all;
  }

  // Fills in tensors and notes.
  std::vector<StoredTensor> plan(const Checkpoint& checkpoint, const ModelConfig& config, const WeightRecipe& recipe,
                                 const QuantizeSettings& settings) {
    ModelWeights unused;
    const std::vector<WeightEntry> table = weight_table(config, unused, recipe);
    recipe.require_uses(table);
    notes_ = FormatNotes(std::filesystem::path(recipe.name()).filename().string());
    std::vector<StoredTensor> planned;
    for (const WeightEntry& weight : table) {
      const ElementType type = recipe.of(weight);
      for (std::size_t i = 0; i < weight.tensors.size(); ++i) {
        const std::size_t index = planned.size();
        RewrittenTensor& tensor = tensors_.at(index);
        tensor.spec = &checkpoint.tensors().at(index);
        tensor.from = &checkpoint.stored(index);
        tensor.where = checkpoint.where(index);
        tensor.type = type;
        const bool is_format = is_matrix_format(type);
        tensor.is_kept = weight.kind() != TensorKind::matrix ||
                         (is_packed_format(type) && spreads_rows(weight, config)) ||
                         (!is_format && tensor.from->type == number_type(type));
        tensor.rows_left = tensor.rows();
        if (is_packed_format(type) && weight.kind() == TensorKind::matrix) {
          notes_.add(tensor.spec->name, type, tensor.spec->shape);
        }
        planned.push_back(form_of(tensor));
      }
      if (type == ElementType::float16x) {
        if (settings.goes_on && !settings.goes_on(all_)) {
          throw QuantizingStopped();
        }
        choose_float16x(std::span(tensors_).subspan(planned.size() - weight.tensors.size(), weight.tensors.size()));
      }
    }
    return planned;
  }

  // One choice for all tensors of a weight, which are one matrix on a device.
  void choose_float16x(std::span<RewrittenTensor> tensors) {
    std::vector<std::int64_t> sizes;
    for (const RewrittenTensor& tensor : tensors) {
      sizes.push_back(tensor.spec->elements());
    }
    const Float16x format = best_float16x(sizes, [&](std::size_t tensor, std::int64_t first, std::span<float> out) {
      read_values(tensors[tensor], first, out);
    });
    for (RewrittenTensor& tensor : tensors) {
      tensor.float16x = format;
      notes_.add(tensor.spec->name, format, tensor.spec->shape);
    }
  }

  // Elements from `first` on.
  static void read_values(const RewrittenTensor& tensor, std::int64_t first, std::span<float> out) {
    const std::size_t element = size_of(tensor.from->type);
    const auto from = tensor.from->bytes.subspan(static_cast<std::size_t>(first) * element, out.size() * element);
    if (const auto unfit =
            convert_weights(tensor.from->type, from, ElementType::float32, std::as_writable_bytes(out))) {
      const std::int64_t at = first + static_cast<std::int64_t>(unfit->index);
      refuse(tensor, at / tensor.columns(), {static_cast<std::size_t>(at % tensor.columns()), unfit->value},
             ElementType::float32);
    }
    MappedFile::forget(from);
  }

  [[noreturn]] static void refuse(const RewrittenTensor& tensor, std::int64_t row, UnfitWeight unfit, ElementType to) {
    throw ModelError(fmt::format("{}: value {} of row {} is {}{}", tensor.where, unfit.index, row, unfit.value,
                                 std::isfinite(unfit.value)
                                     ? fmt::format(", which is beyond the range of {}", name_of(to))
                                     : "; the checkpoint is damaged"));
  }

  static StoredTensor form_of(const RewrittenTensor& tensor) {
    const std::string& name = tensor.spec->name;
    if (tensor.is_kept) {
      return {name, tensor.from->type, tensor.spec->shape, {}};
    }
    if (!is_matrix_format(tensor.type)) {
      return {name, number_type(tensor.type), tensor.spec->shape, {}};
    }
    const auto row_bytes = static_cast<std::int64_t>(file_row_bytes(tensor.type, tensor.columns()));
    return {name, StoredType::U8, {tensor.rows(), row_bytes}, {}};
  }

  void do_piece(const Piece& piece) {
    RewrittenTensor& tensor = tensors_[piece.tensor];
    const std::size_t from_bytes = tensor.from_row_bytes();
    const auto first = static_cast<std::size_t>(piece.first);
    const auto rows = static_cast<std::size_t>(piece.rows);
    const std::span<const std::byte> from = tensor.from->bytes.subspan(first * from_bytes, rows * from_bytes);
    if (tensor.is_kept) {
      require_finite(tensor, piece.first, from);
      out_.write(piece.tensor, first * from_bytes, from);
    } else {
      const std::size_t row_bytes = is_matrix_format(tensor.type)
                                        ? file_row_bytes(tensor.type, tensor.columns())
                                        : static_cast<std::size_t>(tensor.columns()) * size_of(tensor.type);
      std::vector<std::byte> to(rows * row_bytes);
      for (std::size_t row = 0; row < rows; ++row) {
        convert_row(tensor, piece.first + static_cast<std::int64_t>(row), from.subspan(row * from_bytes, from_bytes),
                    std::span(to).subspan(row * row_bytes, row_bytes));
      }
      out_.write(piece.tensor, first * row_bytes, to);
    }
    MappedFile::forget(from);
    read_bytes_ += from.size();
    tensors_done_ += (tensor.rows_left -= piece.rows) == 0 ? 1 : 0;
  }

  static void require_finite(const RewrittenTensor& tensor, std::int64_t first_row, std::span<const std::byte> from) {
    thread_local std::vector<float> values;
    values.resize(from.size() / size_of(tensor.from->type));
    if (const auto unfit =
            convert_weights(tensor.from->type, from, ElementType::float32, std::as_writable_bytes(std::span(values)))) {
      const auto columns = static_cast<std::size_t>(tensor.columns());
      refuse(tensor, first_row + static_cast<std::int64_t>(unfit->index / columns),
             {unfit->index % columns, unfit->value}, ElementType::float32);
    }
  }

  void convert_row(const RewrittenTensor& tensor, std::int64_t row, std::span<const std::byte> from,
                   std::span<std::byte> to) {
    const bool is_format = is_matrix_format(tensor.type);
    thread_local std::vector<float> values;
    values.resize(static_cast<std::size_t>(tensor.columns()));
    const std::span<std::byte> numbers = is_format ? std::as_writable_bytes(std::span(values)) : to;
    const ElementType to_type = is_format ? ElementType::float32 : tensor.type;
    if (const auto unfit = convert_weights(tensor.from->type, from, to_type, numbers)) {
      refuse(tensor, row, *unfit, to_type);
    }
    if (!is_format) {
      return;
    }
    if (tensor.type == ElementType::float16x) {
      to_float16x(tensor.float16x, values, to);
      return;
    }
    if (const auto unfit = quantize_row(tensor.type, values, to)) {
      throw ModelError(fmt::format("{}: value {} of row {} {}, so it cannot be kept as {}", tensor.where, unfit->value,
                                   row, unfit->reason, name_of(tensor.type)));
    }
    lost_blocks_ += lost_blocks(tensor.type, values, to);
  }

  FormatNotes notes_{""};
  std::vector<RewrittenTensor> tensors_;
  TensorProgress all_;
  SafetensorsStream out_;
  std::vector<Piece> pieces_;
  std::atomic<std::size_t> tensors_done_{0};
  std::atomic<std::uint64_t> read_bytes_{0};
  std::atomic<std::uint64_t> lost_blocks_{0};
};

}  // namespace

bool write_quantized(const Checkpoint& checkpoint, const ModelConfig& config, const WeightRecipe& recipe,
                     const std::filesystem::path& file, const QuantizeSettings& settings) {
  if (checkpoint.has_formats()) {
    throw ModelError(
        fmt::format("the model is quantized already ({}), and quantizing twice loses accuracy: start from the original",
                    checkpoint.recipe().empty() ? "without a name" : checkpoint.recipe()));
  }
  if (checkpoint.quantization() != FolderQuantization::none) {
    throw ModelError(
        "the model is quantized already (FP8), and quantizing twice loses accuracy: start from the original, or load "
        "it "
        "with --weights");
  }
  try {
    FileQuantizer quantizer(checkpoint, config, recipe, file, settings);
    return quantizer.run(settings);
  } catch (const QuantizingStopped&) {
    return false;
  }
}

}  // namespace pascaline
