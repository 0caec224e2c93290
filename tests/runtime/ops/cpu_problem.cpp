#include "tests/runtime/ops/cpu_problem.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "runtime/ops/advance.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/attention_layer.hpp"
#include "runtime/ops/attention_projected.hpp"
#include "runtime/ops/attention_qkv.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"
#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/log_probability.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/mlp.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/normalising_matmul.hpp"
#include "runtime/ops/position_embedding.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/sample.hpp"
#include "runtime/ops/sample_next.hpp"
#include "runtime/ops/transpose.hpp"
#include "runtime/ops/vision_qkv.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

using Run = void (*)(const CpuProblem&);

void run_matmul(const CpuProblem& of) {
  const std::int64_t m = of.dimension("M");
  const std::int64_t n = of.dimension("N");
  const std::int64_t k = of.dimension("K");
  const auto epilogue = static_cast<ops::Epilogue>(of.dimension("EPILOGUE"));
  ops::compute(ops::Matmul{of.view("a", {m, k}), of.view("b", {n, k}),
                           of.view("c", {m, epilogue == ops::Epilogue::swiglu ? n / 2 : n}), of.view("bias", {n}),
                           of.view("residual", {m, n}), epilogue});
}

void run_vision_qkv(const CpuProblem& of) {
  const std::int64_t m = of.dimension("M");
  const std::int64_t n = of.dimension("N");
  const std::int64_t k = of.dimension("K");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::initializer_list<std::int64_t> table{of.dimension("POSITIONS"), head_dim / 4};
  ops::compute(ops::VisionQkv{.a = of.view("a", {m, k}),
                              .b = of.view("b", {n, k}),
                              .bias = of.view("bias", {n}),
                              .qkv = of.view("c", {m, 3, n / 3 / head_dim, head_dim}),
                              .cosine = of.view("cosine", table),
                              .sine = of.view("sine", table),
                              .positions = of.view("positions", {2, m}),
                              .norm = of.view("norm", {k}),
                              .norm_bias = of.view("norm_bias", {k}),
                              .statistics = of.view("statistics", {2, m})});
}

// Of the kernel matmul: also products that normalise, and that turn heads.
void run_product(const CpuProblem& of) {
  if (of.dimension("HEAD_DIM") != 0) {
    run_vision_qkv(of);
    return;
  }
  const std::int64_t norm = of.dimension("NORM");
  if (norm == 0) {
    run_matmul(of);
    return;
  }
  const std::int64_t m = of.dimension("M");
  const std::int64_t n = of.dimension("N");
  const std::int64_t k = of.dimension("K");
  const auto epilogue = static_cast<ops::Epilogue>(of.dimension("EPILOGUE"));
  const std::int64_t parts = norm == 3 ? 4 : 1;
  ops::compute(ops::NormalisingMatmul{.a = of.view("a", {m, k}),
                                      .norm = of.view("norm", {k / parts}),
                                      .norm_bias = of.view("norm_bias", {k / parts}),
                                      .statistics = of.view("statistics", {norm == 1 ? 1 : 2, m * parts}),
                                      .b = of.view("b", {n, k}),
                                      .c = of.view("c", {m, epilogue == ops::Epilogue::swiglu ? n / 2 : n}),
                                      .bias = of.view("bias", {n}),
                                      .residual = of.view("residual", {m, n}),
                                      .epilogue = epilogue});
}

void run_row_statistics(const CpuProblem& of) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t norm = of.dimension("NORM");
  ops::compute(ops::RowStatistics{.x = of.view("x", {rows, of.dimension("WIDTH")}),
                                  .statistics = of.view("statistics", {norm, rows}),
                                  .norm = static_cast<ops::RowNorm>(norm),
                                  .epsilon = {of.dimension("EPSILON")}});
}

void run_matmul_q(const CpuProblem& of) {
  const std::int64_t m = of.dimension("M");
  const std::int64_t n = of.dimension("N");
  const std::int64_t k = of.dimension("K");
  const TensorView b = of.view("b", {n, k});
  const auto epilogue = static_cast<ops::Epilogue>(of.dimension("EPILOGUE"));
  ops::compute(ops::QuantizedMatmul{.a = {of.view("a", {m, k}), of.view("scales_a", {ops::scale_rows(b.type, k), m})},
                                    .b = b,
                                    .c = of.view("c", {m, epilogue == ops::Epilogue::swiglu ? n / 2 : n}),
                                    .rounded = {of.view("q", {m, n / 2}), of.view("scales_c", {n / 64, m})},
                                    .bias = of.view("bias", {n}),
                                    .residual = of.view("residual", {m, n}),
                                    .epilogue = epilogue});
}

void run_normed_matmul(const CpuProblem& of) {
  const std::int64_t m = of.dimension("M");
  const std::int64_t n = of.dimension("N");
  const std::int64_t k = of.dimension("K");
  const auto epilogue = static_cast<ops::Epilogue>(of.dimension("EPILOGUE"));
  ops::compute(ops::NormedMatmul{.a = of.view("a", {m, k}),
                                 .norm = of.view("norm", {k}),
                                 .b = of.view("b", {n, k}),
                                 .c = of.view("c", {m, epilogue == ops::Epilogue::swiglu ? n / 2 : n}),
                                 .rounded = {of.view("q", {m, n / 2}), of.view("scales_c", {n / 64, m})},
                                 .bias = of.view("bias", {n}),
                                 .residual = of.view("residual", {m, n}),
                                 .epilogue = epilogue,
                                 .epsilon = {of.dimension("EPSILON")}});
}

void run_matvec_normed(const CpuProblem& of) {
  const std::int64_t m = of.dimension("M");
  const std::int64_t n = of.dimension("N");
  const std::int64_t k = of.dimension("K");
  const auto epilogue = static_cast<ops::Epilogue>(of.dimension("EPILOGUE"));
  ops::compute(ops::NormedMatmul{.a = of.view("a", {m, k}),
                                 .norm = of.view("norm", {k}),
                                 .b = of.view("b", {n, k}),
                                 .c = of.view("c", {m, epilogue == ops::Epilogue::swiglu ? n / 2 : n}),
                                 .bias = of.view("bias", {n}),
                                 .residual = of.view("residual", {m, n}),
                                 .epilogue = epilogue,
                                 .epsilon = {of.dimension("EPSILON")}});
}

void run_matvec_q(const CpuProblem& of) {
  if (of.dimension("NORM") != 0) {
    run_normed_matmul(of);
  } else if (of.type("INPUT") == ElementType::int8) {
    run_matmul_q(of);
  } else {
    run_matmul(of);
  }
}

void run_mlp(const CpuProblem& of) {
  const std::int64_t m = of.dimension("M");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t intermediate = of.dimension("INTERMEDIATE");
  ops::compute(ops::Mlp{.x = of.view("x", {m, hidden}),
                        .norm = of.view("norm", {hidden}),
                        .gate_up = of.view("gate_up", {2 * intermediate, hidden}),
                        .down = of.view("down", {hidden, intermediate}),
                        .c = of.view("c", {m, hidden}),
                        .epsilon = {of.dimension("EPSILON")}});
}

void run_attention_prefill(const CpuProblem& of) {
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t queries = of.dimension("QUERIES");
  const std::int64_t segments = of.dimension("SEGMENTS");
  const std::initializer_list<std::int64_t> cache{of.dimension("KEYS"), of.dimension("KV_HEADS"), head_dim};
  const std::initializer_list<std::int64_t> out{queries, of.dimension("HEADS"), head_dim};
  const std::initializer_list<std::int64_t> scales{of.dimension("KEYS"), of.dimension("KV_HEADS")};
  const std::int64_t kv_stride = of.dimension("KV_STRIDE");
  ops::compute(ops::AttentionPrefill{
      of.view("q", out).with_row_stride(of.dimension("Q_STRIDE")), of.view("k", cache).with_row_stride(kv_stride),
      of.view("v", cache).with_row_stride(kv_stride), of.view("out", out),
      segments > 1 ? of.view("segment_starts", {segments + 1}) : TensorView(), of.dimension("CAUSAL") != 0,
      of.view("k_scales", scales), of.view("v_scales", scales)});
}

void run_attention_decode(const CpuProblem& of) {
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::initializer_list<std::int64_t> cache{of.dimension("KEYS"), of.dimension("KV_HEADS"), head_dim};
  const std::initializer_list<std::int64_t> query{of.dimension("HEADS"), head_dim};
  const std::initializer_list<std::int64_t> scales{of.dimension("KEYS"), of.dimension("KV_HEADS")};
  const std::int64_t stride = of.dimension("KV_STRIDE");
  ops::compute(ops::AttentionDecode{of.view("q", query), of.view("k", cache).with_row_stride(stride),
                                    of.view("v", cache).with_row_stride(stride), of.view("length", {1}),
                                    of.view("out", query), of.view("k_scales", scales), of.view("v_scales", scales),
                                    of.view("scales", {of.dimension("HEADS") * head_dim / 32, 1})});
}

ops::SparseMask sparse_mask(const CpuProblem& of) {
  return {of.dimension("BLOCK"), of.dimension("WINDOW"), of.dimension("SINKS"), of.dimension("STRIDE")};
}

void run_attention_sparse_prefill(const CpuProblem& of) {
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t queries = of.dimension("QUERIES");
  const std::int64_t block = of.dimension("BLOCK");
  const std::initializer_list<std::int64_t> cache{of.dimension("KEYS"), of.dimension("KV_HEADS"), head_dim};
  const std::initializer_list<std::int64_t> out{queries, of.dimension("HEADS"), head_dim};
  const std::initializer_list<std::int64_t> scales{of.dimension("KEYS"), of.dimension("KV_HEADS")};
  ops::compute(ops::AttentionSparsePrefill{
      of.view("q", out), of.view("k", cache), of.view("v", cache), of.view("out", out),
      of.view("blocks", {of.dimension("LISTS"), (queries + block - 1) / block, of.dimension("WIDTH")}), sparse_mask(of),
      of.view("k_scales", scales), of.view("v_scales", scales)});
}

void run_attention_sparse_decode(const CpuProblem& of) {
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::initializer_list<std::int64_t> cache{of.dimension("KEYS"), of.dimension("KV_HEADS"), head_dim};
  const std::initializer_list<std::int64_t> query{of.dimension("HEADS"), head_dim};
  const std::initializer_list<std::int64_t> scales{of.dimension("KEYS"), of.dimension("KV_HEADS")};
  ops::compute(ops::AttentionSparseDecode{
      of.view("q", query), of.view("k", cache), of.view("v", cache), of.view("length", {1}), of.view("out", query),
      of.view("blocks", {of.dimension("LISTS"), of.dimension("WIDTH")}), sparse_mask(of), of.view("k_scales", scales),
      of.view("v_scales", scales), of.view("scales", {of.dimension("HEADS") * head_dim / 32, 1})});
}

std::int64_t blocks_in(const CpuProblem& of, const char* rows) {
  return (of.dimension(rows) + of.dimension("BLOCK") - 1) / of.dimension("BLOCK");
}

void run_pool_blocks(const CpuProblem& of) {
  const std::int64_t heads = of.dimension("KV_HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t keys = of.dimension("KEYS");
  ops::compute(ops::PoolBlocks{of.view("k", {keys, heads, head_dim}), of.view("length", {1}),
                               of.view("means", {blocks_in(of, "KEYS"), heads, head_dim}), of.dimension("BLOCK"),
                               of.dimension("NEW"), of.view("k_scales", {keys, heads})});
}

void run_score_blocks(const CpuProblem& of) {
  const std::int64_t kv_heads = of.dimension("KV_HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t key_blocks = blocks_in(of, "KEYS");
  ops::compute(ops::ScoreBlocks{of.view("q", {of.dimension("QUERIES"), of.dimension("HEADS"), head_dim}),
                                of.view("means", {key_blocks, kv_heads, head_dim}), of.view("length", {1}),
                                of.view("scores", {kv_heads, blocks_in(of, "QUERIES"), key_blocks}),
                                of.dimension("KEYS"), of.dimension("BLOCK")});
}

void run_choose_blocks(const CpuProblem& of) {
  const std::int64_t lists = of.dimension("LISTS");
  const std::int64_t rows = blocks_in(of, "QUERIES");
  ops::compute(ops::ChooseBlocks{of.view("scores", {lists, rows, blocks_in(of, "KEYS")}), of.view("length", {1}),
                                 of.view("blocks", {lists, rows, of.dimension("WIDTH")}), of.dimension("QUERIES"),
                                 of.dimension("KEYS"), of.dimension("BLOCK"), of.dimension("PART")});
}

// For so many tokens and a cache of so many rows.
ops::TokenHeads token_heads_of(const CpuProblem& of, std::int64_t tokens, std::int64_t rows) {
  const std::int64_t kv_heads = of.dimension("KV_HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::initializer_list<std::int64_t> table{of.dimension("POSITIONS"), head_dim / 2};
  const bool is_normed = of.dimension("NORM") != 0;
  return {.q_weight = is_normed ? of.view("q_weight", {head_dim}) : TensorView(),
          .k_weight = is_normed ? of.view("k_weight", {head_dim}) : TensorView(),
          .cosine = of.view("cosine", table),
          .sine = of.view("sine", table),
          .positions = of.view("positions", {3, tokens}),
          .k_cache = of.view("k_cache", {rows, kv_heads, head_dim}),
          .v_cache = of.view("v_cache", {rows, kv_heads, head_dim}),
          .k_scales = of.view("k_scales", {rows, kv_heads}),
          .v_scales = of.view("v_scales", {rows, kv_heads}),
          .section_h = of.dimension("SECTION_H"),
          .section_w = of.dimension("SECTION_W"),
          .epsilon = {of.dimension("EPSILON")}};
}

ops::TokenHeads token_heads_of(const CpuProblem& of) { return token_heads_of(of, 1, of.dimension("KEYS")); }

void run_attention_decode_qkv(const CpuProblem& of) {
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  ops::compute(ops::AttentionDecodeQkv{
      token_heads_of(of), of.view("length", {1}), of.view("qkv", {heads + 2 * of.dimension("KV_HEADS"), head_dim}),
      of.view("out", {heads, head_dim}), of.view("scales", {heads * head_dim / 32, 1})});
}

void run_attention_projected(const CpuProblem& of) {
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t hidden = of.dimension("HIDDEN");
  ops::compute(ops::AttentionProjected{
      token_heads_of(of), of.view("length", {1}), of.view("qkv", {heads + 2 * of.dimension("KV_HEADS"), head_dim}),
      of.view("x", {1, hidden}), of.view("weight", {hidden, heads * head_dim}), of.view("c", {1, hidden})});
}

void run_attention_layer(const CpuProblem& of) {
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t rows = (heads + 2 * of.dimension("KV_HEADS")) * head_dim;
  ops::compute(ops::AttentionLayer{token_heads_of(of), of.view("length", {1}), of.view("x", {1, hidden}),
                                   of.view("norm", {hidden}), of.view("qkv_weight", {rows, hidden}),
                                   of.view("output_weight", {hidden, heads * head_dim}), of.view("c", {1, hidden})});
}

// Of a result in int8: float32 for each row, or for each 32 columns of one.
TensorView scales_of(const CpuProblem& of) {
  return of.view("scales", {of.dimension("BY_ROW") != 0 ? 1 : of.dimension("WIDTH") / 32, of.dimension("ROWS")});
}

void run_rmsnorm(const CpuProblem& of) {
  const std::initializer_list<std::int64_t> shape{of.dimension("ROWS"), of.dimension("WIDTH")};
  ops::compute(ops::Rmsnorm{of.view("x", shape),
                            of.view("weight", {of.dimension("WIDTH")}),
                            of.view("y", shape),
                            of.view("residual", shape),
                            scales_of(of),
                            of.dimension("BY_ROW") != 0,
                            {of.dimension("EPSILON")}});
}

void run_layernorm(const CpuProblem& of) {
  const std::int64_t width = of.dimension("WIDTH");
  const std::initializer_list<std::int64_t> shape{of.dimension("ROWS"), width};
  ops::compute(ops::Layernorm{of.view("x", shape), of.view("weight", {width}), of.view("bias", {width}),
                              of.view("y", shape), of.view("residual", shape), scales_of(of),
                              of.dimension("BY_ROW") != 0});
}

void run_softmax(const CpuProblem& of) {
  const std::initializer_list<std::int64_t> shape{of.dimension("ROWS"), of.dimension("WIDTH")};
  ops::compute(ops::Softmax{of.view("x", shape), of.view("y", shape)});
}

void run_log_probability(const CpuProblem& of) {
  const std::int64_t rows = of.dimension("ROWS");
  ops::compute(ops::LogProbability{of.view("x", {rows, of.dimension("WIDTH")}), of.view("targets", {rows}),
                                   of.view("y", {rows})});
}

void run_qk_norm_rope(const CpuProblem& of) {
  const std::int64_t tokens = of.dimension("TOKENS");
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  ops::compute(ops::QkNormRope{token_heads_of(of, tokens, of.dimension("CACHE_ROWS")),
                               of.view("qkv", {tokens, heads + 2 * of.dimension("KV_HEADS"), head_dim})
                                   .with_row_stride(of.dimension("QKV_STRIDE")),
                               of.view("slots", {tokens}), of.view("q", {tokens, heads, head_dim}),
                               static_cast<ops::QkvParts>(of.dimension("PARTS"))});
}

void run_rope_vision(const CpuProblem& of) {
  const std::int64_t patches = of.dimension("PATCHES");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::initializer_list<std::int64_t> table{of.dimension("POSITIONS"), head_dim / 4};
  ops::compute(ops::RopeVision{
      of.view("qkv", {patches, 3, of.dimension("HEADS"), head_dim}).with_row_stride(of.dimension("QKV_STRIDE")),
      of.view("cosine", table), of.view("sine", table), of.view("positions", {2, patches})});
}

void run_elementwise(const CpuProblem& of) {
  const TensorView a = of.view("a", {of.dimension("COUNT")});
  const TensorView b = of.view("b", {of.dimension("COUNT")});
  const TensorView y = of.view("y", {of.dimension("COUNT")});
  switch (of.dimension("OPERATION")) {
    case 0:
      return ops::compute(ops::Convert{a, y});
    case 1:
      return ops::compute(ops::Add{a, b, y});
    case 2:
      return ops::compute(ops::SiluMultiply{a, b, y});
    case 3:
      return ops::compute(ops::GeluTanh{a, y});
    case 4:
      return ops::compute(ops::GeluErf{a, y});
    default:
      return ops::compute(ops::GeluMultiply{a, b, y});
  }
}

void run_transpose(const CpuProblem& of) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t columns = of.dimension("COLUMNS");
  ops::compute(ops::Transpose{of.view("x", {rows, columns}), of.view("y", {columns, rows})});
}

void run_gather(const CpuProblem& of) {
  const std::int64_t tokens = of.dimension("TOKENS");
  const std::int64_t width = of.dimension("WIDTH");
  ops::compute(ops::Gather{of.view("table", {of.dimension("VOCABULARY"), width}), of.view("indices", {tokens}),
                           of.view("y", {tokens, width})});
}

void run_position_embedding(const CpuProblem& of) {
  const std::int64_t grid_h = of.dimension("GRID_H");
  const std::int64_t grid_w = of.dimension("GRID_W");
  const std::int64_t width = of.dimension("WIDTH");
  const std::int64_t side = of.dimension("SIDE");
  ops::compute(ops::PositionEmbedding{of.view("x", {grid_h * grid_w, width}), of.view("table", {side, side, width}),
                                      of.view("y", {grid_h * grid_w, width}), grid_h, grid_w, of.dimension("MERGE")});
}

void run_sample(const CpuProblem& of) {
  const std::int64_t vocabulary = of.dimension("VOCABULARY");
  ops::compute(ops::Sample{of.view("logits", {vocabulary}), of.view("settings", {5}), of.view("top_k", {1}),
                           of.view("generator", {2}), of.view("seen", {vocabulary}), of.view("token", {1}),
                           of.view("probability", {1})});
}

void run_sample_next(const CpuProblem& of) {
  const std::int64_t vocabulary = of.dimension("VOCABULARY");
  const std::int64_t width = of.dimension("WIDTH");
  ops::compute(ops::SampleNext{
      {of.view("logits", {vocabulary}), of.view("settings", {5}), of.view("top_k", {1}), of.view("generator", {2}),
       of.view("seen", {vocabulary}), of.view("token", {1}), of.view("probability", {1})},
      {of.view("length", {1}), of.view("slots", {1}), of.view("positions", {3, 1})},
      of.view("table", {vocabulary, width}),
      of.view("next", {1, width})});
}

void run_advance(const CpuProblem& of) {
  ops::compute(ops::Advance{of.view("length", {1}), of.view("slots", {1}), of.view("positions", {3, 1})});
}

const std::map<std::string, Run>& runners() {
  static const std::map<std::string, Run> known{{"advance", run_advance},
                                                {"attention_decode", run_attention_decode},
                                                {"attention_decode_qkv", run_attention_decode_qkv},
                                                {"attention_layer_q", run_attention_layer},
                                                {"attention_projected", run_attention_projected},
                                                {"attention_prefill", run_attention_prefill},
                                                {"attention_sparse_decode", run_attention_sparse_decode},
                                                {"attention_sparse_prefill", run_attention_sparse_prefill},
                                                {"choose_blocks", run_choose_blocks},
                                                {"elementwise", run_elementwise},
                                                {"gather", run_gather},
                                                {"layernorm", run_layernorm},
                                                {"log_probability", run_log_probability},
                                                {"matmul", run_product},
                                                {"matmul_q", run_matmul_q},
                                                {"matvec", run_matmul},
                                                {"matvec_normed", run_matvec_normed},
                                                {"matvec_q", run_matvec_q},
                                                {"mlp", run_mlp},
                                                {"pool_blocks", run_pool_blocks},
                                                {"position_embedding", run_position_embedding},
                                                {"qk_norm_rope", run_qk_norm_rope},
                                                {"rmsnorm", run_rmsnorm},
                                                {"rope_vision", run_rope_vision},
                                                {"row_statistics", run_row_statistics},
                                                {"sample", run_sample},
                                                {"sample_next", run_sample_next},
                                                {"score_blocks", run_score_blocks},
                                                {"softmax", run_softmax},
                                                {"transpose", run_transpose}};
  return known;
}

}  // namespace

CpuProblem::CpuProblem(const Space& space, const Problem& problem, std::uint64_t seed)
    : bound_(space, problem, shared_emulator().info().limits),
      data_(shared_emulator(), bound_, load_reference(shared_emulator(), bound_)) {
  data_.draw(seed);
}

std::vector<std::string> CpuProblem::kernels() {
  std::vector<std::string> names;
  for (const auto& [name, run] : runners()) {
    names.push_back(name);
  }
  return names;
}

TensorView CpuProblem::view(const char* name, std::initializer_list<std::int64_t> shape) const {
  for (const Argument& argument : bound_.space().arguments) {
    for (const NamedPointer& buffer : data_.buffers()) {
      if (argument.name == name && buffer.name == name) {
        const bool empty = bound_.value(argument, bound_.default_config()) == 0;
        return empty ? TensorView() : TensorView(buffer.data, bound_.type_of(argument), shape);
      }
    }
  }
  throw Error(std::string("no buffer is called ") + name);
}

void CpuProblem::check(int threads) {
  worker_pool().resize(threads);
  data_.poison_outputs();
  runners().at(bound_.problem().kernel)(*this);
  EXPECT_EQ(data_.damaged_guard(), "") << "written outside of it";
  EXPECT_EQ(data_.changed_input(), "");
  const ProblemData::Check check = data_.check_outputs();
  ASSERT_TRUE(check.passed()) << "error " << check.max_error << " at " << check.where;
}

}  // namespace pascaline::testing
