#pragma once

#include "runtime/ops/attention.hpp"
#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/log_probability.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/mlp.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/position_embedding.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/transpose.hpp"

/// The arguments of operations under their names in Python, a line each: `visit(name, field)`. An operation that is
/// added here is also added to the table in operations.cpp and to python/make_ops.py.
namespace pascaline::python {

template <typename Visit>
void fields(ops::Matmul& op, const Visit& visit) {
  visit("a", op.a), visit("b", op.b), visit("bias", op.bias), visit("residual", op.residual), visit("out", op.c);
  visit("epilogue", op.epilogue);
}
template <typename Visit>
void fields(ops::Quantize& op, const Visit& visit) {
  visit("x", op.x), visit("values", op.y.values), visit("scales", op.y.scales), visit("format", op.for_weight);
}
template <typename Visit>
void fields(ops::QuantizedMatmul& op, const Visit& visit) {
  visit("values", op.a.values), visit("scales", op.a.scales), visit("b", op.b), visit("bias", op.bias);
  visit("residual", op.residual), visit("out", op.c), visit("epilogue", op.epilogue);
}
template <typename Visit>
void fields(ops::NormedMatmul& op, const Visit& visit) {
  visit("a", op.a), visit("norm", op.norm), visit("b", op.b), visit("bias", op.bias), visit("residual", op.residual);
  visit("out", op.c), visit("epilogue", op.epilogue), visit("epsilon", op.epsilon);
}
template <typename Visit>
void fields(ops::Mlp& op, const Visit& visit) {
  visit("x", op.x), visit("norm", op.norm), visit("gate_up", op.gate_up), visit("down", op.down), visit("out", op.c);
  visit("epsilon", op.epsilon);
}
template <typename Visit>
void fields(ops::PatchEmbed& op, const Visit& visit) {
  visit("patches", op.patches), visit("weight", op.weight), visit("bias", op.bias), visit("out", op.y);
}
template <typename Visit>
void fields(ops::Rmsnorm& op, const Visit& visit) {
  visit("x", op.x), visit("weight", op.weight), visit("residual", op.residual), visit("out", op.y);
  visit("epsilon", op.epsilon);
}
template <typename Visit>
void fields(ops::Layernorm& op, const Visit& visit) {
  visit("x", op.x), visit("weight", op.weight), visit("bias", op.bias), visit("residual", op.residual);
  visit("out", op.y);
}
template <typename Visit>
void fields(ops::Softmax& op, const Visit& visit) {
  visit("x", op.x), visit("out", op.y);
}
template <typename Visit>
void fields(ops::LogProbability& op, const Visit& visit) {
  visit("x", op.x), visit("targets", op.targets), visit("out", op.y);
}
template <typename Visit>
void fields(ops::Convert& op, const Visit& visit) {
  visit("x", op.x), visit("out", op.y);
}
template <typename Visit>
void fields(ops::Add& op, const Visit& visit) {
  visit("a", op.a), visit("b", op.b), visit("out", op.y);
}
template <typename Visit>
void fields(ops::SiluMultiply& op, const Visit& visit) {
  visit("gate", op.gate), visit("factor", op.factor), visit("out", op.y);
}
template <typename Visit>
void fields(ops::GeluMultiply& op, const Visit& visit) {
  visit("gate", op.gate), visit("factor", op.factor), visit("out", op.y);
}
template <typename Visit>
void fields(ops::GeluTanh& op, const Visit& visit) {
  visit("x", op.x), visit("out", op.y);
}
template <typename Visit>
void fields(ops::GeluErf& op, const Visit& visit) {
  visit("x", op.x), visit("out", op.y);
}
template <typename Visit>
void fields(ops::Transpose& op, const Visit& visit) {
  visit("x", op.x), visit("out", op.y);
}
template <typename Visit>
void fields(ops::Gather& op, const Visit& visit) {
  visit("table", op.table), visit("indices", op.indices), visit("out", op.y);
}
template <typename Visit>
void fields(ops::RopeVision& op, const Visit& visit) {
  visit("qkv", op.qkv), visit("cosine", op.cosine), visit("sine", op.sine), visit("positions", op.positions);
}
template <typename Visit>
void fields(ops::PositionEmbedding& op, const Visit& visit) {
  visit("x", op.x), visit("table", op.table), visit("out", op.y), visit("grid_h", op.grid_h);
  visit("grid_w", op.grid_w), visit("merge", op.merge);
}
template <typename Visit>
void fields(ops::AttentionPrefill& op, const Visit& visit) {
  visit("q", op.q), visit("k", op.k), visit("v", op.v), visit("k_scales", op.k_scales);
  visit("v_scales", op.v_scales), visit("segment_starts", op.segment_starts), visit("out", op.out);
  visit("causal", op.causal);
}
template <typename Visit>
void fields(ops::AttentionDecode& op, const Visit& visit) {
  visit("q", op.q), visit("k", op.k), visit("v", op.v), visit("length", op.length), visit("k_scales", op.k_scales);
  visit("v_scales", op.v_scales), visit("out", op.out);
}

}  // namespace pascaline::python
