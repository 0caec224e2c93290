#include "runtime/ops/reference.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

namespace pascaline {

// Each in a file NAME_reference.cpp of its own.
using ReferenceFunction = std::remove_pointer_t<HostReference>;
ReferenceFunction reference_advance, reference_attention_decode, reference_attention_decode_qkv,
    reference_attention_layer, reference_attention_prefill, reference_attention_projected,
    reference_attention_sparse_decode, reference_attention_sparse_prefill, reference_choose_blocks,
    reference_elementwise, reference_gather, reference_layernorm, reference_matmul_nt, reference_matmul_q,
    reference_matvec_normed, reference_matvec_q, reference_mlp, reference_quantize, reference_pool_blocks,
    reference_position_embedding, reference_qk_norm_rope, reference_rmsnorm, reference_rope_vision,
    reference_row_statistics, reference_sample, reference_sample_next, reference_score_blocks, reference_softmax,
    reference_transpose;
ReferenceFunction slack_of_attention_layer, slack_of_attention_projected, slack_of_mlp;  // beside the references

namespace {

struct Known {
  std::string_view name;
  HostReference function;
  ReferenceBuffers buffers;  // matvec's of matmul_nt, to which matmul adds what its epilogues read
};

constexpr std::array kReferences{
    Known{"advance", reference_advance, {3, 3}},
    Known{"attention_decode", reference_attention_decode, {6, 2}},
    Known{"attention_decode_qkv", reference_attention_decode_qkv, {11, 6}},
    Known{"attention_layer", reference_attention_layer, {14, 5}},
    Known{"attention_prefill", reference_attention_prefill, {6, 1}},
    Known{"attention_projected", reference_attention_projected, {13, 5}},
    Known{"attention_sparse_decode", reference_attention_sparse_decode, {7, 2}},
    Known{"attention_sparse_prefill", reference_attention_sparse_prefill, {6, 1}},
    Known{"choose_blocks", reference_choose_blocks, {2, 1}},
    Known{"elementwise", reference_elementwise, {2, 1}},
    Known{"gather", reference_gather, {2, 1}},
    Known{"layernorm", reference_layernorm, {4, 3}},
    Known{"matmul_nt", reference_matmul_nt, {4, 1}},
    Known{"matmul_q", reference_matmul_q, {5, 3}},
    Known{"matvec_normed", reference_matvec_normed, {5, 1}},
    Known{"matvec_q", reference_matvec_q, {6, 3}},
    Known{"mlp", reference_mlp, {4, 1}},
    Known{"pool_blocks", reference_pool_blocks, {4, 1}},
    Known{"position_embedding", reference_position_embedding, {2, 1}},
    Known{"qk_norm_rope", reference_qk_norm_rope, {11, 5}},
    Known{"quantize", reference_quantize, {1, 2}},
    Known{"rmsnorm", reference_rmsnorm, {3, 3}},
    Known{"rope_vision", reference_rope_vision, {4, 1}},
    Known{"row_statistics", reference_row_statistics, {1, 1}},
    Known{"sample", reference_sample, {5, 4}},
    Known{"sample_next", reference_sample_next, {9, 8}},
    Known{"score_blocks", reference_score_blocks, {3, 1}},
    Known{"softmax", reference_softmax, {1, 1}},
    Known{"transpose", reference_transpose, {1, 1}},
};

const Known* find_known(std::string_view name) noexcept {
  const auto* found =
      std::find_if(kReferences.begin(), kReferences.end(), [&](const Known& known) { return known.name == name; });
  return found == kReferences.end() ? nullptr : found;
}

}  // namespace

HostReference find_host_reference(std::string_view name) noexcept {
  const Known* known = find_known(name);
  return known != nullptr ? known->function : nullptr;
}

std::optional<ReferenceBuffers> host_reference_buffers(std::string_view name) noexcept {
  const Known* known = find_known(name);
  return known != nullptr ? std::optional(known->buffers) : std::nullopt;
}

HostReference find_reference_slack(std::string_view name) noexcept {
  return name == "mlp"                   ? slack_of_mlp
         : name == "attention_projected" ? slack_of_attention_projected
         : name == "attention_layer"     ? slack_of_attention_layer
                                         : nullptr;
}

std::vector<std::vector<double>> reference_slacks(std::string_view name, const Problem& problem,
                                                  std::span<const std::vector<double>> inputs,
                                                  std::span<const std::vector<double>> outputs) {
  std::vector<std::vector<double>> slacks(outputs.size());
  if (const HostReference slack_of = find_reference_slack(name)) {
    slacks.assign(outputs.begin(), outputs.end());
    slack_of(problem, inputs, slacks);
  }
  return slacks;
}

}  // namespace pascaline
