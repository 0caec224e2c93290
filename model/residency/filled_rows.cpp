#include "model/residency/filled_rows.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "model/checkpoint/weight_table.hpp"
#include "model/requirements.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {
namespace {

// Columns of a matrix as it lies on the device.
std::int64_t columns_of(const WeightEntry& entry, const ModelConfig& config) {
  if (entry.layout != WeightLayout::head_columns) {
    return entry.width();
  }
  return entry.width() / config.vision.value().head_dim() * padded_head_dim(*config.vision);
}

}  // namespace

std::optional<std::string> filled_rows_note(const ModelConfig& config, const WeightRecipe& matrices,
                                            std::uint64_t least_bytes) {
  constexpr double kMiB = 1 << 20;
  ModelWeights unused;
  std::string example;
  int count = 0;
  double zeros = 0;
  for (const WeightEntry& entry : weight_table(config, unused, matrices)) {
    const ElementType type = matrices.of(entry);
    if (entry.kind() != TensorKind::matrix || !is_matrix_format(type)) {
      continue;
    }
    const std::int64_t columns = columns_of(entry, config);
    const std::int64_t filled = ops::filled_columns(type, columns);
    if (filled == columns) {
      continue;
    }
    if (count++ == 0) {
      example = fmt::format("of {} columns to {} in {}", columns, filled, name_of(type));
    }
    zeros += static_cast<double>(layout_of(type).bytes(entry.rows(), columns)) * static_cast<double>(filled - columns) /
             static_cast<double>(filled);
  }
  if (count == 0 || zeros < static_cast<double>(least_bytes)) {
    return std::nullopt;
  }
  return fmt::format("rows of {} {} are filled up with zeros to what their format packs together (e.g. {}): {:.1f} MiB",
                     count, count == 1 ? "matrix" : "matrices", example, zeros / kMiB);
}

}  // namespace pascaline
