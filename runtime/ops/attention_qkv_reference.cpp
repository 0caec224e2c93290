#include <algorithm>

#include "runtime/ops/reference.hpp"

namespace pascaline {

// What reference_qk_norm_rope and reference_attention_decode give one after the other, of which the first does not
// round what an int8 cache gets. Inputs qkv, q_weight, k_weight, cosine, sine, positions, length, the caches and their
// scales; outputs the caches, their scales, out and its scales; dimensions HEADS, KV_HEADS, HEAD_DIM, KEYS, POSITIONS,
// SECTION_H, SECTION_W, NORM, EPSILON.
void reference_attention_decode_qkv(const Problem& problem, std::span<const std::vector<double>> inputs,
                                    std::span<std::vector<double>> outputs) {
  const std::int64_t heads = problem.dimension("HEADS");
  const std::int64_t kv_heads = problem.dimension("KV_HEADS");
  const std::int64_t head_dim = problem.dimension("HEAD_DIM");
  const std::int64_t keys = problem.dimension("KEYS");
  const double length = std::clamp<double>(inputs[6][0], 0, static_cast<double>(keys));
  const Problem rotation{"qk_norm_rope",
                         {{"TOKENS", 1},
                          {"HEADS", heads},
                          {"KV_HEADS", kv_heads},
                          {"HEAD_DIM", head_dim},
                          {"POSITIONS", problem.dimension("POSITIONS")},
                          {"CACHE_ROWS", keys},
                          {"SECTION_H", problem.dimension("SECTION_H")},
                          {"SECTION_W", problem.dimension("SECTION_W")},
                          {"QKV_STRIDE", (heads + 2 * kv_heads) * head_dim},
                          {"NORM", problem.dimension("NORM")},
                          {"EPSILON", problem.dimension("EPSILON")},
                          {"PARTS", 0}},
                         problem.types};
  const std::vector<std::vector<double>> token{inputs[0],    inputs[1], inputs[2], inputs[3], inputs[4], inputs[5],
                                               {length - 1}, inputs[7], inputs[8], inputs[9], inputs[10]};
  std::vector<std::vector<double>> placed{inputs[7], inputs[8], inputs[9], inputs[10],
                                          std::vector<double>(static_cast<std::size_t>(heads * head_dim))};
  find_host_reference("qk_norm_rope")(rotation, token, placed);

  const Problem attention{"attention_decode",
                          {{"HEADS", heads},
                           {"KV_HEADS", kv_heads},
                           {"HEAD_DIM", head_dim},
                           {"KEYS", keys},
                           {"KV_STRIDE", kv_heads * head_dim}},
                          problem.types};
  const std::vector<std::vector<double>> query{placed[4], placed[0], placed[1], placed[2], placed[3], {length}};
  find_host_reference("attention_decode")(attention, query, outputs.subspan(4));
  std::move(placed.begin(), placed.begin() + 4, outputs.begin());
}

}  // namespace pascaline
