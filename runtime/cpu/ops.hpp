#pragma once

#include "runtime/ops/ops.hpp"

/// The operations of runtime/ops on the processor: same arguments, meaning and errors, with tensors whose addresses are
/// in host memory. Each has finished when it returns. Arithmetic is float32, sums over rows float64. They use the
/// threads of `worker_pool()`; a result does not depend on how many there are. Several threads may call them at once:
/// then all but one work alone. Lengths, slots, positions, indices and segments are read as kernels read them: what is
/// out of range never leads out of a tensor.
namespace pascaline::cpu {

/// As ops::matmul. Up to 8 rows stream the weight through loops of their own; more go to OpenBLAS, panel by panel.
/// Throws Error if that is not installed.
void matmul(const ops::MatmulArguments& arguments);
/// `c = a · bᵀ`.
void matmul(const TensorView& a, const TensorView& b, const TensorView& c);
/// As ops::patch_embed.
void patch_embed(const TensorView& patches, const TensorView& weight, const TensorView& bias, const TensorView& y);

/// As ops::attention_prefill; by OpenBLAS, so it throws as `matmul`.
void attention_prefill(const ops::AttentionPrefillArguments& arguments);
/// As ops::attention_decode, but of any number of query heads a key head. Reads the cache once.
void attention_decode(const ops::AttentionDecodeArguments& arguments);

/// As ops::rmsnorm.
void rmsnorm(const ops::RmsnormArguments& arguments);
/// As ops::layernorm.
void layernorm(const ops::LayernormArguments& arguments);
/// As ops::softmax.
void softmax(const TensorView& x, const TensorView& y);

/// As ops::qk_norm_rope.
void qk_norm_rope(const ops::QkNormRopeArguments& arguments);
/// As ops::rope_vision.
void rope_vision(const ops::RopeVisionArguments& arguments);

/// As ops::convert.
void convert(const TensorView& x, const TensorView& y);
/// As ops::add.
void add(const TensorView& a, const TensorView& b, const TensorView& y);
/// As ops::silu_multiply.
void silu_multiply(const TensorView& gate, const TensorView& factor, const TensorView& y);
/// As ops::gelu_tanh.
void gelu_tanh(const TensorView& x, const TensorView& y);
/// As ops::gelu_erf.
void gelu_erf(const TensorView& x, const TensorView& y);

/// As ops::transpose.
void transpose(const TensorView& x, const TensorView& y);
/// As ops::gather.
void gather(const TensorView& table, const TensorView& indices, const TensorView& y);
/// As ops::position_embedding.
void position_embedding(const ops::PositionEmbeddingArguments& arguments);

/// As ops::sample: `ops::sample_on_host` of what the tensors hold.
void sample(const ops::SampleArguments& arguments);
/// As ops::advance.
void advance(const TensorView& length, const TensorView& slots, const TensorView& positions);

}  // namespace pascaline::cpu
