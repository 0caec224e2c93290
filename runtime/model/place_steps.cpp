#include "runtime/model/place_steps.hpp"

#include "runtime/model/tensor_memory.hpp"

namespace pascaline {

ops::Rmsnorm input_norm_of(const AttentionPlace& place) {
  return {.x = place.hidden, .weight = place.input_norm, .y = place.input, .epsilon = place.epsilon};
}

ops::Matmul projection_of(const AttentionPlace& place) {
  const auto& heads = place.qkv.shape;
  return {.a = place.input, .b = place.qkv_weight, .c = reshaped(place.qkv, {heads[0], heads[1] * heads[2]})};
}

ops::Matmul output_of(const AttentionPlace& place, const TensorView& attended) {
  const auto& heads = place.q.shape;
  return {.a = reshaped(attended, {heads[0], heads[1] * heads[2]}),
          .b = place.output,
          .c = place.hidden,
          .residual = place.hidden,
          .epilogue = ops::Epilogue::residual};
}

ops::QkNormRope rotation_of(const AttentionPlace& place) {
  return {.qkv = place.qkv,
          .q_weight = place.q_norm,
          .k_weight = place.k_norm,
          .cosine = place.cosine,
          .sine = place.sine,
          .positions = place.positions,
          .slots = place.slots,
          .k_cache = place.k_cache,
          .v_cache = place.v_cache,
          .q = place.q,
          .section_h = place.section_h,
          .section_w = place.section_w,
          .k_scales = place.k_scales,
          .v_scales = place.v_scales,
          .epsilon = place.epsilon};
}

ops::Rmsnorm post_norm_of(const MlpPlace& place) {
  return {.x = place.hidden, .weight = place.post_norm, .y = place.input, .epsilon = place.epsilon};
}

ops::Matmul gate_up_of(const MlpPlace& place) {
  return {.a = place.input, .b = place.gate_up, .c = place.gated, .epilogue = ops::Epilogue::swiglu};
}

ops::Matmul down_of(const MlpPlace& place) {
  return {.a = place.gated,
          .b = place.down,
          .c = place.hidden,
          .residual = place.hidden,
          .epilogue = ops::Epilogue::residual};
}

}  // namespace pascaline
