#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/problem.hpp"

namespace pascaline {

/// A float64 computation of an operation on the processor: what kernels are verified against.
/// `inputs`: the buffers with access `in` or `inout` in the order of the space's arguments, widened to float64.
/// `outputs`: the buffers with access `out` or `inout` in that order, sized by the caller; every element is written.
using HostReference = void (*)(const Problem& problem, std::span<const std::vector<double>> inputs,
                               std::span<std::vector<double>> outputs);

/// The reference of that name (the names search spaces use), or nullptr.
[[nodiscard]] HostReference find_host_reference(std::string_view name) noexcept;

/// `C[M,N] = A[M,K] · B[N,K]ᵀ`, all row-major; dimensions M, N, K. Uses all processors.
void reference_matmul_nt(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs);

/// Attention of `q[QUERIES, HEADS, HEAD_DIM]` to `k` and `v`, rows Q_STRIDE and KV_STRIDE apart; inputs q, k, v,
/// segment_starts. Queries that see no key give zeros. Uses all processors.
void reference_attention_prefill(const Problem& problem, std::span<const std::vector<double>> inputs,
                                 std::span<std::vector<double>> outputs);

/// Attention of one query a head to the first `length` of KEYS rows; inputs q, k, v, length.
void reference_attention_decode(const Problem& problem, std::span<const std::vector<double>> inputs,
                                std::span<std::vector<double>> outputs);

}  // namespace pascaline
