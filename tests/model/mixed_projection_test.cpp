// Queries, keys and values that a file has in several types, as Q4_K_M has in half of its layers: each is kept as it is
// stored, and logits are those of the file's numbers.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/gguf/gguf_weights.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/model.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/memory/unbacked_memory.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/checkpoint/gguf_builder.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

constexpr std::size_t kMixedHidden = 256;
constexpr std::size_t kMixedHeads = 4;
constexpr std::size_t kMixedKvHeads = 2;
constexpr std::size_t kMixedHeadDim = 64;
constexpr std::size_t kMixedIntermediate = 256;
constexpr std::size_t kMixedVocabulary = 96;
constexpr double kMixedEpsilon = 1e-6;
constexpr double kMixedTheta = 1e4;

/// What a file has for queries, keys and values.
struct ProjectionTypes {
  const char* name;
  std::array<GgufType, 3> types;
  std::size_t parts;  ///< that they are kept as
};

std::size_t projection_of_name(const std::string& name) {
  const std::array names{"q_proj", "k_proj", "v_proj"};
  return static_cast<std::size_t>(
      std::find_if(names.begin(), names.end(), [&](const char* each) { return name.find(each) != std::string::npos; }) -
      names.begin());
}

ElementType kept_type_of(GgufType type) {
  switch (type) {
    case GgufType::F32:
      return ElementType::float32;
    case GgufType::F16:
      return ElementType::float16;
    case GgufType::Q8_0:
      return ElementType::q8_0;
    case GgufType::Q4_K:
      return ElementType::q4_k;
    default:
      return ElementType::q6_k;
  }
}

double drawn_value(std::size_t tensor, std::size_t i) {
  std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15U + tensor * 0xc2b2ae3d27d4eb4fU;
  bits = (bits ^ (bits >> 29U)) * 0xbf58476d1ce4e5b9U;
  bits ^= bits >> 32U;
  return static_cast<double>(bits % 20'001) / 10'000 - 1;
}

// Its blocks of 32 have the largest magnitude 1 and no value whose 127-fold is near the middle of two integers, so that
// it does not matter to which side the last bit of a normalised row is rounded.
float embedded_value(std::size_t i) {
  constexpr std::array<float, 7> kValues{0.75F, -0.25F, 0.375F, -0.625F, 0.125F, -0.375F, 0.25F};
  return i % 32 == 5 ? (i / 32 % 2 == 0 ? 1.0F : -1.0F)
                     : kValues[static_cast<std::size_t>((drawn_value(77, i) + 1) * 3.4999)];
}

std::string tensor_bytes(GgufType type, const std::vector<float>& values, std::size_t width) {
  const ElementType kept = kept_type_of(type);
  if (!is_matrix_format(kept)) {
    std::string bytes(values.size() * size_of(kept), '\0');
    EXPECT_FALSE(convert_weights(StoredType::F32, std::as_bytes(std::span(values)), kept,
                                 std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }
  const std::size_t row_bytes = file_row_bytes(kept, static_cast<std::int64_t>(width));
  std::string bytes(values.size() / width * row_bytes, '\0');
  for (std::size_t row = 0; row * width < values.size(); ++row) {
    EXPECT_FALSE(quantize_row(kept, std::span(values).subspan(row * width, width),
                              std::as_writable_bytes(std::span(bytes)).subspan(row * row_bytes, row_bytes)));
  }
  return bytes;
}

/// One layer of the form of Qwen3 in float64, of the numbers that a file has. Rows are rounded to int8 where what they
/// are multiplied by is in blocks.
class ReferenceModel {
 public:
  ReferenceModel(const WeightSource& source, const ProjectionTypes& types) : types_(types) {
    for (const TensorSpec& tensor : source.tensors()) {
      std::vector<float>& values = tensors_[tensor.name];
      values.resize(static_cast<std::size_t>(tensor.elements()));
      source.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
    }
  }

  /// Those after the last token.
  [[nodiscard]] Doubles logits(const Tokens& tokens) const {
    std::vector<Doubles> keys;
    std::vector<Doubles> values;
    Doubles hidden;
    for (std::size_t position = 0; position < tokens.size(); ++position) {
      const std::vector<float>& table = tensors_.at("model.embed_tokens.weight");
      const auto begin = table.begin() + tokens[position] * static_cast<std::ptrdiff_t>(kMixedHidden);
      hidden.assign(begin, begin + static_cast<std::ptrdiff_t>(kMixedHidden));
      const Doubles input = normed(hidden, "input_layernorm");
      Doubles query = turned(projected(input, 0), "self_attn.q_norm", position);
      keys.push_back(turned(projected(input, 1), "self_attn.k_norm", position));
      values.push_back(projected(input, 2));
      add(hidden, product("self_attn.o_proj", attended(query, keys, values)));
      const Doubles fed = normed(hidden, "post_attention_layernorm");
      Doubles gate = product("mlp.gate_proj", fed);
      const Doubles up = product("mlp.up_proj", fed);
      for (std::size_t i = 0; i < gate.size(); ++i) {
        gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      }
      add(hidden, product("mlp.down_proj", gate));
    }
    return multiplied(tensors_.at("model.embed_tokens.weight"), scaled(hidden, tensors_.at("model.norm.weight")));
  }

 private:
  [[nodiscard]] const std::vector<float>& of_layer(const std::string& name) const {
    return tensors_.at("model.layers.0." + name + ".weight");
  }
  static Doubles scaled(const Doubles& row, const std::vector<float>& weight) {
    double squares = 0;
    for (const double value : row) {
      squares += value * value;
    }
    const double factor = 1 / std::sqrt(squares / static_cast<double>(row.size()) + kMixedEpsilon);
    Doubles result(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      result[i] = row[i] * factor * double{weight[i]};
    }
    return result;
  }
  [[nodiscard]] Doubles normed(const Doubles& row, const std::string& name) const {
    return scaled(row, of_layer(name));
  }
  static Doubles multiplied(const std::vector<float>& weight, const Doubles& row) {
    Doubles result(weight.size() / row.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      for (std::size_t k = 0; k < row.size(); ++k) {
        result[i] += double{weight[i * row.size() + k]} * row[k];
      }
    }
    return result;
  }
  [[nodiscard]] Doubles product(const std::string& name, const Doubles& row) const {
    return multiplied(of_layer(name), row);
  }
  [[nodiscard]] Doubles projected(const Doubles& row, std::size_t which) const {
    const std::array names{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
    Doubles input = row;
    for (std::size_t first = 0; is_packed_format(kept_type_of(types_.types[which])) && first < row.size();
         first += 32) {
      double largest = 0;
      for (std::size_t i = first; i < first + 32; ++i) {
        largest = std::max(largest, std::abs(row[i]));
      }
      for (std::size_t i = first; i < first + 32; ++i) {
        input[i] = std::nearbyint(row[i] / (largest / 127)) * (largest / 127);
      }
    }
    return product(names[which], input);
  }
  // Heads that are normalised and rotated.
  [[nodiscard]] Doubles turned(const Doubles& row, const std::string& norm, std::size_t position) const {
    Doubles result;
    for (std::size_t head = 0; head < row.size(); head += kMixedHeadDim) {
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(head);
      const Doubles even = normed(Doubles(begin, begin + static_cast<std::ptrdiff_t>(kMixedHeadDim)), norm);
      result.resize(head + kMixedHeadDim);
      for (std::size_t j = 0; j < kMixedHeadDim / 2; ++j) {
        const double angle = static_cast<double>(position) *
                             std::pow(kMixedTheta, -2.0 * static_cast<double>(j) / static_cast<double>(kMixedHeadDim));
        const double low = even[j];
        const double high = even[j + kMixedHeadDim / 2];
        result[head + j] = low * std::cos(angle) - high * std::sin(angle);
        result[head + j + kMixedHeadDim / 2] = high * std::cos(angle) + low * std::sin(angle);
      }
    }
    return result;
  }
  static Doubles attended(const Doubles& query, const std::vector<Doubles>& keys, const std::vector<Doubles>& values) {
    Doubles result(kMixedHeads * kMixedHeadDim);
    for (std::size_t head = 0; head < kMixedHeads; ++head) {
      const std::size_t shared = head / (kMixedHeads / kMixedKvHeads) * kMixedHeadDim;
      double sum = 0;
      for (std::size_t key = 0; key < keys.size(); ++key) {
        double score = 0;
        for (std::size_t i = 0; i < kMixedHeadDim; ++i) {
          score += query[head * kMixedHeadDim + i] * keys[key][shared + i];
        }
        const double weight = std::exp(score / std::sqrt(static_cast<double>(kMixedHeadDim)));
        sum += weight;
        for (std::size_t i = 0; i < kMixedHeadDim; ++i) {
          result[head * kMixedHeadDim + i] += weight * values[key][shared + i];
        }
      }
      for (std::size_t i = 0; i < kMixedHeadDim; ++i) {
        result[head * kMixedHeadDim + i] /= sum;
      }
    }
    return result;
  }
  static void add(Doubles& to, const Doubles& row) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] += row[i];
    }
  }

  ProjectionTypes types_;
  std::map<std::string, std::vector<float>> tensors_;
};

class MixedProjectionTest : public ::testing::TestWithParam<ProjectionTypes> {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "mixed.gguf";
  std::uint64_t matrix_bytes_ = 0;  // of the file
  std::uint64_t vector_bytes_ = 0;
  std::map<std::string, std::string> bytes_;  // of its tensors, by their official names

  void SetUp() override { write(1); }

  void write(std::uint32_t layers) {
    matrix_bytes_ = vector_bytes_ = 0;
    GgufBuilder file;
    file.word("general.architecture", "qwen3")
        .integer("qwen3.embedding_length", kMixedHidden)
        .integer("qwen3.block_count", layers)
        .integer("qwen3.attention.head_count", kMixedHeads)
        .integer("qwen3.attention.head_count_kv", kMixedKvHeads)
        .integer("qwen3.attention.key_length", kMixedHeadDim)
        .integer("qwen3.attention.value_length", kMixedHeadDim)
        .integer("qwen3.feed_forward_length", kMixedIntermediate)
        .integer("qwen3.context_length", 128)
        .real("qwen3.rope.freq_base", static_cast<float>(kMixedTheta))
        .real("qwen3.attention.layer_norm_rms_epsilon", static_cast<float>(kMixedEpsilon))
        .integer("tokenizer.ggml.eos_token_id", 3);
    ModelConfig config;
    config.family = ModelFamily::qwen3;
    config.text.hidden = kMixedHidden;
    config.text.layers = layers;
    config.text.heads = kMixedHeads;
    config.text.kv_heads = kMixedKvHeads;
    config.text.head_dim = kMixedHeadDim;
    config.text.intermediate = kMixedIntermediate;
    config.text.vocab = kMixedVocabulary;
    config.text.tied = true;
    std::size_t number = 0;
    for (const TensorSpec& tensor : required_tensors(config)) {
      const std::size_t which = projection_of_name(tensor.name);
      const GgufType type = which < 3 ? GetParam().types.at(which) : GgufType::F32;
      std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = tensor.kind == TensorKind::norm ? 1.0F
                    : tensor.name.find("embed_tokens") != std::string::npos
                        ? embedded_value(i)
                        : static_cast<float>(0.15 * drawn_value(number, i));
      }
      ++number;
      const std::string bytes =
          tensor_bytes(type, values, static_cast<std::size_t>(tensor.elements() / tensor.shape.front()));
      (tensor.kind == TensorKind::matrix ? matrix_bytes_ : vector_bytes_) += bytes.size();
      file.tensor(gguf_tensor_name(tensor.name), static_cast<std::uint32_t>(type),
                  {tensor.shape.rbegin(), tensor.shape.rend()}, bytes);
      bytes_[tensor.name] = bytes;
    }
    write_bytes(file_, file.bytes());
  }

  [[nodiscard]] Checkpoint opened() const { return Checkpoint::open(file_, load_model_config(file_)); }
  [[nodiscard]] ModelOptions options(const ResidencyOptions& residency = {}) const {
    ModelOptions options{.context = 64, .chunk = 32};
    options.weights = stored_recipe(opened(), ElementType::float32);
    options.cache = ElementType::float32;
    options.residency = residency;
    return options;
  }
  static Tokens tokens(std::size_t count) {
    Tokens all(count);
    for (std::size_t i = 0; i < count; ++i) {
      all[i] = static_cast<std::int32_t>((5 + 37 * i) % kMixedVocabulary);
    }
    return all;
  }
  static DispatcherOptions cached() {
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    return options;
  }
  // After these tokens, read `at_once` at a time.
  [[nodiscard]] std::vector<float> logits_of(Executor& executor, const ModelOptions& options, const Tokens& all,
                                             std::size_t at_once) const {
    WeightSource source = checkpoint_weights(opened());
    Model model(executor, load_model_config(file_), source, options);
    for (std::size_t first = 0; first < all.size(); first += at_once) {
      model.append({std::span(all).subspan(first, std::min(at_once, all.size() - first)), {}});
    }
    return model.logits();
  }
  template <typename Expected>
  static double distance(const std::vector<float>& got, const Expected& expected) {
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(double{got[i]} - double{expected[i]}, 2);
      norm += std::pow(double{expected[i]}, 2);
    }
    return got.size() == expected.size() ? std::sqrt(difference / norm) : 1;
  }
  // The problems of a pass of so many tokens after others.
  [[nodiscard]] std::multiset<std::string> problems_of(std::size_t count, Fusion fusion) const {
    UnbackedMemory memory;
    Executor executor(Executor::ObserveOnly{}, *host_, memory);
    WeightSource source = checkpoint_weights(opened());
    ModelOptions wanted = options();
    wanted.fusion = fusion;
    Model model(executor, load_model_config(file_), source, wanted);
    model.append({tokens(16), {}});
    std::multiset<std::string> problems;
    executor.observe([&](const ops::KernelProblem& problem) { problems.insert(problem.named().text()); });
    model.append({tokens(count), {}});
    return problems;
  }
};

// In passes of many tokens, of a few, and of one, whichever operations are joined.
TEST_P(MixedProjectionTest, LogitsAreThoseOfTheFilesNumbers) {
  Dispatcher dispatcher(*host_, cached());
  Executor kernels(dispatcher);
  Executor processor(*host_);
  const ReferenceModel reference(checkpoint_weights(opened()), GetParam());
  const Tokens all = tokens(11);
  const Doubles expected = reference.logits(all);
  for (const Fusion fusion : {Fusion::off, Fusion::automatic}) {
    ModelOptions wanted = options();
    wanted.fusion = fusion;
    for (const std::size_t at_once : {11, 4, 1}) {
      EXPECT_LT(distance(logits_of(kernels, wanted, all, at_once), expected), 1e-5) << at_once << " at once";
      EXPECT_LT(distance(logits_of(processor, wanted, all, at_once), expected), 1e-5) << at_once << " at once";
    }
  }
  EXPECT_FALSE(kernels.fell_back());
  if (is_packed_format(kept_type_of(GetParam().types[2]))) {  // as the three were kept before
    ModelOptions again = options();
    std::vector<WeightRecipe::Rule> rules = again.weights.rules();
    rules.insert(rules.begin(),
                 {{"*q_proj*", ElementType::q8_0}, {"*k_proj*", ElementType::q8_0}, {"*v_proj*", ElementType::q8_0}});
    again.weights = WeightRecipe("rounded again", rules);
    EXPECT_GT(distance(logits_of(processor, again, all, 11), expected), 1e-4) << "the test would not notice";
  }
}

TEST_P(MixedProjectionTest, EachPartIsKeptAsItIsStored) {
  const ModelConfig config = load_model_config(file_);
  WeightSource source = checkpoint_weights(opened());
  const DeviceWeights weights = load_weights(config, source, host_->memory(), options().weights);
  EXPECT_EQ(weights.bytes, matrix_bytes_ + vector_bytes_) << "as many as the file has";
  EXPECT_EQ(device_weight_bytes(config, options().weights), weights.bytes);
  const std::span<const TensorView> parts = weights.text.layers.front().qkv.all();
  ASSERT_EQ(parts.size(), GetParam().parts);
  const std::array names{"q_proj", "k_proj", "v_proj"};
  std::size_t part = 0;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ElementType type = kept_type_of(GetParam().types.at(i));
    const std::string& bytes = bytes_.at(fmt::format("model.layers.0.self_attn.{}.weight", names[i]));
    const std::int64_t rows = static_cast<std::int64_t>((i == 0 ? kMixedHeads : kMixedKvHeads) * kMixedHeadDim);
    if (row == parts[part].shape[0]) {
      ++part;
      row = 0;
    }
    ASSERT_EQ(parts[part].type, type) << names[i];
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(rows);
    const MatrixLayout layout = layout_of(type);
    std::vector<std::byte> stored(row_bytes);
    for (std::int64_t j = 0; is_packed_format(type) && j < rows; ++j) {
      const auto group_bytes = static_cast<std::size_t>(layout.group_bytes(kMixedHidden));
      const auto group = static_cast<std::size_t>((row + j) / layout.group_rows) * group_bytes;
      unpack_row(type, std::span(static_cast<const std::byte*>(parts[part].data) + group, group_bytes), kMixedHidden,
                 (row + j) % layout.group_rows, stored);
      ASSERT_EQ(std::memcmp(stored.data(), bytes.data() + static_cast<std::size_t>(j) * row_bytes, row_bytes), 0)
          << names[i] << " " << j;
    }
    row += rows;
  }
}

TEST_P(MixedProjectionTest, APromptRoundsItsRowsOnce) {
  const std::multiset<std::string> problems = problems_of(12, Fusion::off);
  std::size_t products = 0;
  std::size_t norms = 0;
  for (const std::string& problem : problems) {
    const bool is_product = problem.starts_with("matmul");
    products += is_product && problem.find("WEIGHT=float32") == std::string::npos ? 1 : 0;
    norms += problem.starts_with("rmsnorm") && problem.find("OUTPUT=int8") != std::string::npos ? 1 : 0;
    EXPECT_FALSE(problem.starts_with("quantize")) << problem;
  }
  std::set<GgufType> types(GetParam().types.begin(), GetParam().types.end());
  const bool has_float32 = types.contains(GgufType::F32);
  EXPECT_EQ(products, GetParam().parts - (has_float32 ? 1 : 0));
  EXPECT_EQ(norms, 1U) << fmt::format("{}", fmt::join(problems, "\n"));
}

const std::array kMixedTypes{
    ProjectionTypes{"Q4KMedium", {GgufType::Q4_K, GgufType::Q4_K, GgufType::Q6_K}, 2},
    ProjectionTypes{"QueriesApart", {GgufType::Q6_K, GgufType::Q4_K, GgufType::Q4_K}, 2},
    ProjectionTypes{"KeysApart", {GgufType::Q4_K, GgufType::Q6_K, GgufType::Q4_K}, 3},
    ProjectionTypes{"NumbersToo", {GgufType::F16, GgufType::Q8_0, GgufType::F32}, 3},
};

INSTANTIATE_TEST_SUITE_P(Files, MixedProjectionTest, ::testing::ValuesIn(kMixedTypes),
                         [](const auto& tested) { return std::string(tested.param.name); });

class Q4KMediumTest : public MixedProjectionTest {};

// What `workload` lists and `sweep` tunes: both shapes of the prompt and of a token.
TEST_P(Q4KMediumTest, BothShapesAreLaunched) {
  const auto expect = [](const std::multiset<std::string>& problems, const std::string& problem) {
    EXPECT_EQ(problems.count(problem), 1U) << problem << " in\n  " << fmt::format("{}", fmt::join(problems, "\n  "));
  };
  const auto prompt = problems_of(12, Fusion::off);
  expect(prompt, "matmul_q M=12 N=384 K=256 EPILOGUE=0 STORAGE=float32 WEIGHT=q4_k");
  expect(prompt, "matmul_q M=12 N=128 K=256 EPILOGUE=0 STORAGE=float32 WEIGHT=q6_k");
  expect(prompt,
         "qk_norm_rope TOKENS=12 HEADS=4 KV_HEADS=2 HEAD_DIM=64 POSITIONS=64 CACHE_ROWS=64 SECTION_H=0 SECTION_W=0 "
         "QKV_STRIDE=512 NORM=1 EPSILON=1000 PARTS=2 STORAGE=float32 CACHE=float32");
  const auto single = problems_of(1, Fusion::off);
  expect(single, "matvec_q M=1 N=384 K=256 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect(single, "matvec_q M=1 N=128 K=256 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q6_k");
  const auto joined = problems_of(1, Fusion::automatic);
  expect(joined, "matvec_q M=1 N=384 K=256 EPILOGUE=0 NORM=1 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q4_k");
  expect(joined, "matvec_q M=1 N=128 K=256 EPILOGUE=0 NORM=1 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q6_k");
}

TEST_P(Q4KMediumTest, LayersElsewhereGiveTheSame) {
  write(2);
  Dispatcher dispatcher(*host_, cached());
  Executor executor(dispatcher);
  const Tokens all = tokens(11);
  for (const std::size_t at_once : {11, 1}) {
    const std::vector<float> expected = logits_of(executor, options(), all, at_once);
    const ResidencyOptions streamed{1, VisionResidency::automatic, Offload::stream};
    EXPECT_EQ(logits_of(executor, options(streamed), all, at_once), expected);
    // Sums in another order move some of the integers that the rows of later layers are rounded to.
    const ResidencyOptions shared{1, VisionResidency::automatic, Offload::processor};
    EXPECT_LT(distance(logits_of(executor, options(shared), all, at_once), expected), 5e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(File, Q4KMediumTest, ::testing::Values(kMixedTypes.front()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace pascaline::testing
