#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "python/src/commands.hpp"
#include "python/src/errors.hpp"
#include "python/src/tensors.hpp"
#include "python/src/without_gil.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;

ElementType packed_format(const std::string& name) {
  const auto type = element_type_from(name);
  if (!type || !is_packed_format(*type)) {
    throw ArgumentError(
        fmt::format("format: there is no packed format '{}'; it is one of {}", name, names_of(packed_formats())));
  }
  return *type;
}

// A matrix of float32 and its packed bytes, both in host memory.
struct PackedPair {
  ElementType format;
  Tensor values;
  Tensor data;
  std::int64_t rows;
  std::int64_t columns;
  MatrixLayout layout;

  [[nodiscard]] std::span<float> row(std::int64_t index) const {
    return {static_cast<float*>(values.view.data) + index * columns, static_cast<std::size_t>(columns)};
  }
  [[nodiscard]] std::span<std::byte> group(std::int64_t index) const {
    const auto bytes = static_cast<std::size_t>(layout.group_bytes(columns));
    return {static_cast<std::byte*>(data.view.data) + static_cast<std::size_t>(index / layout.group_rows) * bytes,
            bytes};
  }
};

PackedPair pair_of(const std::string& format, nb::handle values, nb::handle data, bool packs) {
  const ElementType type = packed_format(format);
  PackedPair pair{type, tensor_of("weight", values, !packs), tensor_of("data", data, packs), 0, 0, layout_of(type)};
  const TensorView& matrix = pair.values.view;
  const TensorView& bytes = pair.data.view;
  if (matrix.type != ElementType::float32 || matrix.rank != 2 || matrix.row_stride != 0) {
    throw ArgumentError("weight: it is not a contiguous matrix of float32");
  }
  pair.rows = matrix.shape[0];
  pair.columns = matrix.shape[1];
  const std::int64_t wanted = packed_matrix_bytes("weight", type, pair.rows, pair.columns);
  if (bytes.type != ElementType::uint8 || bytes.rank != 1 || bytes.shape[0] != wanted) {
    throw ArgumentError(fmt::format("data: it is not the {} bytes, as uint8, of a matrix of {} by {} in {}", wanted,
                                    pair.rows, pair.columns, format));
  }
  if (!pair.values.in_host_memory() || !pair.data.in_host_memory()) {
    throw ArgumentError("weight: matrices are packed in host memory only; move it there");
  }
  return pair;
}

void pack(const std::string& format, nb::handle values, nb::handle data) {
  const PackedPair pair = pair_of(format, values, data, true);
  const WithoutGil released;
  std::vector<std::byte> row(file_row_bytes(pair.format, pair.columns));
  for (std::int64_t i = 0; i < pair.rows; ++i) {
    const std::span<std::byte> group = pair.group(i);
    if (i % pair.layout.group_rows == 0) {
      std::fill(group.begin(), group.end(), std::byte{0});
    }
    if (const auto unfit = quantize_row(pair.format, pair.row(i), row)) {
      throw ArgumentError(fmt::format("weight: the value [{}, {}] cannot be held in {}: it {}", i, unfit->value, format,
                                      unfit->reason));
    }
    pack_row(pair.format, row, pair.columns, i % pair.layout.group_rows, group);
  }
}

void unpack(const std::string& format, nb::handle data, nb::handle values) {
  const PackedPair pair = pair_of(format, values, data, false);
  const WithoutGil released;
  std::vector<std::byte> row(file_row_bytes(pair.format, pair.columns));
  for (std::int64_t i = 0; i < pair.rows; ++i) {
    unpack_row(pair.format, pair.group(i), pair.columns, i % pair.layout.group_rows, row);
    dequantize_row(pair.format, row, pair.row(i));
  }
}

}  // namespace

void add_packed(nb::module_& module) {
  module.def("packed_formats", [] {
    std::vector<std::string_view> names;
    for (const FormatTraits& format : packed_formats()) {
      names.push_back(format.name);
    }
    return names;
  });
  module.def(
      "packed_bytes",
      [](const std::string& format, std::int64_t rows, std::int64_t columns) {
        return packed_matrix_bytes("shape", packed_format(format), rows, columns);
      },
      nb::arg("format"), nb::arg("rows"), nb::arg("columns"), "Bytes of a matrix in a packed format.");
  module.def(
      "rounded_shape",
      [](const std::string& format, std::int64_t columns) {
        const ElementType type = packed_format(format);
        (void)packed_matrix_bytes("columns", type, 1, columns);
        return std::pair(ops::filled_columns(type, columns), ops::scale_rows(type, columns));
      },
      nb::arg("format"), nb::arg("columns"),
      "Columns of rows that are rounded for a product with such a weight, and rows of their scales.");
  module.def(
      "format_number", [](const std::string& format) { return static_cast<int>(packed_format(format)); },
      nb::arg("format"));
  module.def("pack", pack, nb::arg("format"), nb::arg("weight"), nb::arg("data"));
  module.def("unpack", unpack, nb::arg("format"), nb::arg("data"), nb::arg("weight"));
}

}  // namespace pascaline::python
