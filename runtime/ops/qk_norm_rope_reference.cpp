#include <algorithm>
#include <cmath>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

// Everything the rotation of one token's heads needs.
struct Rotation {
  const double* cosine;
  const double* sine;
  std::size_t half;
  std::size_t sections[3];   ///< slots that turn by T (unused), H and W
  std::size_t positions[3];  ///< T, H and W of the token
  double epsilon;            ///< of the norm; negative if there is none
};

void norm_and_rotate(const double* in, double* out, const double* weight, const Rotation& rotation) {
  const std::size_t half = rotation.half;
  const bool is_normed = rotation.epsilon >= 0;
  double squares = 0;
  for (std::size_t i = 0; i < 2 * half; ++i) {
    squares += in[i] * in[i];
  }
  const double factor = is_normed ? 1 / std::sqrt(squares / static_cast<double>(2 * half) + rotation.epsilon) : 1.0;
  for (std::size_t j = 0; j < half; ++j) {
    const std::size_t axis = j % 3 != 0 && j < 3 * rotation.sections[j % 3] ? j % 3 : 0;
    const double c = rotation.cosine[rotation.positions[axis] * half + j];
    const double s = rotation.sine[rotation.positions[axis] * half + j];
    const double low = in[j] * factor * (is_normed ? weight[j] : 1.0);
    const double high = in[j + half] * factor * (is_normed ? weight[j + half] : 1.0);
    out[j] = low * c - high * s;
    out[j + half] = high * c + low * s;
  }
}

// Where a head lies in qkv: PARTS is a sum of 1, queries are a matrix of their own, and 2, values are.
std::size_t begin_of_head(const Problem& problem, std::size_t token, std::size_t head) {
  const auto dimension = [&](const char* name) { return static_cast<std::size_t>(problem.dimension(name)); };
  const std::size_t parts = dimension("PARTS");
  const std::size_t keys = dimension("HEADS");
  const std::size_t values = keys + dimension("KV_HEADS");
  if (parts == 0) {
    return token * dimension("QKV_STRIDE") + head * dimension("HEAD_DIM");
  }
  std::vector<std::size_t> bounds{0};
  if (parts % 2 == 1) {
    bounds.push_back(keys);
  }
  if (parts / 2 == 1) {
    bounds.push_back(values);
  }
  bounds.push_back(values + dimension("KV_HEADS"));
  std::size_t part = 0;
  while (head >= bounds[part + 1]) {
    ++part;
  }
  const std::size_t first = bounds[part];
  return (dimension("TOKENS") * first + token * (bounds[part + 1] - first) + head - first) * dimension("HEAD_DIM");
}

// Of a cache in int8: divides a head by its scale, which it returns. Nothing is rounded; see docs/search_spaces.md.
double scale_head(double* head, std::size_t head_dim) {
  double largest = 0;
  for (std::size_t i = 0; i < head_dim; ++i) {
    largest = std::max(largest, std::abs(head[i]));
  }
  const double scale = largest / 127;
  for (std::size_t i = 0; i < head_dim; ++i) {
    head[i] = largest > 0 ? head[i] / scale : 0;
  }
  return scale;
}

}  // namespace

// RMSNorm, with NORM, and interleaved rotary embedding of query and key heads, keys and values into their cache, in
// int8 with their scales; inputs qkv, q_weight, k_weight, cosine, sine, positions, slots, the caches and their scales;
// dimensions TOKENS, HEADS, KV_HEADS, HEAD_DIM, POSITIONS, CACHE_ROWS, SECTION_H, SECTION_W, QKV_STRIDE, NORM, EPSILON,
// PARTS.
void reference_qk_norm_rope(const Problem& problem, std::span<const std::vector<double>> inputs,
                            std::span<std::vector<double>> outputs) {
  const auto dimension = [&](const char* name) { return static_cast<std::size_t>(problem.dimension(name)); };
  const std::size_t tokens = dimension("TOKENS");
  const std::size_t heads = dimension("HEADS");
  const std::size_t kv_heads = dimension("KV_HEADS");
  const std::size_t head_dim = dimension("HEAD_DIM");
  const double epsilon = dimension("NORM") != 0 ? static_cast<double>(dimension("EPSILON")) / 1e9 : -1.0;
  const bool scaled = !inputs[9].empty();
  const std::size_t last_position = dimension("POSITIONS") - 1;
  std::copy(inputs[7].begin(), inputs[7].end(), outputs[0].begin());
  std::copy(inputs[8].begin(), inputs[8].end(), outputs[1].begin());
  std::copy(inputs[9].begin(), inputs[9].end(), outputs[2].begin());
  std::copy(inputs[10].begin(), inputs[10].end(), outputs[3].begin());
  worker_pool().run(tokens, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = begin; token < end; ++token) {
      Rotation rotation{
          inputs[3].data(), inputs[4].data(), head_dim / 2, {0, dimension("SECTION_H"), dimension("SECTION_W")}, {},
          epsilon};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const double position = std::max(0.0, inputs[5][axis * tokens + token]);
        rotation.positions[axis] = std::min(static_cast<std::size_t>(position), last_position);
      }
      const auto in = [&](std::size_t head) { return inputs[0].data() + begin_of_head(problem, token, head); };
      for (std::size_t head = 0; head < heads; ++head) {
        norm_and_rotate(in(head), outputs[4].data() + (token * heads + head) * head_dim, inputs[1].data(), rotation);
      }
      const double slot = inputs[6][token];
      if (slot < 0 || slot >= static_cast<double>(dimension("CACHE_ROWS"))) {
        continue;
      }
      const std::size_t row = static_cast<std::size_t>(slot) * kv_heads * head_dim;
      for (std::size_t head = 0; head < kv_heads; ++head) {
        norm_and_rotate(in(heads + head), outputs[0].data() + row + head * head_dim, inputs[2].data(), rotation);
      }
      const double* values = in(heads + kv_heads);
      std::copy(values, values + kv_heads * head_dim, outputs[1].begin() + static_cast<std::ptrdiff_t>(row));
      for (std::size_t head = 0; scaled && head < kv_heads; ++head) {
        const std::size_t index = row / head_dim + head;
        outputs[2][index] = scale_head(outputs[0].data() + index * head_dim, head_dim);
        outputs[3][index] = scale_head(outputs[1].data() + index * head_dim, head_dim);
      }
    }
  });
}

}  // namespace pascaline
