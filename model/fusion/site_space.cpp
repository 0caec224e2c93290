#include "model/fusion/site_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/hash.hpp"
#include "model/fusion/site_list.hpp"
#include "runtime/ops/block_choice.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/sparse_mask.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

struct SiteDimension {
  const char* name;
  std::int64_t example;
  bool varies = false;  // from pass to pass
  std::int64_t minimum = 1;
  std::int64_t maximum = 0;  // 0: none
};

struct SiteType {
  const char* name;
  bool of_weight = true;       // else of a cache
  const char* like = nullptr;  // where a problem does not name it, it has the type of that one
};

// What a kind of site has besides its list.
struct SiteKind {
  const char* name;
  std::vector<SiteDimension> dimensions;
  std::vector<SiteType> types;
  std::vector<const char*> kernels;
  const char* flops;
  const char* bytes;
};

// As if all keys were seen.
constexpr const char* kDecodeAttentionFlops =
    "2 * HIDDEN * (2 * HEADS + 2 * KV_HEADS) * HEAD_DIM + 4 * HEADS * HEAD_DIM * KEYS";
constexpr const char* kPromptAttentionFlops =
    "2 * ROWS * HIDDEN * (2 * HEADS + 2 * KV_HEADS) * HEAD_DIM + 4 * ROWS * HEADS * HEAD_DIM * KEYS";
constexpr const char* kAttentionBytes =
    "matrix_bytes(QKV, HEADS * HEAD_DIM, HIDDEN) + matrix_bytes(K, KV_HEADS * HEAD_DIM, HIDDEN) + matrix_bytes(V, "
    "KV_HEADS * HEAD_DIM, HIDDEN) + matrix_bytes(OUTPUT, HIDDEN, HEADS * HEAD_DIM) + 2 "
    "* KEYS * KV_HEADS * HEAD_DIM * sizeof(CACHE)";
constexpr const char* kMlpBytes =
    "matrix_bytes(GATE_UP, 2 * INTERMEDIATE, HIDDEN) + matrix_bytes(DOWN, HIDDEN, INTERMEDIATE)";

// Of queries, with those of keys and values where these are of others.
const std::vector<SiteType> kAttentionTypes{
    {"QKV"}, {"K", true, "QKV"}, {"V", true, "QKV"}, {"OUTPUT"}, {"CACHE", false}};

// Where tokens attend to some of the keys, besides the dimensions and kernels of attention to all of them.
std::vector<SiteDimension> with_choice(std::vector<SiteDimension> dimensions) {
  dimensions.insert(dimensions.end(), {{"BLOCK", 64, false, ops::SparseMask::kMinBlock, ops::SparseMask::kMaxBlock},
                                       {"WINDOW", 1024, false, 0},
                                       {"SINKS", 0, false, 0},
                                       {"STRIDE", 0, false, 0},
                                       {"PART", 0, false, 0, ops::ChooseBlocks::kAll}});
  return dimensions;
}

const std::vector<SiteKind>& site_kinds() {
  const std::vector<const char*> products{"matmul", "matmul_q", "matvec", "matvec_normed", "matvec_q", "quantize"};
  const auto with_products = [&](std::initializer_list<const char*> others) {
    std::vector<const char*> all = products;
    all.insert(all.end(), others);
    return all;
  };
  // Of one row; of several, as the dimension says.
  const auto attention_of_row = [](std::int64_t keys) {
    return std::vector<SiteDimension>{{"HIDDEN", 2048},
                                      {"HEADS", 16},
                                      {"KV_HEADS", 8},
                                      {"HEAD_DIM", 128},
                                      {"KEYS", keys, true},
                                      {"QK_NORM", 1, false, 0, 1},
                                      {"SECTION_H", 20, false, 0},
                                      {"SECTION_W", 20, false, 0}};
  };
  const auto attention_of_rows = [&](const SiteDimension& rows) {
    std::vector<SiteDimension> dimensions = attention_of_row(512);
    dimensions.insert(dimensions.begin(), rows);
    return dimensions;
  };
  const std::vector<SiteDimension> decode_attention = attention_of_row(4096);
  const SiteDimension few_rows{"ROWS", 4, true, 2, ops::kFewRows};
  const SiteDimension many_rows{"ROWS", 512, true, ops::kFewRows + 1};
  static const std::vector<SiteKind> kinds{
      {"site_decode_attention", decode_attention, kAttentionTypes,
       with_products({"rmsnorm", "qk_norm_rope", "attention_decode", "attention_decode_qkv", "attention_projected",
                      "attention_layer_q"}),
       kDecodeAttentionFlops, kAttentionBytes},
      {"site_decode_sparse_attention", with_choice(decode_attention), kAttentionTypes,
       with_products({"rmsnorm", "qk_norm_rope", "pool_blocks", "score_blocks", "choose_blocks",
                      "attention_sparse_decode", "attention_decode_qkv"}),
       kDecodeAttentionFlops, kAttentionBytes},
      {"site_decode_mlp",
       {{"HIDDEN", 2048}, {"INTERMEDIATE", 6144}},
       {{"GATE_UP"}, {"DOWN"}},
       with_products({"rmsnorm", "mlp"}),
       "6 * HIDDEN * INTERMEDIATE",
       kMlpBytes},
      {"site_head",
       {{"ROWS", 1, true}, {"HIDDEN", 2048}, {"VOCABULARY", 151936}},
       {{"HEAD"}},
       with_products({"rmsnorm"}),
       "2 * ROWS * HIDDEN * VOCABULARY",
       "matrix_bytes(HEAD, VOCABULARY, HIDDEN) + 4 * ROWS * VOCABULARY"},
      {"site_next_token",
       {{"HIDDEN", 2048}, {"VOCABULARY", 151936}},
       {{"TABLE"}},
       {"sample", "sample_next", "advance", "gather"},
       "20 * VOCABULARY",
       "8 * VOCABULARY + HIDDEN * bitsof(TABLE) / 8 + 4 * HIDDEN"},
      {"site_few_attention", attention_of_rows(few_rows), kAttentionTypes,
       with_products({"rmsnorm", "qk_norm_rope", "attention_prefill"}), kPromptAttentionFlops, kAttentionBytes},
      {"site_few_mlp",
       {few_rows, {"HIDDEN", 2048}, {"INTERMEDIATE", 6144}},
       {{"GATE_UP"}, {"DOWN"}},
       with_products({"rmsnorm", "mlp"}),
       "6 * ROWS * HIDDEN * INTERMEDIATE",
       kMlpBytes},
      {"site_prompt_attention", attention_of_rows(many_rows), kAttentionTypes,
       with_products({"rmsnorm", "row_statistics", "qk_norm_rope", "attention_prefill"}), kPromptAttentionFlops,
       kAttentionBytes},
      {"site_prompt_sparse_attention", with_choice(attention_of_rows({"ROWS", 512, true, 2})), kAttentionTypes,
       with_products({"rmsnorm", "row_statistics", "qk_norm_rope", "pool_blocks", "score_blocks", "choose_blocks",
                      "attention_sparse_prefill", "attention_prefill"}),
       kPromptAttentionFlops, kAttentionBytes},
      {"site_prompt_mlp",
       {many_rows, {"HIDDEN", 2048}, {"INTERMEDIATE", 6144}},
       {{"GATE_UP"}, {"DOWN"}},
       with_products({"rmsnorm", "row_statistics"}),
       "6 * ROWS * HIDDEN * INTERMEDIATE",
       kMlpBytes},
      {"site_vision_attention",
       {{"ROWS", 4096, true}, {"HIDDEN", 1024}, {"HEADS", 16}, {"HEAD_DIM", 64}, {"SEGMENTS", 1, true}},
       {{"QKV"}, {"PROJECTION"}},
       with_products({"layernorm", "row_statistics", "rope_vision", "attention_prefill"}),
       "8 * ROWS * HIDDEN * HEADS * HEAD_DIM + 4 * ROWS * ceil_div(ROWS, SEGMENTS) * HEADS * HEAD_DIM",
       "matrix_bytes(QKV, 3 * HEADS * HEAD_DIM, HIDDEN) + matrix_bytes(PROJECTION, HIDDEN, HEADS * HEAD_DIM) + 8 * "
       "ROWS "
       "* HIDDEN"},
      {"site_vision_mlp",
       {{"ROWS", 4096, true}, {"HIDDEN", 1024}, {"INTERMEDIATE", 4096}},
       {{"FC1"}, {"FC2"}},
       with_products({"layernorm", "row_statistics"}),
       "4 * ROWS * HIDDEN * INTERMEDIATE",
       "matrix_bytes(FC1, INTERMEDIATE, HIDDEN) + matrix_bytes(FC2, HIDDEN, INTERMEDIATE) + 8 * ROWS * HIDDEN"},
      {"site_merger",
       {{"TOKENS", 1024, true}, {"HIDDEN", 1024}, {"MERGED", 4096}, {"OUT", 2048}, {"MERGED_FIRST", 0, false, 0, 1}},
       {{"FC1"}, {"FC2"}},
       with_products({"layernorm", "row_statistics"}),
       "2 * TOKENS * MERGED * (MERGED + OUT)",
       "matrix_bytes(FC1, MERGED, MERGED) + matrix_bytes(FC2, OUT, MERGED) + 4 * TOKENS * (MERGED + OUT)"}};
  return kinds;
}

const SiteKind& kind_of(std::string_view kernel) {
  const auto& kinds = site_kinds();
  const auto found = std::ranges::find_if(kinds, [&](const SiteKind& kind) { return kind.name == kernel; });
  if (found == kinds.end()) {
    throw Error(fmt::format("'{}' is not a site of a model", kernel));
  }
  return *found;
}

// Calls `visit` with the list of that name.
template <typename Visit>
void with_list(std::string_view kernel, const Visit& visit) {
  bool found = false;
  for_each_site([&](const auto& list) {
    if (list.name == kernel) {
      found = true;
      visit(list);
    }
  });
  if (!found) {
    throw Error(fmt::format("'{}' is not a site of a model", kernel));
  }
}

// All that weights may be, or that a cache may.
ordered_json type_names(bool of_weight) {
  if (!of_weight) {
    return {"float32", "float16", "int8"};
  }
  ordered_json names = {"float32", "float16", "bfloat16", "float16x"};
  for (int value = 0; value < 256; ++value) {
    const auto type = static_cast<ElementType>(value);
    if (is_element_type(type) && is_packed_format(type)) {
      names.push_back(name_of(type));
    }
  }
  return names;
}

ordered_json to_json(const SiteDimension& dimension) {
  ordered_json object{{"name", dimension.name}, {"minimum", dimension.minimum}, {"example", dimension.example}};
  object[dimension.varies ? "varies" : "fixed"] = true;
  if (dimension.maximum > 0) {
    object["maximum"] = dimension.maximum;
  }
  return object;
}

}  // namespace

bool is_site(std::string_view kernel) noexcept {
  return std::ranges::any_of(site_kinds(), [&](const SiteKind& kind) { return kind.name == kernel; });
}

std::vector<std::string> site_kernels() {
  std::vector<std::string> names;
  for (const SiteKind& kind : site_kinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

const char* site_description(std::string_view kernel) {
  const char* what = nullptr;
  with_list(kernel, [&](const auto& list) { what = list.what; });
  return what;
}

std::vector<AlternativeFacts> alternatives_of(std::string_view kernel) {
  std::vector<AlternativeFacts> facts;
  with_list(kernel, [&](const auto& list) {
    for (const auto& alternative : list.alternatives) {
      facts.push_back({alternative.name, alternative.what, alternative.fits});
    }
  });
  return facts;
}

std::vector<std::string> kernels_of_site(std::string_view kernel) {
  const SiteKind& kind = kind_of(kernel);
  return {kind.kernels.begin(), kind.kernels.end()};
}

Space site_space(std::string_view kernel) {
  const SiteKind& kind = kind_of(kernel);
  ordered_json dimensions = ordered_json::array();
  for (const SiteDimension& dimension : kind.dimensions) {
    dimensions.push_back(to_json(dimension));
  }
  ordered_json types = ordered_json::array();
  for (const SiteType& type : kind.types) {
    ordered_json& object =
        types.emplace_back(ordered_json{{"name", type.name}, {"values", type_names(type.of_weight)}});
    if (type.like != nullptr) {
      object["like"] = type.like;
    }
  }
  ordered_json names = ordered_json::array();
  for (const AlternativeFacts& alternative : alternatives_of(kernel)) {
    names.push_back(alternative.name);
  }
  const ordered_json space{
      {"schema", 1},
      {"kernel", kind.name},
      {"description", fmt::format("How a site of a model is computed: {}.", site_description(kernel))},
      {"dimensions", dimensions},
      {"types", types},
      {"parameters", {{{"name", kAlternativeParameter}, {"values", names}, {"default", kSingle}}}},
      {"launch", {{"function", kind.name}, {"block", {1}}, {"grid", {1}}}},
      {"arguments", {{{"name", "hidden"}, {"buffer", "float32"}, {"access", "out"}, {"extent", 1}}}},
      {"reference", {{"default", true}}},
      {"tolerance", {{"float32", 1e-3}}},
      {"work", {{"flops", kind.flops}, {"bytes", kind.bytes}}}};
  return Space::parse(space.dump(1), fmt::format("{}.json", kind.name));
}

KernelSource site_source(std::string_view kernel, const std::filesystem::path& kernels) {
  const SiteKind& kind = kind_of(kernel);
  KernelSource source;
  source.file = kernels / fmt::format("{}.cu", kind.name);
  for (const char* const name : kind.kernels) {
    source.text += fmt::format("{} {}\n", name, KernelSource::load(kernel_file(kernels, name, ".cu")).hash);
  }
  source.hash = hash_hex(source.text);
  return source;
}

SiteKey site_key(const Problem& problem) {
  const SiteKind& kind = kind_of(problem.kernel);
  SiteKey key{KernelName(std::string_view(kind.name))};
  for (const SiteDimension& dimension : kind.dimensions) {
    key.add({dimension.name, problem.dimension(dimension.name)});
  }
  for (const SiteType& type : kind.types) {
    key.add({type.name, problem.type(type.name)});
  }
  if (key.named() != problem) {
    throw Error(fmt::format("{} has other dimensions than {}", problem.text(), key.named().text()));
  }
  return key;
}

Config config_of_alternative(std::string_view name) { return Config({{kAlternativeParameter, std::string(name)}}); }

std::string alternative_of(const Config& config) {
  const Value* const value = config.find(kAlternativeParameter);
  const auto* const name = value != nullptr ? std::get_if<std::string>(value) : nullptr;
  return name != nullptr ? *name : std::string();
}

bool same_but_for_sizes(const Problem& a, const Problem& b) {
  if (a.kernel != b.kernel || a.types != b.types || a.dimensions.size() != b.dimensions.size()) {
    return false;
  }
  for (const SiteDimension& dimension : kind_of(a.kernel).dimensions) {
    if (!dimension.varies && a.dimension(dimension.name) != b.dimension(dimension.name)) {
      return false;
    }
  }
  return true;
}

}  // namespace pascaline
