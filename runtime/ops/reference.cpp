#include "runtime/ops/reference.hpp"

#include <array>
#include <type_traits>
#include <utility>

namespace pascaline {

// Each in a file NAME_reference.cpp of its own.
using ReferenceFunction = std::remove_pointer_t<HostReference>;
ReferenceFunction reference_advance, reference_attention_decode, reference_attention_decode_qkv,
    reference_attention_prefill, reference_attention_projected, reference_attention_sparse_decode,
    reference_attention_sparse_prefill, reference_choose_blocks, reference_elementwise, reference_gather,
    reference_layernorm, reference_matmul_nt, reference_matmul_q, reference_matvec_normed, reference_matvec_q,
    reference_mlp, reference_quantize, reference_pool_blocks, reference_position_embedding, reference_qk_norm_rope,
    reference_rmsnorm, reference_rope_vision, reference_row_statistics, reference_sample, reference_score_blocks,
    reference_softmax, reference_transpose;
ReferenceFunction slack_of_attention_projected, slack_of_mlp;  // beside the references

namespace {

constexpr std::array<std::pair<std::string_view, HostReference>, 27> kReferences{{
    {"advance", reference_advance},
    {"attention_decode", reference_attention_decode},
    {"attention_decode_qkv", reference_attention_decode_qkv},
    {"attention_prefill", reference_attention_prefill},
    {"attention_projected", reference_attention_projected},
    {"attention_sparse_decode", reference_attention_sparse_decode},
    {"attention_sparse_prefill", reference_attention_sparse_prefill},
    {"choose_blocks", reference_choose_blocks},
    {"elementwise", reference_elementwise},
    {"gather", reference_gather},
    {"layernorm", reference_layernorm},
    {"matmul_nt", reference_matmul_nt},
    {"matmul_q", reference_matmul_q},
    {"matvec_normed", reference_matvec_normed},
    {"matvec_q", reference_matvec_q},
    {"mlp", reference_mlp},
    {"pool_blocks", reference_pool_blocks},
    {"position_embedding", reference_position_embedding},
    {"qk_norm_rope", reference_qk_norm_rope},
    {"quantize", reference_quantize},
    {"rmsnorm", reference_rmsnorm},
    {"rope_vision", reference_rope_vision},
    {"row_statistics", reference_row_statistics},
    {"sample", reference_sample},
    {"score_blocks", reference_score_blocks},
    {"softmax", reference_softmax},
    {"transpose", reference_transpose},
}};

}  // namespace

HostReference find_host_reference(std::string_view name) noexcept {
  for (const auto& [known, function] : kReferences) {
    if (known == name) {
      return function;
    }
  }
  return nullptr;
}

HostReference find_reference_slack(std::string_view name) noexcept {
  return name == "mlp" ? slack_of_mlp : name == "attention_projected" ? slack_of_attention_projected : nullptr;
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
