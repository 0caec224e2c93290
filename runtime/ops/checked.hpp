#pragma once

#include "runtime/ops/checks.hpp"  // IWYU pragma: export
#include "runtime/ops/ops.hpp"     // IWYU pragma: export

namespace pascaline::ops {

// What every implementation of an operation asks of its arguments before it touches them, one function an op. Each
// throws the Error that the op documents, and returns whether there is anything to do.

[[nodiscard]] bool checked_matmul(const MatmulArguments& arguments);
[[nodiscard]] bool checked_patch_embed(const TensorView& patches, const TensorView& weight, const TensorView& bias,
                                       const TensorView& y);
[[nodiscard]] bool checked_attention_prefill(const AttentionPrefillArguments& arguments);
[[nodiscard]] bool checked_attention_decode(const AttentionDecodeArguments& arguments);
[[nodiscard]] bool checked_rmsnorm(const RmsnormArguments& arguments);
[[nodiscard]] bool checked_layernorm(const LayernormArguments& arguments);
[[nodiscard]] bool checked_softmax(const TensorView& x, const TensorView& y);
[[nodiscard]] bool checked_qk_norm_rope(const QkNormRopeArguments& arguments);
[[nodiscard]] bool checked_rope_vision(const RopeVisionArguments& arguments);
[[nodiscard]] bool checked_transpose(const TensorView& x, const TensorView& y);
[[nodiscard]] bool checked_gather(const TensorView& table, const TensorView& indices, const TensorView& y);
[[nodiscard]] bool checked_position_embedding(const PositionEmbeddingArguments& arguments);
[[nodiscard]] bool checked_convert(const TensorView& x, const TensorView& y);
[[nodiscard]] bool checked_add(const TensorView& a, const TensorView& b, const TensorView& y);
[[nodiscard]] bool checked_silu_multiply(const TensorView& gate, const TensorView& factor, const TensorView& y);
[[nodiscard]] bool checked_gelu_tanh(const TensorView& x, const TensorView& y);
[[nodiscard]] bool checked_gelu_erf(const TensorView& x, const TensorView& y);
[[nodiscard]] bool checked_sample(const SampleArguments& arguments);
[[nodiscard]] bool checked_advance(const TensorView& length, const TensorView& slots, const TensorView& positions);

/// Segments of the queries: 1 if none are given.
[[nodiscard]] std::int64_t segment_count(const AttentionPrefillArguments& arguments) noexcept;
/// Whether the epilogue adds a bias, or a residual.
[[nodiscard]] bool has_bias(Epilogue epilogue) noexcept;
[[nodiscard]] bool has_residual(Epilogue epilogue) noexcept;

}  // namespace pascaline::ops
