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

/// length[1], slots[1] and positions[3], each plus one.
void reference_advance(const Problem& problem, std::span<const std::vector<double>> inputs,
                       std::span<std::vector<double>> outputs);

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

/// `y = f(a, b)` element by element; dimensions COUNT and OPERATION, which chooses f.
void reference_elementwise(const Problem& problem, std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs);

/// `y[t] = table[indices[t]]`, zeros for an index that is no row; dimensions TOKENS, WIDTH, VOCABULARY.
void reference_gather(const Problem& problem, std::span<const std::vector<double>> inputs,
                      std::span<std::vector<double>> outputs);

/// Rows of `x` (and of the residual, which receives the sum) normalised to mean 0 and variance 1, scaled and shifted;
/// dimensions ROWS, WIDTH, RESIDUAL.
void reference_layernorm(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs);

/// `x` plus a learned square grid, stretched to GRID_H x GRID_W patches in blocks of MERGE x MERGE; dimensions GRID_H,
/// GRID_W, WIDTH, SIDE, MERGE.
void reference_position_embedding(const Problem& problem, std::span<const std::vector<double>> inputs,
                                  std::span<std::vector<double>> outputs);

/// RMSNorm and interleaved rotary embedding of query and key heads, keys and values into their cache; dimensions
/// TOKENS, HEADS, KV_HEADS, HEAD_DIM, POSITIONS, CACHE_ROWS, SECTION_H, SECTION_W, QKV_STRIDE.
void reference_qk_norm_rope(const Problem& problem, std::span<const std::vector<double>> inputs,
                            std::span<std::vector<double>> outputs);

/// Rows of `x` (and of the residual, which receives the sum) divided by their root mean square, and scaled; dimensions
/// ROWS, WIDTH, RESIDUAL.
void reference_rmsnorm(const Problem& problem, std::span<const std::vector<double>> inputs,
                       std::span<std::vector<double>> outputs);

/// Rotary embedding of query and key heads by row and column, in place; dimensions PATCHES, HEADS, HEAD_DIM, POSITIONS,
/// QKV_STRIDE.
void reference_rope_vision(const Problem& problem, std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs);

/// The next token from logits: `ops::sample_on_host`, so what a kernel gives must equal it to the bit. In float64 the
/// same choice would differ wherever rounding moves a boundary between tokens across the drawn number, which among
/// many tokens of like probability happens too often to tell it from a mistake. Inputs logits, settings, top_k,
/// generator, seen; dimension VOCABULARY.
void reference_sample(const Problem& problem, std::span<const std::vector<double>> inputs,
                      std::span<std::vector<double>> outputs);

/// Softmax of each row; dimensions ROWS, WIDTH.
void reference_softmax(const Problem& problem, std::span<const std::vector<double>> inputs,
                       std::span<std::vector<double>> outputs);

/// `y[COLUMNS,ROWS] = x[ROWS,COLUMNS]` transposed.
void reference_transpose(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs);

}  // namespace pascaline
