#include "tests/tuner/kernels/ragged_shapes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

using Sizes = RaggedShapes::Sizes;
using Draw = Sizes (*)(RaggedShapes&);

std::int64_t stride(RaggedShapes& draw, std::int64_t row) { return row + draw.pick({0, 0, 1, 8}); }

// Of a norm: the smallest changes no result that can be told, the largest changes them all.
std::int64_t epsilon(RaggedShapes& draw) { return draw.pick({1000, 10'000, 50'000'000, 1'000'000'000}); }

Sizes advance(RaggedShapes& /*draw*/) { return {}; }

Sizes matmul(RaggedShapes& draw) {
  if (draw.below(5) == 0) {  // queries, keys and values
    const std::int64_t head_dim = draw.pick({4, 12, 16, 64});
    return {{"M", draw.size(150)},       {"N", 3 * head_dim * draw.pick({1, 2, 3})},
            {"K", draw.size(150)},       {"EPILOGUE", 1},
            {"NORM", draw.pick({0, 2})}, {"HEAD_DIM", head_dim},
            {"POSITIONS", draw.size(20)}};
  }
  const std::int64_t norm = draw.pick({0, 0, 0, 1, 1, 2, 2, 3});
  return {{"M", draw.size(150)},
          {"N", draw.size(150)},
          {"K", norm == 3 ? 32 * draw.size(12) : draw.size(150)},
          {"EPILOGUE", draw.below(7)},
          {"NORM", norm},
          {"HEAD_DIM", 0},
          {"POSITIONS", 0}};
}

// Whole blocks of every format half of the time; else whole blocks of some.
Sizes matmul_q(RaggedShapes& draw) {
  const std::int64_t epilogue = draw.below(8);
  return {{"M", draw.size(150)},
          {"N", epilogue == 7 ? 64 * draw.size(4) : draw.size(150)},
          {"K", draw.pick({64, 192, 256, 256, 512, 768})},
          {"EPILOGUE", epilogue}};
}

Sizes matvec(RaggedShapes& draw) {
  return {{"M", 1 + draw.below(8)}, {"N", draw.size(150)}, {"K", draw.size(1100)}, {"EPILOGUE", draw.below(7)}};
}

Sizes matvec_normed(RaggedShapes& draw) {
  Sizes sizes = matvec(draw);
  sizes.emplace_back("EPSILON", epsilon(draw));
  return sizes;
}

// Any columns, and whole blocks, as int8 activations need them.
Sizes matvec_q(RaggedShapes& draw) {
  const std::int64_t epilogue = draw.below(8);
  return {{"M", draw.pick({1, 1, 3, 8})},
          {"N", epilogue == 7 ? 64 * draw.size(4) : draw.size(150)},
          {"K", draw.below(2) == 0 ? draw.size(1100) : draw.pick({64, 192, 256, 512, 768, 1280})},
          {"EPILOGUE", epilogue},
          {"NORM", draw.below(2)},
          {"EPSILON", epsilon(draw)}};
}

// As many rows as few items share, and as have several items a block.
Sizes mlp(RaggedShapes& draw) {
  return {{"M", draw.pick({1, 1, 2, 3, 8})},
          {"HIDDEN", draw.below(2) == 0 ? draw.size(300) : draw.pick({64, 256, 320, 1040})},
          {"INTERMEDIATE", draw.below(2) == 0 ? draw.size(300) : draw.pick({32, 256, 1032})},
          {"EPSILON", epsilon(draw)}};
}

Sizes quantize(RaggedShapes& draw) {
  return {{"ROWS", draw.size(40)},
          {"WIDTH", draw.size(2048)},
          {"COLUMNS", draw.pick({2048, 2080, 2304})},
          {"BY_ROW", draw.below(2)}};
}

// Half of the draws are any multiple of 8, half usual sizes.
std::int64_t head_size(RaggedShapes& draw) {
  return draw.below(2) == 0 ? 8 * (1 + draw.below(draw.pick({10, 32}))) : draw.pick({16, 32, 64});
}

Sizes attention(RaggedShapes& draw, std::int64_t& q_row, std::int64_t& kv_row) {
  const std::int64_t head_dim = head_size(draw);
  const std::int64_t kv_heads = draw.pick({1, 2, 3});
  const std::int64_t heads = kv_heads * draw.pick({1, 2, 3});
  q_row = heads * head_dim;
  kv_row = kv_heads * head_dim;
  return {{"HEADS", heads}, {"KV_HEADS", kv_heads}, {"HEAD_DIM", head_dim}};
}

Sizes attention_prefill(RaggedShapes& draw) {
  std::int64_t q_row = 0;
  std::int64_t kv_row = 0;
  Sizes sizes = attention(draw, q_row, kv_row);
  const std::int64_t queries = draw.size(140);
  const std::int64_t mask = draw.below(3);  // none, causal, segments
  sizes.emplace_back("QUERIES", queries);
  sizes.emplace_back("KEYS", mask == 2 ? queries : draw.size(140));
  sizes.emplace_back("CAUSAL", mask == 1 ? 1 : 0);
  sizes.emplace_back("SEGMENTS", mask == 2 ? draw.pick({2, 3, 7, 40}) : 1);
  sizes.emplace_back("Q_STRIDE", stride(draw, q_row));
  sizes.emplace_back("KV_STRIDE", stride(draw, kv_row));
  return sizes;
}

Sizes attention_decode(RaggedShapes& draw) {
  std::int64_t q_row = 0;
  std::int64_t kv_row = 0;
  Sizes sizes = attention(draw, q_row, kv_row);
  sizes.emplace_back("KEYS", draw.size(600));
  sizes.emplace_back("KV_STRIDE", stride(draw, kv_row));
  return sizes;
}

// What is seen of `keys` keys: a window with or without sinks and strided blocks, or lists. Beginnings of blocks are
// met and missed, windows may be wider than the context.
void sparse_mask(RaggedShapes& draw, Sizes& sizes, std::int64_t kv_heads, std::int64_t keys, bool tall) {
  const std::int64_t kind = draw.below(4);  // window, sinks, strided, lists
  // Tiles of queries with a list are no higher than its block.
  const std::int64_t block = kind == 3 && tall ? draw.pick({64, 128}) : draw.pick({16, 32, 64, 128});
  const std::int64_t most = (keys + block - 1) / block;
  sizes.emplace_back("BLOCK", block);
  sizes.emplace_back("LISTS", kind == 3 ? draw.pick({1, kv_heads}) : 0);
  sizes.emplace_back("WIDTH", kind == 3 ? 1 + draw.below(most) : 0);
  sizes.emplace_back("WINDOW", kind == 3 ? 0 : draw.size(300));
  sizes.emplace_back("SINKS", kind == 1 ? draw.size(100) : kind == 2 ? block * draw.below(3) : 0);
  sizes.emplace_back("STRIDE", kind == 2 ? draw.pick({1, 2, 3, 7}) : 0);
}

Sizes attention_sparse_prefill(RaggedShapes& draw) {
  std::int64_t q_row = 0;
  std::int64_t kv_row = 0;
  Sizes sizes = attention(draw, q_row, kv_row);
  const std::int64_t queries = draw.size(140);
  const std::int64_t keys = queries + draw.pick({0, 0, 1}) * draw.size(400);
  sizes.emplace_back("QUERIES", queries);
  sizes.emplace_back("KEYS", keys);
  sparse_mask(draw, sizes, sizes[1].second, keys, true);
  return sizes;
}

Sizes attention_sparse_decode(RaggedShapes& draw) {
  std::int64_t q_row = 0;
  std::int64_t kv_row = 0;
  Sizes sizes = attention(draw, q_row, kv_row);
  const std::int64_t keys = draw.size(900);
  sizes.emplace_back("KEYS", keys);
  sparse_mask(draw, sizes, sizes[1].second, keys, false);
  return sizes;
}

// Rows of a cache, of which the last were added or are queries; whole blocks and such as are not filled.
struct RowsInBlocks {
  std::int64_t last;
  std::int64_t keys;
  std::int64_t block;

  explicit RowsInBlocks(RaggedShapes& draw)
      : last(draw.size(140)), keys(last + draw.pick({0, 0, 1}) * draw.size(600)), block(draw.pick({1, 7, 16, 64})) {}
};

Sizes pool_blocks(RaggedShapes& draw) {
  const RowsInBlocks rows(draw);
  return {{"KV_HEADS", draw.pick({1, 2, 3})},
          {"HEAD_DIM", head_size(draw)},
          {"KEYS", rows.keys},
          {"NEW", rows.last},
          {"BLOCK", rows.block}};
}

Sizes score_blocks(RaggedShapes& draw) {
  const RowsInBlocks rows(draw);
  const std::int64_t kv_heads = draw.pick({1, 2, 3});
  return {{"HEADS", kv_heads * draw.pick({1, 2, 3})},
          {"KV_HEADS", kv_heads},
          {"HEAD_DIM", head_size(draw)},
          {"QUERIES", rows.last},
          {"KEYS", rows.keys},
          {"BLOCK", rows.block}};
}

Sizes choose_blocks(RaggedShapes& draw) {
  const RowsInBlocks rows(draw);
  const std::int64_t there = (rows.keys + rows.block - 1) / rows.block;
  return {{"LISTS", draw.pick({1, 2, 3})},
          {"QUERIES", rows.last},
          {"KEYS", rows.keys},
          {"BLOCK", rows.block},
          {"PART", draw.pick({1, 250'000, 500'000, 999'999, 1'000'000})},
          {"WIDTH", std::min<std::int64_t>(there, 3) + draw.below(there + 2)}};
}

Sizes attention_decode_qkv(RaggedShapes& draw) {
  std::int64_t q_row = 0;
  std::int64_t kv_row = 0;
  Sizes sizes = attention(draw, q_row, kv_row);
  const std::int64_t half = sizes.back().second / 2;  // of a head
  sizes.emplace_back("KEYS", draw.size(600));
  sizes.emplace_back("POSITIONS", draw.size(20));
  sizes.emplace_back("SECTION_H", draw.below(half + 1));
  sizes.emplace_back("SECTION_W", draw.below(half + 1));
  sizes.emplace_back("NORM", draw.below(2));
  sizes.emplace_back("EPSILON", epsilon(draw));
  return sizes;
}

Sizes attention_projected(RaggedShapes& draw) {
  Sizes sizes = attention_decode_qkv(draw);
  sizes.emplace_back("HIDDEN", draw.size(300));
  return sizes;
}

// Rows of which formats have several chunks. With two formats beside the cache's type few shapes would share code if
// all that is compiled in were drawn freely.
Sizes attention_layer(RaggedShapes& draw) {
  const std::int64_t group = draw.pick({1, 2, 2, 3});
  const std::int64_t head_dim = group == 2 ? draw.pick({16, 64, 72}) : draw.pick({32, 40});
  const std::int64_t kv_heads = draw.pick({1, 2, 3});
  return {{"HEADS", kv_heads * group},
          {"KV_HEADS", kv_heads},
          {"HEAD_DIM", head_dim},
          {"KEYS", draw.size(600)},
          {"POSITIONS", draw.size(20)},
          {"SECTION_H", draw.below(head_dim / 2 + 1)},
          {"SECTION_W", draw.below(head_dim / 2 + 1)},
          {"NORM", draw.below(2)},
          {"EPSILON", draw.pick({1000, 50'000'000})},
          {"HIDDEN", draw.below(2) == 0 ? draw.size(600) : draw.pick({64, 256, 320, 512})}};
}

Sizes norm(RaggedShapes& draw) {
  // Half of the widths are whole blocks, as int8 outputs need them.
  const std::int64_t width = draw.below(2) == 0 ? draw.size(2100) : 32 * draw.size(64);
  return {{"ROWS", draw.size(40)}, {"WIDTH", width}, {"RESIDUAL", draw.below(2)}, {"BY_ROW", draw.below(2)}};
}

Sizes rmsnorm(RaggedShapes& draw) {
  Sizes sizes = norm(draw);
  sizes.emplace_back("EPSILON", epsilon(draw));
  return sizes;
}

Sizes row_statistics(RaggedShapes& draw) {
  return {{"ROWS", draw.size(40)}, {"WIDTH", draw.size(2100)}, {"NORM", 1 + draw.below(2)}, {"EPSILON", epsilon(draw)}};
}

Sizes sample(RaggedShapes& draw) { return {{"VOCABULARY", draw.pick({1, 8}) * draw.size(5000)}}; }

Sizes sample_next(RaggedShapes& draw) {
  return {{"VOCABULARY", draw.pick({1, 8}) * draw.size(500)}, {"WIDTH", draw.size(300)}};
}

Sizes softmax(RaggedShapes& draw) { return {{"ROWS", draw.size(40)}, {"WIDTH", draw.size(600)}}; }

Sizes qk_norm_rope(RaggedShapes& draw) {
  const std::int64_t heads = draw.pick({1, 2, 3, 4});
  const std::int64_t kv_heads = draw.pick({1, 2});
  const std::int64_t head_dim = draw.pick({18, 24, 32, 72});
  const std::int64_t parts = draw.below(2) * draw.below(4);
  const std::int64_t row = (heads + 2 * kv_heads) * head_dim;
  return {{"TOKENS", draw.size(40)},
          {"HEADS", heads},
          {"KV_HEADS", kv_heads},
          {"HEAD_DIM", head_dim},
          {"POSITIONS", draw.size(20)},
          {"CACHE_ROWS", draw.size(40)},
          {"SECTION_H", draw.below(head_dim / 2 + 1)},
          {"SECTION_W", draw.below(head_dim / 2 + 1)},
          {"QKV_STRIDE", parts == 0 ? stride(draw, row) : row},
          {"NORM", draw.below(2)},
          {"EPSILON", epsilon(draw)},
          {"PARTS", parts}};
}

Sizes rope_vision(RaggedShapes& draw) {
  const std::int64_t heads = draw.pick({1, 2, 3, 4});
  const std::int64_t head_dim = draw.pick({12, 32, 40, 72});
  return {{"PATCHES", draw.size(40)},
          {"HEADS", heads},
          {"HEAD_DIM", head_dim},
          {"POSITIONS", draw.size(20)},
          {"QKV_STRIDE", stride(draw, 3 * heads * head_dim)}};
}

Sizes elementwise(RaggedShapes& draw) { return {{"COUNT", draw.size(9000)}, {"OPERATION", draw.below(6)}}; }

Sizes transpose(RaggedShapes& draw) { return {{"ROWS", draw.size(150)}, {"COLUMNS", draw.size(150)}}; }

Sizes gather(RaggedShapes& draw) {
  return {{"TOKENS", draw.size(40)}, {"WIDTH", draw.size(2100)}, {"VOCABULARY", draw.size(40)}};
}

Sizes position_embedding(RaggedShapes& draw) {
  const std::int64_t merge = draw.pick({1, 2});
  return {{"GRID_H", merge * draw.size(9)},
          {"GRID_W", merge * draw.size(9)},
          {"WIDTH", draw.size(300)},
          {"SIDE", draw.size(20)},
          {"MERGE", merge}};
}

// Kernels that are looked at where it matters most for them. Any other has its shapes drawn from its search space.
const std::map<std::string, Draw>& draws() {
  static const std::map<std::string, Draw> known{{"advance", advance},
                                                 {"attention_decode", attention_decode},
                                                 {"attention_decode_qkv", attention_decode_qkv},
                                                 {"attention_layer_q", attention_layer},
                                                 {"attention_prefill", attention_prefill},
                                                 {"attention_projected", attention_projected},
                                                 {"attention_sparse_decode", attention_sparse_decode},
                                                 {"attention_sparse_prefill", attention_sparse_prefill},
                                                 {"choose_blocks", choose_blocks},
                                                 {"elementwise", elementwise},
                                                 {"gather", gather},
                                                 {"layernorm", norm},
                                                 {"matmul", matmul},
                                                 {"matmul_q", matmul_q},
                                                 {"matvec", matvec},
                                                 {"matvec_normed", matvec_normed},
                                                 {"matvec_q", matvec_q},
                                                 {"mlp", mlp},
                                                 {"pool_blocks", pool_blocks},
                                                 {"position_embedding", position_embedding},
                                                 {"qk_norm_rope", qk_norm_rope},
                                                 {"quantize", quantize},
                                                 {"rmsnorm", rmsnorm},
                                                 {"rope_vision", rope_vision},
                                                 {"row_statistics", row_statistics},
                                                 {"sample", sample},
                                                 {"sample_next", sample_next},
                                                 {"score_blocks", score_blocks},
                                                 {"softmax", softmax},
                                                 {"transpose", transpose}};
  return known;
}

// So small that the emulated device and a naive reference are done with it soon.
bool is_small(const BoundSpace& bound) {
  constexpr std::int64_t kMaxElements = 400'000;
  constexpr double kMaxFlops = 5e7;
  const Config config = bound.default_config();
  std::int64_t elements = 0;
  for (const Argument& argument : bound.space().arguments) {
    elements += argument.kind == ArgumentKind::buffer ? bound.value(argument, config) : 0;
    if (elements > kMaxElements) {
      return false;
    }
  }
  return bound.flops() <= kMaxFlops;
}

// Largest size of a dimension, by how many there are whose sizes are free.
std::int64_t max_free_size(const Space& space) {
  static constexpr std::array<std::int64_t, 5> kMaxSizes{9000, 400, 150, 70, 40};
  const auto free = std::count_if(space.dimensions.begin(), space.dimensions.end(), [](const Dimension& dimension) {
    return !dimension.fixed && !dimension.default_value;
  });
  return kMaxSizes[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(free - 1, 0, kMaxSizes.size() - 1))];
}

}  // namespace

// From what the search space says of it: a choice, a number with a usual value (a stride, a count that follows from
// others), one that is compiled in, of which a few values do, or a free size.
std::int64_t RaggedShapes::size_of_dimension(const Space& space, std::size_t index, const Sizes& earlier) {
  constexpr std::int64_t kChoices = 16;
  const Dimension& dimension = space.dimensions[index];
  if (dimension.maximum < dimension.minimum + kChoices) {
    return dimension.minimum + below(dimension.maximum - dimension.minimum + 1);
  }
  std::int64_t drawn = 0;
  if (dimension.default_value && below(3) > 0) {
    drawn = space.default_dimension(index, earlier) + pick({0, 0, 1, 8});
  } else if (dimension.fixed) {
    drawn = pick({1, 2, 12, 16, 32, 64});
  } else if (below(4) == 0) {
    drawn = dimension.example >> below(5);  // some kernels take whole blocks of what is usual only
  } else {
    drawn = size(max_free_size(space));
  }
  return std::clamp(drawn, dimension.minimum, dimension.maximum);
}

// Half of the shapes differ from the one before in one dimension: many share code that way.
RaggedShapes::Sizes RaggedShapes::sizes_of(const Space& space) {
  const bool varied = last_.kernel == space.kernel && !space.dimensions.empty() && below(2) == 0;
  const auto redrawn = static_cast<std::size_t>(varied ? below(std::ssize(space.dimensions)) : 0);
  Sizes sizes;
  for (std::size_t i = 0; i < space.dimensions.size(); ++i) {
    const bool kept = varied && i != redrawn;
    sizes.emplace_back(space.dimensions[i].name,
                       kept ? last_.dimensions[i].second : size_of_dimension(space, i, sizes));
  }
  return sizes;
}

std::int64_t RaggedShapes::below(std::int64_t count) {
  return static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(count));
}

std::int64_t RaggedShapes::pick(std::initializer_list<std::int64_t> values) {
  return values.begin()[below(static_cast<std::int64_t>(values.size()))];
}

std::int64_t RaggedShapes::size(std::int64_t most) {
  static constexpr std::array<std::int64_t, 12> kPrimes{2, 3, 5, 7, 13, 29, 37, 61, 127, 257, 521, 1031};
  std::int64_t size = 1;
  switch (below(5)) {
    case 0:
      break;
    case 1:
      size = kPrimes[static_cast<std::size_t>(below(kPrimes.size()))];
      break;
    case 2:
      size = (std::int64_t{4} << below(8)) + below(3) - 1;
      break;
    case 3:
      size = 8 * (1 + below(most / 8 + 1));
      break;
    default:
      size = 1 + below(most);
  }
  return std::clamp<std::int64_t>(size, 1, most);
}

Problem RaggedShapes::problem(const Space& space, const RaggedKernel& kernel, const DeviceLimits& limits,
                              const Problem* like) {
  const auto known = draws().find(space.kernel);
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    Problem problem{space.kernel, known != draws().end() ? known->second(*this) : sizes_of(space), {}};
    if (like != nullptr) {
      problem.types = like->types;
    }
    for (const TypeVariable& variable : std::span(space.types).subspan(problem.types.size())) {
      const auto count = static_cast<std::int64_t>(variable.allowed.size());
      ElementType type = variable.allowed[static_cast<std::size_t>(below(count))];
      if (problem.types.empty()) {
        type = kernel.storage;
      } else if (kernel.other && std::ranges::count(variable.allowed, *kernel.other) > 0) {
        type = *kernel.other;
      }
      problem.types.emplace_back(variable.name, type);
    }
    const BoundSpace bound(space, problem, limits);
    if (!bound.why_invalid(bound.default_config()) && (known != draws().end() || is_small(bound))) {
      last_ = problem;
      return problem;
    }
  }
  throw Error("no shape was found that the default configuration of '" + space.kernel + "' is valid for");
}

std::optional<Config> RaggedShapes::config(const BoundSpace& space) {
  for (int attempt = 0; attempt < 20'000; ++attempt) {
    std::vector<std::uint16_t> indices;
    for (const Parameter& parameter : space.space().parameters) {
      indices.push_back(static_cast<std::uint16_t>(below(static_cast<std::int64_t>(parameter.values.size()))));
    }
    Config config = space.space().config_at(indices);
    if (!space.why_invalid(config)) {
      return config;
    }
  }
  return std::nullopt;
}

std::vector<RaggedKernel> RaggedShapes::kernels(const std::filesystem::path& spaces) {
  std::vector<RaggedKernel> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(spaces)) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    const Space space = Space::load(entry.path());
    for (const ElementType storage : {ElementType::float32, ElementType::float16}) {
      const bool taken = space.types.empty() || std::ranges::count(space.types.front().allowed, storage) > 0;
      if (taken) {
        kernels.push_back({space.kernel, storage});
      }
    }
    for (std::size_t i = 1; i < space.types.size(); ++i) {
      for (const ElementType type : space.types[i].allowed) {
        if (type == ElementType::int8 || is_matrix_format(type)) {
          kernels.push_back({space.kernel, ElementType::float32, type});
        }
      }
    }
  }
  std::ranges::sort(kernels, {}, &RaggedKernel::text);
  // A type that several variables may stand for is given to all of them.
  const auto again = std::unique(kernels.begin(), kernels.end(),
                                 [](const RaggedKernel& a, const RaggedKernel& b) { return a.text() == b.text(); });
  kernels.erase(again, kernels.end());
  return kernels;
}

std::vector<RaggedKernels> RaggedShapes::by_kernel(const std::filesystem::path& spaces) {
  constexpr std::size_t kMaxTogether = 6;
  std::vector<RaggedKernels> groups;
  int number = 1;
  for (const RaggedKernel& kernel : kernels(spaces)) {
    if (groups.empty() || groups.back().cases.front().name != kernel.name) {
      number = 1;
      groups.push_back({kernel.name, {}});
    } else if (groups.back().cases.size() == kMaxTogether) {
      groups.push_back({kernel.name + "_" + std::to_string(++number), {}});
    }
    groups.back().cases.push_back(kernel);
  }
  return groups;
}

}  // namespace pascaline::testing
