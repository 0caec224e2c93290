#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/checkpoint/stored_formats.hpp"
#include "model/checkpoint/weight_recipe.hpp"
#include "runtime/formats/float16x_search.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline::testing {

/// A model's tensors, its matrices in their file form, and the notes on them.
struct QuantizedTensors {
  std::vector<OwnedTensor> tensors;
  std::map<std::string, std::string> metadata;

  void write(const std::filesystem::path& file) const {
    std::vector<StoredTensor> views;
    for (const OwnedTensor& owned : tensors) {
      views.push_back(owned.tensor);
      views.back().bytes = owned.bytes;
    }
    write_safetensors(file, views, metadata);
  }
};

/// Hashed weights in the formats of that recipe.
[[nodiscard]] inline QuantizedTensors quantized_tensors(const ModelConfig& config, const WeightRecipe& recipe) {
  FormatNotes notes(recipe.name());
  QuantizedTensors result;
  const WeightSource source = hash_weights(config);
  for (const TensorSpec& spec : source.tensors()) {
    const std::vector<std::byte> numbers = read_all(source, spec, ElementType::float32);
    if (spec.kind != TensorKind::matrix) {
      result.tensors.push_back({{spec.name, StoredType::F32, spec.shape, {}}, numbers});
      continue;
    }
    const ElementType format = recipe.of(spec.name);
    const std::int64_t rows = spec.shape.front();
    const std::int64_t columns = spec.elements() / rows;
    const std::size_t row_bytes = file_row_bytes(format, columns);
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * row_bytes);
    std::vector<float> values(static_cast<std::size_t>(columns));
    if (format == ElementType::float16x) {
      std::vector<float> all(numbers.size() / sizeof(float));
      std::memcpy(all.data(), numbers.data(), numbers.size());
      const Float16x best = best_float16x(all);
      to_float16x(best, all, bytes);
      notes.add(spec.name, best, spec.shape);
    } else {
      notes.add(spec.name, format, spec.shape);
    }
    for (std::size_t row = 0; format != ElementType::float16x && row < static_cast<std::size_t>(rows); ++row) {
      std::memcpy(values.data(), numbers.data() + row * values.size() * sizeof(float), values.size() * sizeof(float));
      EXPECT_FALSE(quantize_row(format, values, std::span(bytes).subspan(row * row_bytes, row_bytes)));
    }
    result.tensors.push_back(
        {{spec.name, StoredType::U8, {rows, static_cast<std::int64_t>(row_bytes)}, {}}, std::move(bytes)});
  }
  result.metadata = notes.metadata();
  return result;
}

}  // namespace pascaline::testing
