#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/formats/int8_heads.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/rope.hpp"

namespace pascaline::ops {
namespace {

// Elements that are worth another thread.
constexpr std::int64_t kRopeSlice = 8'192;

/// Cosine and sine of each slot of a head, for one token or patch.
struct Turn {
  float* cosine;
  float* sine;
  std::int64_t half;  ///< slots: the pairs of elements j and j + half
};

Turn turn_room(std::int64_t half) {
  float* room = cpu::scratch(cpu::Scratch::first, 2 * half);
  return {room, room + half, half};
}

std::int64_t nearest_row(const TensorView& table, std::int32_t position) {
  return std::clamp<std::int64_t>(position, 0, table.shape[0] - 1);
}

void rotate(const float* in, float* out, const Turn& turn) {
  for (std::int64_t j = 0; j < turn.half; ++j) {
    const float low = in[j];
    const float high = in[j + turn.half];
    out[j] = low * turn.cosine[j] - high * turn.sine[j];
    out[j + turn.half] = high * turn.cosine[j] + low * turn.sine[j];
  }
}

// Pairs are neighbours.
void rotate_pairs(const float* in, float* out, const Turn& turn) {
  for (std::int64_t j = 0; j < turn.half; ++j) {
    const float low = in[2 * j];
    const float high = in[2 * j + 1];
    out[2 * j] = low * turn.cosine[j] - high * turn.sine[j];
    out[2 * j + 1] = high * turn.cosine[j] + low * turn.sine[j];
  }
}

Turn turn_of_token(const QkNormRope& given, std::int64_t token) {
  const Turn turn = turn_room(given.qkv.shape[2] / 2);
  const std::int64_t sections[3] = {0, 3 * given.section_h, 3 * given.section_w};
  const float* cosines[3] = {};
  const float* sines[3] = {};
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    const auto* positions = static_cast<const std::int32_t*>(given.positions.data) + axis * given.qkv.shape[0];
    const std::int64_t row = nearest_row(given.cosine, positions[token]) * turn.half;
    cosines[axis] = static_cast<const float*>(given.cosine.data) + row;
    sines[axis] = static_cast<const float*>(given.sine.data) + row;
  }
  for (std::int64_t j = 0; j < turn.half; ++j) {
    const std::int64_t axis = j < sections[j % 3] ? j % 3 : 0;
    turn.cosine[j] = cosines[axis][j];
    turn.sine[j] = sines[axis][j];
  }
  return turn;
}

// Where a head goes: a tensor, and its scales if that is int8.
struct HeadTensor {
  const TensorView& values;
  const TensorView& scales;
};

// Writes head number `index` of a tensor of heads; changes it.
void store_head(float* head, const HeadTensor& to, std::int64_t index, std::int64_t head_dim) {
  if (is_given(to.scales)) {
    const std::span<float> values(head, static_cast<std::size_t>(head_dim));
    const float scale = int8_head_scale(values);
    static_cast<float*>(to.scales.data)[index] = scale;
    divide_by_scale(values, scale);
  }
  cpu::store_floats(head, to.values, index * head_dim, head_dim);
}

// The element of qkv that the token's head number `head` begins with.
std::int64_t begin_of_head(const QkNormRope& given, std::int64_t token, std::int64_t head) {
  const std::int64_t head_dim = given.qkv.shape[2];
  if (given.parts == QkvParts::joined) {
    return token * row_stride(given.qkv) + head * head_dim;
  }
  const std::int64_t keys = given.q.shape[1];
  const std::int64_t values = keys + given.k_cache.shape[1];
  std::int64_t first = 0;  // heads of the matrix that has it
  std::int64_t last = given.qkv.shape[1];
  if (given.parts != QkvParts::queries_apart) {
    (head < values ? last : first) = values;
  }
  if (given.parts != QkvParts::values_apart) {
    head < keys ? last = keys : first = std::max(first, keys);
  }
  return (given.qkv.shape[0] * first + token * (last - first) + head - first) * head_dim;
}

// Normalises, given a weight, and turns `heads` heads of the token, from element `from` of qkv on, to the heads from
// number `first` on.
void norm_and_rotate(const QkNormRope& given, const Turn& turn, const TensorView& weight, std::int64_t heads,
                     std::int64_t from, const HeadTensor& to, std::int64_t first) {
  const std::int64_t head_dim = 2 * turn.half;
  const auto* weights = static_cast<const float*>(weight.data);
  float* normed = cpu::scratch(cpu::Scratch::second, head_dim);
  float* turned = cpu::scratch(cpu::Scratch::third, head_dim);
  float* room = cpu::scratch(cpu::Scratch::fourth, head_dim);
  for (std::int64_t head = 0; head < heads; ++head) {
    const float* in = cpu::floats_at(given.qkv, from + head * head_dim, head_dim, room);
    if (is_given(weight)) {
      const float factor = rmsnorm_factor(in, head_dim, given.epsilon);
      for (std::int64_t i = 0; i < head_dim; ++i) {
        normed[i] = in[i] * factor * weights[i];
      }
    }
    rotate(is_given(weight) ? normed : in, turned, turn);
    store_head(turned, to, first + head, head_dim);
  }
}

void place_token(const QkNormRope& given, std::int64_t token) {
  const std::int64_t heads = given.q.shape[1];
  const std::int64_t kv_heads = given.k_cache.shape[1];
  const std::int64_t head_dim = given.qkv.shape[2];
  const Turn turn = turn_of_token(given, token);
  norm_and_rotate(given, turn, given.q_weight, heads, begin_of_head(given, token, 0), {given.q, kNoTensor},
                  token * heads);
  const std::int64_t slot = static_cast<const std::int32_t*>(given.slots.data)[token];
  if (slot < 0 || slot >= given.k_cache.shape[0]) {
    return;
  }
  const std::int64_t row = kv_heads * head_dim;
  norm_and_rotate(given, turn, given.k_weight, kv_heads, begin_of_head(given, token, heads),
                  {given.k_cache, given.k_scales}, slot * kv_heads);
  float* values = cpu::scratch(cpu::Scratch::fourth, row);
  cpu::widen_to(given.qkv, begin_of_head(given, token, heads + kv_heads), row, values);
  for (std::int64_t head = 0; head < kv_heads; ++head) {
    store_head(values + head * head_dim, {given.v_cache, given.v_scales}, slot * kv_heads + head, head_dim);
  }
}

// Slots of the first quarter turn by the row, the others by the column.
Turn turn_of_patch(const RopeVision& given, std::int64_t patch) {
  const std::int64_t quarter = given.qkv.shape[3] / 4;
  const Turn turn = turn_room(2 * quarter);
  for (std::int64_t axis = 0; axis < 2; ++axis) {
    const auto* positions = static_cast<const std::int32_t*>(given.positions.data) + axis * given.qkv.shape[0];
    const std::int64_t row = nearest_row(given.cosine, positions[patch]) * quarter;
    std::copy_n(static_cast<const float*>(given.cosine.data) + row, quarter, turn.cosine + axis * quarter);
    std::copy_n(static_cast<const float*>(given.sine.data) + row, quarter, turn.sine + axis * quarter);
  }
  return turn;
}

void rotate_patch(const RopeVision& given, std::int64_t patch) {
  const std::int64_t head_dim = given.qkv.shape[3];
  const Turn turn = turn_of_patch(given, patch);
  float* room = cpu::scratch(cpu::Scratch::second, head_dim);
  float* turned = cpu::scratch(cpu::Scratch::third, head_dim);
  for (std::int64_t head = 0; head < 2 * given.qkv.shape[2]; ++head) {
    const std::int64_t at = patch * row_stride(given.qkv) + head * head_dim;
    rotate_pairs(cpu::floats_at(given.qkv, at, head_dim, room), turned, turn);
    cpu::store_floats(turned, given.qkv, at, head_dim);
  }
}

// Calls `place(i)` for each of `count` tokens or patches of so many elements.
template <typename Place>
void for_tokens(std::int64_t count, std::int64_t elements, const Place& place) {
  worker_pool().run(count, std::max<std::int64_t>(1, kRopeSlice / elements), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      place(i);
    }
  });
}

}  // namespace

void QkNormRope::compute() const {
  for_tokens(qkv.shape[0], row_length(qkv), [&](std::int64_t token) { place_token(*this, token); });
}

void RopeVision::compute() const {
  for_tokens(qkv.shape[0], row_length(qkv), [&](std::int64_t patch) { rotate_patch(*this, patch); });
}

}  // namespace pascaline::ops
