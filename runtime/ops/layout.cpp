#include "runtime/ops/layout.hpp"

#include <algorithm>
#include <limits>

#include "runtime/ops/checked.hpp"
#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {

bool checked_transpose(const TensorView& x, const TensorView& y) {
  const Checks check("transpose");
  const Extent rows{"ROWS", x.shape[0]};
  const Extent columns{"COLUMNS", x.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, columns});
  check.dense({"y", &y}, {x.type}, {columns, rows});
  if (is_empty(y)) {
    return false;
  }
  check.addresses({{"x", &x}, {"y", &y}});
  check.apart({"y", &y}, {{"x", &x}});
  return true;
}

void transpose(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  if (!checked_transpose(x, y)) {
    return;
  }
  const NamedDimension dimensions[] = {{"ROWS", x.shape[0]}, {"COLUMNS", x.shape[1]}};
  const NamedType types[] = {{"STORAGE", x.type}};
  void* const buffers[] = {x.data, y.data};
  launch(dispatcher, "transpose", dimensions, types, buffers);
}

bool checked_gather(const TensorView& table, const TensorView& indices, const TensorView& y) {
  const Checks check("gather");
  const Extent vocabulary{"VOCABULARY", table.shape[0]};
  const Extent width{"WIDTH", table.shape[1]};
  const Extent tokens{"TOKENS", indices.shape[0]};
  check.dense({"table", &table}, {ElementType::float32, ElementType::float16, ElementType::bfloat16},
              {vocabulary, width});
  check.dense({"indices", &indices}, {ElementType::int32}, {tokens});
  check.dense({"y", &y}, {ElementType::float32, ElementType::float16}, {tokens, width});
  if (is_empty(y)) {
    return false;
  }
  check.at_least_one(vocabulary);
  check.addresses({{"table", &table}, {"indices", &indices}, {"y", &y}});
  check.apart({"y", &y}, {{"table", &table}, {"indices", &indices}});
  return true;
}

void gather(Dispatcher& dispatcher, const TensorView& table, const TensorView& indices, const TensorView& y) {
  if (!checked_gather(table, indices, y)) {
    return;
  }
  const NamedDimension dimensions[] = {{"TOKENS", y.shape[0]}, {"WIDTH", y.shape[1]}, {"VOCABULARY", table.shape[0]}};
  const NamedType types[] = {{"STORAGE", y.type}, {"TABLE", table.type}};
  void* const buffers[] = {table.data, indices.data, y.data};
  launch(dispatcher, "gather", dimensions, types, buffers);
}

bool checked_position_embedding(const PositionEmbeddingArguments& given) {
  const Checks check("position_embedding");
  const std::int64_t most = std::max(given.grid_h, given.grid_w);
  check.require(given.grid_h >= 0 && given.grid_w >= 0 && most <= kMaxExtent,
                "grid_h and grid_w must be from 0 to 2^30");
  const Extent patches{"GRID_H*GRID_W", given.grid_h * given.grid_w};
  const Extent width{"WIDTH", given.x.shape[1]};
  const Extent side{"SIDE", given.table.shape[0]};
  check.dense({"x", &given.x}, {ElementType::float32, ElementType::float16}, {patches, width});
  check.dense({"table", &given.table}, {ElementType::float32}, {side, side, width});
  check.dense({"y", &given.y}, {given.x.type}, {patches, width});
  if (is_empty(given.y)) {
    return false;
  }
  check.at_least_one(side);
  check.at_least_one({"merge", given.merge});
  check.require(given.grid_h % given.merge == 0 && given.grid_w % given.merge == 0,
                "grid_h and grid_w must be multiples of merge: an image is whole blocks of patches");
  check.require(std::max(most, side.value) <= std::numeric_limits<std::int32_t>::max() / side.value,
                "max(GRID_H, GRID_W, SIDE) * SIDE is above 2^31-1; places in the table are counted in 32 bits");
  const Operand x{"x", &given.x};
  const Operand table{"table", &given.table};
  const Operand y{"y", &given.y};
  check.addresses({x, table, y});
  check.apart(y, {x, table});
  return true;
}

void position_embedding(Dispatcher& dispatcher, const PositionEmbeddingArguments& given) {
  if (!checked_position_embedding(given)) {
    return;
  }
  const NamedDimension dimensions[] = {{"GRID_H", given.grid_h},
                                       {"GRID_W", given.grid_w},
                                       {"WIDTH", given.x.shape[1]},
                                       {"SIDE", given.table.shape[0]},
                                       {"MERGE", given.merge}};
  const NamedType types[] = {{"STORAGE", given.x.type}};
  void* const buffers[] = {given.x.data, given.table.data, given.y.data};
  launch(dispatcher, "position_embedding", dimensions, types, buffers);
}

}  // namespace pascaline::ops
