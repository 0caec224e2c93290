#include "model/fusion/site_steps.hpp"

#include <algorithm>

#include "model/tensor_memory.hpp"
#include "runtime/ops/mlp.hpp"

namespace pascaline {
namespace {

// Every block of threads normalises for itself. For a single row that takes no longer than it waits for its first
// weights, but many blocks do it in turn: from so many rows of a weight on it takes longer than a launch
// (docs/results.md).
constexpr std::int64_t kMaxNormedRows = 32'768;

// Types of the weights of queries, keys and values.
constexpr std::array kProjected{"QKV", "K", "V"};

// A row's statistics take less than the row.
template <typename Norm>
TensorView statistics_view(const Norm& norm, ops::RowNorm kind) {
  return {norm.y.data, ElementType::float32, {static_cast<std::int64_t>(kind), norm.x.shape[0]}};
}

// A product that normalises rows whose statistics are known.
void run_normalising(LinearLayers& linear, const ops::RowStatistics& rows, const TensorView& weight,
                     const TensorView& bias, const ops::Matmul& layer) {
  linear.executor().run(ops::NormalisingMatmul{.a = reshaped(rows.x, {layer.a.shape[0], layer.a.shape[1]}),
                                               .norm = weight,
                                               .norm_bias = bias,
                                               .statistics = rows.statistics,
                                               .b = layer.b,
                                               .c = layer.c,
                                               .bias = layer.bias,
                                               .residual = layer.residual,
                                               .epilogue = layer.epilogue});
}

// Which parts the projection's result has.
ops::QkvParts parts_of(const AttentionSite& site) {
  if (site.rows() == 1) {
    return ops::QkvParts::joined;
  }
  const std::int64_t queries = site.q.shape[1] * site.q.shape[2];
  int parts = 0;
  std::int64_t end = 0;
  for (const TensorView& part : site.qkv_weight.all()) {
    parts |= static_cast<int>(end == 0         ? ops::QkvParts::joined
                              : end == queries ? ops::QkvParts::queries_apart
                                               : ops::QkvParts::values_apart);
    end += part.shape[0];
  }
  return static_cast<ops::QkvParts>(parts);
}

}  // namespace

bool can_normalise(ElementType weight, std::int64_t rows) noexcept {
  return !is_packed_format(weight) && rows > ops::kFewRows;
}

double more_for_normalising(const SiteKey& /*key*/) { return 0.5; }

ops::RowStatistics statistics_of(const ops::Rmsnorm& norm) {
  return {.x = norm.x,
          .statistics = statistics_view(norm, ops::RowNorm::rms),
          .norm = ops::RowNorm::rms,
          .epsilon = norm.epsilon};
}

ops::RowStatistics statistics_of(const ops::Layernorm& norm) {
  return {.x = norm.x, .statistics = statistics_view(norm, ops::RowNorm::layer), .norm = ops::RowNorm::layer};
}

void run_normalising(LinearLayers& linear, const ops::Rmsnorm& norm, const ops::Matmul& layer) {
  const ops::RowStatistics rows = statistics_of(norm);
  linear.executor().run(rows);
  run_normalising(linear, rows, norm.weight, {}, layer);
}

void run_normalising(LinearLayers& linear, const ops::Layernorm& norm, const ops::Matmul& layer) {
  const ops::RowStatistics rows = statistics_of(norm);
  linear.executor().run(rows);
  run_normalising(linear, rows, norm.weight, norm.bias, layer);
}

ops::Rmsnorm input_norm_of(const AttentionSite& site) {
  return {.x = site.hidden, .weight = site.input_norm, .y = site.input, .epsilon = site.epsilon};
}

PartProducts projection_of(const AttentionSite& site) {
  PartProducts parts;
  auto* to = static_cast<std::byte*>(site.qkv.data);
  for (const TensorView& weight : site.qkv_weight.all()) {
    const TensorView result(to, site.qkv.type, {site.rows(), weight.shape[0]});
    parts.products[parts.count++] = {.a = site.input, .b = weight, .c = result};
    to += bytes_of(result);
  }
  return parts;
}

void project(LinearLayers& linear, const AttentionSite& site) {
  const PartProducts parts = projection_of(site);
  linear.run_normed(input_norm_of(site), parts.all());
}

void project_normalising_row(LinearLayers& linear, const AttentionSite& site) {
  const PartProducts parts = projection_of(site);
  for (const ops::Matmul& part : parts.all()) {
    linear.executor().run(joined(input_norm_of(site), part));
  }
}

void project_normalising(LinearLayers& linear, const AttentionSite& site) {
  const ops::RowStatistics rows = statistics_of(input_norm_of(site));
  linear.executor().run(rows);
  const PartProducts parts = projection_of(site);
  for (const ops::Matmul& part : parts.all()) {
    run_normalising(linear, rows, site.input_norm, {}, part);
  }
}

ops::Matmul output_of(const AttentionSite& site, const TensorView& attended) {
  const auto& heads = site.q.shape;
  return {.a = reshaped(attended, {heads[0], heads[1] * heads[2]}),
          .b = site.output,
          .c = site.hidden,
          .residual = site.hidden,
          .epilogue = ops::Epilogue::residual};
}

ops::QkNormRope rotation_of(const AttentionSite& site) {
  return {site.token_heads(), site.qkv, site.slots, site.q, parts_of(site)};
}

ops::AttentionPrefill prompt_attention_of(const AttentionSite& site) {
  const std::int64_t length = site.keys();
  const bool scaled = ops::is_given(site.k_scales);
  return {.q = site.q,
          .k = rows_of(site.k_cache, 0, length),
          .v = rows_of(site.v_cache, 0, length),
          .out = site.attended,
          .causal = true,
          .k_scales = scaled ? rows_of(site.k_scales, 0, length) : site.k_scales,
          .v_scales = scaled ? rows_of(site.v_scales, 0, length) : site.v_scales};
}

ops::AttentionDecodeQkv rotated_attention_of(const AttentionSite& site, const ops::QuantizedRows& to) {
  return {site.token_heads(), site.length, reshaped(site.qkv, {site.qkv.shape[1], site.qkv.shape[2]}), to.values,
          to.scales};
}

bool can_normalise_row(ElementType weight, std::int64_t columns) noexcept {
  return !is_packed_format(weight) ||
         (weight != ElementType::int8_row && ops::filled_columns(weight, columns) == columns);
}

// Packed weights have their rows rounded by the product in any case; a product of floats would read them once for the
// norm alone, which takes about as long as the launch that it saves.
double more_for_norm(ElementType weight, std::int64_t weight_rows) noexcept {
  return weight_rows > kMaxNormedRows ? 2 : is_packed_format(weight) ? 0 : 1;
}

ops::NormedMatmul joined(const ops::Rmsnorm& norm, const ops::Matmul& layer) {
  return {.a = norm.x,
          .norm = norm.weight,
          .b = layer.b,
          .c = layer.c,
          .bias = layer.bias,
          .residual = layer.residual,
          .epilogue = layer.epilogue,
          .epsilon = norm.epsilon};
}

bool normalises_qkv(const SiteKey& key) {
  const std::int64_t hidden = dimension_of(key, "HIDDEN");
  return std::ranges::all_of(kProjected,
                             [&](const char* part) { return can_normalise_row(type_of(key, part), hidden); });
}

double more_for_qkv(const SiteKey& key) {
  return more_for_norm(type_of(key, "QKV"), (dimension_of(key, "HEADS") + 2 * dimension_of(key, "KV_HEADS")) *
                                                dimension_of(key, "HEAD_DIM"));
}

bool normalises_prompt_qkv(const SiteKey& key) {
  const std::int64_t rows = dimension_of(key, "ROWS");
  return std::ranges::all_of(kProjected, [&](const char* part) { return can_normalise(type_of(key, part), rows); });
}

void single_mlp(LinearLayers& linear, const MlpSite& site) {
  linear.run_gated(post_norm_of(site), gate_up_of(site), down_of(site));
}

void normed_mlp(LinearLayers& linear, const MlpSite& site) {
  const ops::Matmul down = down_of(site);
  ops::NormedMatmul gate_up = joined(post_norm_of(site), gate_up_of(site));
  if (!is_packed_format(gate_up.b.type) || !linear.takes_rounded_blocks(down)) {
    linear.executor().run(gate_up);
    linear.run(down);
    return;
  }
  const ops::QuantizedRows gated = linear.next_rows_for(down);
  gate_up.c = {};
  gate_up.rounded = gated;
  gate_up.epilogue = ops::Epilogue::swiglu_int8;
  linear.executor().run(gate_up);
  linear.run_rounded(down, gated);
}

bool normalises_gate_up(const SiteKey& key) {
  return can_normalise_row(type_of(key, "GATE_UP"), dimension_of(key, "HIDDEN"));
}

void whole_mlp(LinearLayers& linear, const MlpSite& site) {
  linear.executor().run(ops::Mlp{.x = site.hidden,
                                 .norm = site.post_norm,
                                 .gate_up = site.gate_up,
                                 .down = site.down,
                                 .c = site.hidden,
                                 .epsilon = site.epsilon});
}

bool is_whole(const SiteKey& key) { return ops::Mlp::takes(type_of(key, "GATE_UP"), type_of(key, "DOWN")); }

ops::Rmsnorm post_norm_of(const MlpSite& site) {
  return {.x = site.hidden, .weight = site.post_norm, .y = site.input, .epsilon = site.epsilon};
}

ops::Matmul gate_up_of(const MlpSite& site) {
  return {.a = site.input, .b = site.gate_up, .c = site.gated, .epilogue = ops::Epilogue::swiglu};
}

ops::Matmul down_of(const MlpSite& site) {
  return {
      .a = site.gated, .b = site.down, .c = site.hidden, .residual = site.hidden, .epilogue = ops::Epilogue::residual};
}

}  // namespace pascaline
