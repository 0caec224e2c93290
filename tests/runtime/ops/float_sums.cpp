#include "tests/runtime/ops/float_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/elements.hpp"
#include "runtime/formats/int8_activations.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kLanes = 32;
constexpr std::size_t kSlices = 24;

float sequential(std::span<const float> terms) { return std::accumulate(terms.begin(), terms.end(), 0.0F); }

float pairwise(std::span<const float> terms) {
  if (terms.size() <= 2) {
    return sequential(terms);
  }
  const std::size_t half = terms.size() / 2;
  return pairwise(terms.first(half)) + pairwise(terms.subspan(half));
}

float by_lanes(std::span<const float> terms) {
  std::vector<float> sums(kLanes, 0.0F);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    sums[i % kLanes] += terms[i];
  }
  return pairwise(sums);
}

float by_slices(std::span<const float> terms) {
  const std::size_t depth = (terms.size() + kSlices - 1) / kSlices;
  float sum = 0;
  for (std::size_t begin = 0; begin < terms.size(); begin += depth) {
    sum += sequential(terms.subspan(begin, std::min(depth, terms.size() - begin)));
  }
  return sum;
}

/// What an operation is given, in the order of the space's arguments.
struct Operands {
  const Problem& problem;
  std::span<const Values> inputs;
  FloatAdder& adder;
  std::span<Values> outputs;

  [[nodiscard]] std::size_t size(const char* name) const { return static_cast<std::size_t>(problem.dimension(name)); }
  [[nodiscard]] float epsilon() const { return static_cast<float>(problem.dimension("EPSILON")) * 1e-9F; }
  [[nodiscard]] float in(std::size_t buffer, std::size_t i) const { return static_cast<float>(inputs[buffer][i]); }
};

float finished(std::int64_t epilogue, float x, float residual) {
  switch (epilogue) {
    case 2:
      return x / (1.0F + std::exp(-2.0F * 0.79788456F * (x + 0.044715F * x * x * x)));
    case 3:
      return 0.5F * x * std::erfc(x * -0.70710678F);
    default:
      return x + residual;
  }
}

// Products of rows of float32 numbers with rows of a weight, input `weight`; `others` is the input of the bias, before
// that of the residual.
void product_of(const Operands& of, const std::vector<float>& rows, std::size_t weight, std::size_t others) {
  const std::size_t n = of.size("N");
  const std::size_t k = of.size("K");
  const std::int64_t epilogue = of.problem.dimension("EPILOGUE");
  const auto sum = [&](std::size_t row, std::size_t column) {
    std::vector<float> terms(k);
    for (std::size_t i = 0; i < k; ++i) {
      terms[i] = rows[row * k + i] * of.in(weight, column * k + i);
    }
    return of.adder.add(std::move(terms));
  };
  for (std::size_t i = 0; i < of.outputs[0].size(); ++i) {
    if (epilogue == 5) {
      const std::size_t row = i / (n / 2);
      const std::size_t column = i % (n / 2) * 2;
      const float gate = sum(row, column);
      of.outputs[0][i] = gate / (1.0F + std::exp(-gate)) * sum(row, column + 1);
    } else {
      const float bias = of.inputs[others].empty() ? 0.0F : of.in(others, i % n);
      const float residual = of.inputs[others + 1].empty() ? 0.0F : of.in(others + 1, i);
      of.outputs[0][i] = finished(epilogue, sum(i / n, i % n) + bias, residual);
    }
  }
}

void product(const Operands& of) { product_of(of, {of.inputs[0].begin(), of.inputs[0].end()}, 1, 2); }

// Of int8 activations with a scale for each 32 columns, [K / 32, M].
void product_of_rounded(const Operands& of) {
  const std::size_t m = of.size("M");
  const std::size_t k = of.size("K");
  std::vector<float> rows(m * k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = of.in(0, i) * of.in(1, i % k / kActivationBlock * m + i / k);
  }
  product_of(of, rows, 2, 3);
}

// Of activations that the kernel rounds, 32 columns together, normalised with NORM: what is rounded then are these
// times the norm's weights.
void rounded_product(const Operands& of) {
  const std::size_t k = of.size("K");
  std::vector<float> rows(of.inputs[0].begin(), of.inputs[0].end());
  std::vector<float> factors(rows.size() / k, 1.0F);
  for (std::size_t row = 0; row < factors.size() && of.problem.dimension("NORM") != 0; ++row) {
    std::vector<float> squares(k);
    for (std::size_t i = 0; i < k; ++i) {
      float& value = rows[row * k + i];
      squares[i] = value * value;
      value *= of.in(2, i);
    }
    factors[row] = 1.0F / std::sqrt(of.adder.add_right(squares) / static_cast<float>(k) + of.epsilon());
  }
  std::array<std::int8_t, kActivationBlock> integers{};
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t columns = std::min(std::size_t{kActivationBlock}, k - at % k);
    const std::span<float> block(rows.data() + at, columns);
    const Int8Scale scale = int8_scale(block);
    round_to_int8(block, scale.inverse, integers.data());
    std::transform(integers.begin(), integers.begin() + static_cast<std::ptrdiff_t>(columns), block.begin(),
                   [&](std::int8_t integer) { return factors[at / k] * scale.scale * static_cast<float>(integer); });
    at += columns;
  }
  product_of(of, rows, 3, 4);
}

// Of rows that are normalised first.
void normed_product(const Operands& of) {
  const std::size_t k = of.size("K");
  std::vector<float> rows(of.inputs[0].begin(), of.inputs[0].end());
  for (std::size_t row = 0; row < rows.size(); row += k) {
    std::vector<float> squares(k);
    for (std::size_t i = 0; i < k; ++i) {
      squares[i] = rows[row + i] * rows[row + i];
    }
    const float factor = 1.0F / std::sqrt(of.adder.add_right(squares) / static_cast<float>(k) + of.epsilon());
    for (std::size_t i = 0; i < k; ++i) {
      rows[row + i] *= factor * of.in(1, i);
    }
  }
  product_of(of, rows, 2, 3);
}

// Blocks of 32 columns of a row as a product with a packed weight takes them.
void round_row(std::span<float> row) {
  std::array<std::int8_t, kActivationBlock> integers{};
  for (std::size_t at = 0; at < row.size(); at += kActivationBlock) {
    const std::span<float> block = row.subspan(at, std::min(std::size_t{kActivationBlock}, row.size() - at));
    const Int8Scale scale = int8_scale(block);
    round_to_int8(block, scale.inverse, integers.data());
    std::transform(integers.begin(), integers.begin() + std::ssize(block), block.begin(),
                   [&](std::int8_t integer) { return scale.scale * static_cast<float>(integer); });
  }
}

// A feed-forward block of one row; what is mistaken is the product back.
void feed_forward(const Operands& of) {
  const std::size_t hidden = of.size("HIDDEN");
  const std::size_t intermediate = of.size("INTERMEDIATE");
  const bool rounds = is_packed_format(of.problem.type("WEIGHT"));
  std::vector<float> row(hidden);
  std::vector<float> squares(hidden);
  for (std::size_t i = 0; i < hidden; ++i) {
    squares[i] = of.in(0, i) * of.in(0, i);
    row[i] = of.in(0, i) * of.in(1, i);
  }
  const float factor = 1.0F / std::sqrt(of.adder.add_right(squares) / static_cast<float>(hidden) + of.epsilon());
  if (rounds) {
    round_row(row);
  }
  const auto terms = [&](const std::vector<float>& with, std::size_t weight, std::size_t of_row) {
    std::vector<float> products(with.size());
    for (std::size_t i = 0; i < with.size(); ++i) {
      products[i] = with[i] * of.in(weight, of_row * with.size() + i);
    }
    return products;
  };
  std::vector<float> gated(intermediate);
  for (std::size_t i = 0; i < intermediate; ++i) {
    const float gate = of.adder.add_right(terms(row, 2, 2 * i)) * factor;
    gated[i] = gate / (1.0F + std::exp(-gate)) * of.adder.add_right(terms(row, 2, 2 * i + 1)) * factor;
  }
  if (rounds) {
    round_row(gated);
  }
  for (std::size_t i = 0; i < hidden; ++i) {
    of.outputs[0][i] = of.in(0, i) + of.adder.add(terms(gated, 3, i));
  }
}

// One head for one query over all keys.
void attend(const Operands& of, std::size_t query, double* out) {
  const std::size_t keys = of.size("KEYS");
  const std::size_t head_dim = of.size("HEAD_DIM");
  std::vector<float> weights(keys);
  std::vector<float> terms(head_dim);
  for (std::size_t key = 0; key < keys; ++key) {
    for (std::size_t d = 0; d < head_dim; ++d) {
      terms[d] = of.in(0, query * head_dim + d) * of.in(1, key * head_dim + d);
    }
    weights[key] = of.adder.add_right(terms) / std::sqrt(static_cast<float>(head_dim));
  }
  const float most = *std::max_element(weights.begin(), weights.end());
  for (float& weight : weights) {
    weight = std::exp(weight - most);
  }
  for (std::size_t d = 0; d < head_dim; ++d) {
    std::vector<float> parts(keys);
    for (std::size_t key = 0; key < keys; ++key) {
      parts[key] = weights[key] * of.in(2, key * head_dim + d);
    }
    out[d] = of.adder.add(std::move(parts));
  }
  const float sum = of.adder.add(weights);
  std::for_each_n(out, head_dim, [&](double& value) { value = static_cast<float>(value) / sum; });
}

void attention(const Operands& of) {
  const std::size_t head_dim = of.size("HEAD_DIM");
  for (std::size_t query = 0; query < of.outputs[0].size() / head_dim; ++query) {
    attend(of, query, of.outputs[0].data() + query * head_dim);
  }
}

// 1 / sqrt(mean square + epsilon) of float32 numbers.
float inverse_root(FloatAdder& adder, std::vector<float> values, float epsilon) {
  const auto count = static_cast<float>(values.size());
  for (float& value : values) {
    value *= value;
  }
  return 1.0F / std::sqrt(adder.add(std::move(values)) / count + epsilon);
}

std::vector<float> row_of(const Values& buffer, std::size_t row, std::size_t width) {
  const double* first = buffer.data() + row * width;
  return {first, first + width};
}

void rmsnorm(const Operands& of) {
  const std::size_t width = of.size("WIDTH");
  for (std::size_t row = 0; row < of.size("ROWS"); ++row) {
    const std::vector<float> x = row_of(of.inputs[0], row, width);
    const float factor = inverse_root(of.adder, x, of.epsilon());
    for (std::size_t i = 0; i < width; ++i) {
      of.outputs[0][row * width + i] = x[i] * (factor * of.in(1, i));
    }
  }
}

void layernorm(const Operands& of) {
  const std::size_t width = of.size("WIDTH");
  for (std::size_t row = 0; row < of.size("ROWS"); ++row) {
    std::vector<float> x = row_of(of.inputs[0], row, width);
    const float mean = of.adder.add(x) / static_cast<float>(width);
    for (float& value : x) {
      value -= mean;
    }
    const float factor = inverse_root(of.adder, x, 1e-6F);
    for (std::size_t i = 0; i < width; ++i) {
      of.outputs[0][row * width + i] = x[i] * factor * of.in(1, i) + of.in(2, i);
    }
  }
}

void softmax(const Operands& of) {
  const std::size_t width = of.size("WIDTH");
  for (std::size_t row = 0; row < of.size("ROWS"); ++row) {
    std::vector<float> x = row_of(of.inputs[0], row, width);
    const float most = *std::max_element(x.begin(), x.end());
    for (float& value : x) {
      value = std::exp(value - most);
    }
    const float sum = of.adder.add(x);
    for (std::size_t i = 0; i < width; ++i) {
      of.outputs[0][row * width + i] = x[i] / sum;
    }
  }
}

// One token at one position: heads of queries, then one of keys and one of values.
void qk_norm_rope(const Operands& of) {
  const std::size_t head_dim = of.size("HEAD_DIM");
  const std::size_t half = head_dim / 2;
  const std::size_t heads = of.size("HEADS");
  for (std::size_t head = 0; head <= heads; ++head) {
    std::vector<float> x = row_of(of.inputs[0], head, head_dim);
    const float factor = inverse_root(of.adder, x, of.epsilon());
    double* out = head < heads ? of.outputs[4].data() + head * head_dim : of.outputs[0].data();
    for (std::size_t i = 0; i < head_dim; ++i) {
      x[i] *= factor * of.in(head < heads ? 1 : 2, i);
    }
    for (std::size_t i = 0; i < half; ++i) {
      out[i] = x[i] * of.in(3, i) - x[i + half] * of.in(4, i);
      out[i + half] = x[i + half] * of.in(3, i) + x[i] * of.in(4, i);
    }
  }
  std::copy_n(of.inputs[0].data() + (heads + 1) * head_dim, head_dim, of.outputs[1].data());
}

// The same of one head of each, then attention of the query to all keys, the token's the last of them.
void attention_of_token(const Operands& of) {
  const std::size_t head_dim = of.size("HEAD_DIM");
  std::vector<Values> token{Values(head_dim), Values(head_dim), {}, {}, Values(head_dim)};
  qk_norm_rope({of.problem, of.inputs, of.adder, token});
  const auto with_row = [&](const Values& cache, const Values& row) {
    Values rows = cache;
    std::copy(row.begin(), row.end(), rows.end() - static_cast<std::ptrdiff_t>(head_dim));
    return rows;
  };
  of.outputs[0] = with_row(of.inputs[7], token[0]);
  of.outputs[1] = with_row(of.inputs[8], token[1]);
  const std::vector<Values> operands{token[4], of.outputs[0], of.outputs[1]};
  attention({of.problem, operands, of.adder, of.outputs.subspan(4)});
}

// That, and the rows of a weight times what it gives.
void projected_token(const Operands& of) {
  const std::size_t width = of.size("HEADS") * of.size("HEAD_DIM");
  std::vector<Values> token(6);
  token[4].resize(width);
  attention_of_token({of.problem, of.inputs, of.adder, token});
  std::move(token.begin(), token.begin() + 4, of.outputs.begin());
  std::vector<float> attended(token[4].begin(), token[4].end());
  if (is_packed_format(of.problem.type("WEIGHT"))) {
    round_row(attended);
  }
  for (std::size_t row = 0; row < of.outputs[4].size(); ++row) {
    std::vector<float> terms(width);
    for (std::size_t i = 0; i < width; ++i) {
      terms[i] = attended[i] * of.in(12, row * width + i);
    }
    of.outputs[4][row] = of.in(11, row) + of.adder.add(std::move(terms));
  }
}

// The row normalised and multiplied first, which gives queries, keys and values; that projection's weight is input 13.
void layer_of_token(const Operands& of) {
  const std::size_t hidden = of.size("HIDDEN");
  std::vector<float> row(hidden);
  std::vector<float> squares(hidden);
  for (std::size_t i = 0; i < hidden; ++i) {
    squares[i] = of.in(0, i) * of.in(0, i);
    row[i] = of.in(0, i) * of.in(1, i);
  }
  const float factor = 1.0F / std::sqrt(of.adder.add_right(squares) / static_cast<float>(hidden) + of.epsilon());
  round_row(row);
  Values token(of.inputs[2].size() / hidden);
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::vector<float> terms(hidden);
    for (std::size_t k = 0; k < hidden; ++k) {
      terms[k] = row[k] * of.in(2, i * hidden + k);
    }
    token[i] = of.adder.add_right(terms) * factor;
  }
  std::vector<Values> left{std::move(token)};
  left.insert(left.end(), of.inputs.begin() + 3, of.inputs.begin() + 13);
  left.push_back(of.inputs[0]);
  left.push_back(of.inputs[13]);
  projected_token({of.problem, left, of.adder, of.outputs});
}

using Compute = void (*)(const Operands&);

const std::map<std::string, Compute>& computations() {
  static const std::map<std::string, Compute> known{{"attention_decode", attention},
                                                    {"attention_decode_qkv", attention_of_token},
                                                    {"attention_layer_q", layer_of_token},
                                                    {"attention_prefill", attention},
                                                    {"attention_projected", projected_token},
                                                    {"attention_sparse_decode", attention},
                                                    {"attention_sparse_prefill", attention},
                                                    {"layernorm", layernorm},
                                                    {"matmul", product},
                                                    {"matmul_q", product_of_rounded},
                                                    {"matvec", product},
                                                    {"matvec_normed", normed_product},
                                                    {"matvec_q", rounded_product},
                                                    {"mlp", feed_forward},
                                                    {"qk_norm_rope", qk_norm_rope},
                                                    {"rmsnorm", rmsnorm},
                                                    {"softmax", softmax}};
  return known;
}

double rounded(ElementType type, double value) {
  return type == ElementType::float16 ? float_from_half(half_from_float(static_cast<float>(value)))
                                      : static_cast<float>(value);
}

}  // namespace

float FloatAdder::add(std::vector<float> terms) {
  if (sums_++ == negated_) {
    std::vector<std::size_t> places(terms.size());
    std::iota(places.begin(), places.end(), 0U);
    const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
    std::nth_element(places.begin(), middle, places.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(terms[a]) < std::abs(terms[b]); });
    terms[*middle] = -terms[*middle];
  }
  std::fill_n(terms.rbegin(), std::min(left_out_, terms.size()), 0.0F);
  return add_right(terms);
}

float FloatAdder::add_right(std::span<const float> terms) const {
  switch (order_) {
    case Order::pairwise:
      return pairwise(terms);
    case Order::lanes:
      return by_lanes(terms);
    case Order::slices:
      return by_slices(terms);
    default:
      return sequential(terms);
  }
}

std::vector<std::string> summing_kernels() {
  std::vector<std::string> names;
  for (const auto& [name, compute] : computations()) {
    names.push_back(name);
  }
  return names;
}

void compute_in_float(const BoundSpace& space, std::span<const Values> inputs, FloatAdder& adder,
                      std::span<Values> outputs) {
  computations().at(space.space().kernel)({space.problem(), inputs, adder, outputs});
  std::size_t next = 0;
  for (const Argument& argument : space.space().arguments) {
    if (is_output(argument)) {
      for (double& value : outputs[next]) {
        value = rounded(space.type_of(argument), value);
      }
      ++next;
    }
  }
}

}  // namespace pascaline::testing
