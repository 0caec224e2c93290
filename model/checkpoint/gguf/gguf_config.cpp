#include "model/checkpoint/gguf/gguf_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/gguf/gguf_weights.hpp"
#include "model/checkpoint/hf/config_fields.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {
namespace {

struct GgufArchitecture {
  std::string_view name;
  ModelFamily family;
};

constexpr std::array<GgufArchitecture, 3> kGgufArchitectures{
    {{"qwen3", ModelFamily::qwen3}, {"qwen3vl", ModelFamily::qwen3_vl}, {"llama", ModelFamily::llama}}};

constexpr const char* kArchitectureKey = "general.architecture";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";

// Below the architecture's name. What is read is checked by its reader, the rest has no effect on these models.
constexpr std::array<std::string_view, 20> kGgufKeys{"attention.head_count",
                                                     "attention.head_count_kv",
                                                     "attention.key_length",
                                                     "attention.layer_norm_rms_epsilon",
                                                     "attention.value_length",
                                                     "block_count",
                                                     "context_length",
                                                     "embedding_length",
                                                     "feed_forward_length",
                                                     "n_deepstack_layers",
                                                     "rope.dimension_count",
                                                     "rope.dimension_sections",
                                                     "rope.freq_base",
                                                     "rope.scale_linear",
                                                     "rope.scaling.factor",
                                                     "rope.scaling.finetuned",
                                                     "rope.scaling.original_context_length",
                                                     "rope.scaling.type",
                                                     "tensor_data_layout",
                                                     "vocab_size"};

struct LimitedGgufKey {
  std::string_view name;
  double value;  // at which it changes nothing; a truth value as 0 or 1
};

// What is known to change results, below the architecture's name.
constexpr std::array<LimitedGgufKey, 22> kLimitedGgufKeys{{{"attention.causal", 1},
                                                           {"attention.clamp_kqv", 0},
                                                           {"attention.max_alibi_bias", 0},
                                                           {"attention.output_scale", 1},
                                                           {"attention.scale", 0},
                                                           {"attention.shared_kv_layers", 0},
                                                           {"attention.sliding_window", 0},
                                                           {"attention.temperature_length", 0},
                                                           {"attention.temperature_scale", 0},
                                                           {"attn_logit_softcapping", 0},
                                                           {"embedding_scale", 1},
                                                           {"expert_count", 0},
                                                           {"expert_shared_count", 0},
                                                           {"expert_used_count", 0},
                                                           {"final_logit_softcapping", 0},
                                                           {"logit_scale", 1},
                                                           {"nextn_predict_layers", 0},
                                                           {"residual_scale", 1},
                                                           {"rope.scaling.attn_factor", 1},
                                                           {"router_logit_softcapping", 0},
                                                           {"swin_norm", 0},
                                                           {"use_parallel_residual", 0}}};

class GgufConfigReader {
 public:
  explicit GgufConfigReader(const GgufFile& file) : file_(&file), metadata_(&file.metadata()) {}

  ModelConfig read() {
    ModelConfig config;
    config.family = read_family();
    check_type();
    check_general_keys(*metadata_);
    check_keys();
    config.text = read_text(config.family);
    config.text.mrope_section = read_sections(config);
    check_deepstack(config.text.layers);
    config.eos_tokens = read_ends(config.text.vocab);
    try {
      (void)parameter_count(config);
    } catch (const ModelError& error) {
      throw ModelError(fmt::format("{}: {}", metadata_->file(), error.what()));
    }
    return config;
  }

 private:
  ModelFamily read_family() {
    const std::string_view name = metadata_->text(kArchitectureKey);
    const auto* const found = std::find_if(kGgufArchitectures.begin(), kGgufArchitectures.end(),
                                           [name](const GgufArchitecture& known) { return known.name == name; });
    if (found == kGgufArchitectures.end()) {
      std::vector<std::string_view> known;
      for (const GgufArchitecture& architecture : kGgufArchitectures) {
        known.push_back(architecture.name);
      }
      metadata_->fail(kArchitectureKey,
                      fmt::format("{} is not supported, only {}{}", quoted_name(name), fmt::join(known, ", "),
                                  name == "clip" ? "; this is a projector, give the file of the text "
                                                   "model"
                                                 : ""));
    }
    prefix_ = std::string(name) + ".";
    return found->family;
  }

  // Adapters and the like name the architecture of the model they belong to.
  void check_type() const {
    constexpr const char* kType = "general.type";
    const std::string_view type = metadata_->find_text(kType).value_or("model");
    if (type != "model") {
      metadata_->fail(kType, fmt::format("{} is no text model; give the file of one, which says 'model' or nothing",
                                         quoted_name(type)));
    }
  }

  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  void check_keys() const {
    std::vector<std::string> unknown;
    for (const auto& [key, value] : metadata_->values()) {
      if (!key.starts_with(prefix_)) {
        continue;
      }
      const std::string_view name = key.substr(prefix_.size());
      const auto* const limited = std::find_if(kLimitedGgufKeys.begin(), kLimitedGgufKeys.end(),
                                               [name](const LimitedGgufKey& each) { return each.name == name; });
      if (limited != kLimitedGgufKeys.end()) {
        check_limited(key, limited->value);
      } else if (std::find(kGgufKeys.begin(), kGgufKeys.end(), name) == kGgufKeys.end()) {
        unknown.emplace_back(key);
      }
    }
    pass_over_unknown(metadata_->file(), unknown);
    (void)metadata_->find_text(this->key("tensor_data_layout"));
  }

  void check_limited(std::string_view key, double supported) const {
    const GgufValue& value = metadata_->values().at(key);
    const double found = value.is_array                         ? std::nan("")
                         : value.type == GgufValueType::boolean ? static_cast<double>(metadata_->boolean(key))
                                                                : metadata_->number(key);
    if (found != supported) {
      metadata_->fail(key, fmt::format("{} is not supported, only {}: it changes results",
                                       value.is_array ? "an array" : fmt::format("{}", found), supported));
    }
  }

  [[nodiscard]] std::int64_t extent(std::string_view name, std::int64_t limit) const {
    const std::string full = key(name);
    const auto found = metadata_->values().find(full);
    if (found != metadata_->values().end() && found->second.is_array) {
      metadata_->fail(full, "it is an array, and one value a layer is not supported, only one for all");
    }
    const std::int64_t value = metadata_->integer(full);
    if (value < 1 || value > limit) {
      metadata_->fail(full, fmt::format("{} is not a possible size (1 to {})", value, limit));
    }
    return value;
  }
  [[nodiscard]] std::int64_t extent_or(std::string_view name, std::int64_t limit, std::int64_t otherwise) const {
    return metadata_->has(key(name)) ? extent(name, limit) : otherwise;
  }

  void require_equal(std::string_view name, std::int64_t expected, const char* what) const {
    const std::int64_t value = metadata_->find_integer(key(name)).value_or(expected);
    if (value != expected) {
      metadata_->fail(key(name), fmt::format("{} instead of {}, {}", value, expected, what));
    }
  }

  [[nodiscard]] TextConfig read_text(ModelFamily family) const {
    TextConfig text;
    text.hidden = extent("embedding_length", kMaxWidth);
    text.layers = extent("block_count", kMaxLayers);
    text.heads = extent("attention.head_count", kMaxHeads);
    text.kv_heads = extent_or("attention.head_count_kv", kMaxHeads, text.heads);
    if (text.heads % text.kv_heads != 0) {
      metadata_->fail(key("attention.head_count_kv"),
                      fmt::format("{} heads of queries are not a multiple of {}", text.heads, text.kv_heads));
    }
    if (!metadata_->has(key("attention.key_length")) && text.hidden % text.heads != 0) {
      metadata_->fail(key("attention.head_count"),
                      fmt::format("{} is no divisor of the embedding_length {}", text.heads, text.hidden));
    }
    text.head_dim = extent_or("attention.key_length", kMaxHeads, text.hidden / text.heads);
    if (text.head_dim % 2 != 0) {
      metadata_->fail(key("attention.key_length"), fmt::format("heads of {} elements are odd", text.head_dim));
    }
    require_equal("attention.value_length", text.head_dim, "as keys have");
    require_equal("rope.dimension_count", text.head_dim, "the elements of a head");
    text.intermediate = extent("feed_forward_length", kMaxWidth);
    text.max_positions = extent("context_length", std::numeric_limits<std::int32_t>::max());
    text.vocab = read_vocabulary();
    text.rope_theta = read_theta(family);
    text.norm_epsilon = read_epsilon();
    text.normalises_heads = family != ModelFamily::llama;
    text.rope_divisors = read_divisors(family, text.head_dim / 2);
    text.tied = file_->find("output.weight") == nullptr;
    return text;
  }

  // The embedding has a row for each token.
  [[nodiscard]] std::int64_t read_vocabulary() const {
    const GgufTensor* embedding = file_->find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2) {
      throw ModelError(fmt::format("{}: tensor 'token_embd.weight': {}", metadata_->file(),
                                   embedding == nullptr ? "it is missing" : "it is no matrix"));
    }
    const std::int64_t rows = embedding->shape.back();
    require_equal("vocab_size", rows, "the rows of token_embd.weight");
    if (metadata_->has(kTokensKey) && static_cast<std::int64_t>(metadata_->texts(kTokensKey).size()) != rows) {
      metadata_->fail(kTokensKey, fmt::format("{} tokens, but token_embd.weight has {} rows",
                                              metadata_->texts(kTokensKey).size(), rows));
    }
    return rows;
  }

  // Files of Llama leave out what is usual; any Qwen3 has another base.
  [[nodiscard]] double read_theta(ModelFamily family) const {
    constexpr double kUsual = 10000;
    constexpr double kMost = 1e12;
    const std::string name = key("rope.freq_base");
    const double theta =
        family == ModelFamily::llama ? metadata_->find_real(name).value_or(kUsual) : metadata_->real(name);
    if (!(theta > 1 && theta <= kMost)) {
      metadata_->fail(name, fmt::format("{} is out of range (greater than 1, at most {})", theta, kMost));
    }
    return theta;
  }

  [[nodiscard]] NormEpsilon read_epsilon() const {
    const std::string name = key("attention.layer_norm_rms_epsilon");
    const double value = metadata_->real(name);
    const std::optional<NormEpsilon> epsilon = norm_epsilon_from(value);
    if (!epsilon) {
      metadata_->fail(name, wrong_epsilon_text(value));
    }
    return *epsilon;
  }

  // As llama.cpp reads it: without a type, scaling is linear, with a factor that usually is not there.
  [[nodiscard]] double read_scaling() const {
    constexpr double kMost = 1e6;
    const std::string type_name = key("rope.scaling.type");
    const std::string_view type = metadata_->find_text(type_name).value_or("linear");
    if (type != "none" && type != "linear") {
      metadata_->fail(type_name, fmt::format("{} is not supported, only 'none' and 'linear'", quoted_name(type)));
    }
    // What these say only matters to other types.
    const std::string trained_name = key("rope.scaling.original_context_length");
    const std::int64_t trained = metadata_->find_integer(trained_name).value_or(0);
    if (trained < 0 || trained > std::numeric_limits<std::int32_t>::max()) {
      metadata_->fail(trained_name, fmt::format("{} is not a possible number of tokens", trained));
    }
    (void)metadata_->find_boolean(key("rope.scaling.finetuned"));
    const std::string name =
        key(metadata_->has(key("rope.scaling.factor")) ? "rope.scaling.factor" : "rope.scale_linear");
    const double factor = metadata_->find_real(name).value_or(1);
    if (!(factor >= 0 && factor <= kMost)) {
      metadata_->fail(name, fmt::format("{} is out of range (at least 0, at most {})", factor, kMost));
    }
    return type == "none" || factor == 0 ? 1 : factor;
  }

  // Llama 3.1's files have a number for each frequency.
  [[nodiscard]] std::vector<float> read_divisors(ModelFamily family, std::int64_t slots) const {
    std::vector<float> divisors(static_cast<std::size_t>(slots), 1);
    const GgufTensor* const factors = family == ModelFamily::llama ? file_->find(kGgufRopeFactors) : nullptr;
    if (factors != nullptr) {
      if (factors->type != GgufType::F32 || factors->shape != std::vector<std::int64_t>{slots}) {
        throw ModelError(fmt::format("{}: tensor '{}': it is not {} numbers in F32, one for each frequency",
                                     metadata_->file(), kGgufRopeFactors, slots));
      }
      std::memcpy(divisors.data(), factors->bytes.data(), factors->bytes.size());
      if (!std::all_of(divisors.begin(), divisors.end(), [](float each) { return each > 0 && std::isfinite(each); })) {
        throw ModelError(
            fmt::format("{}: tensor '{}': frequencies are divided by it, but not all of it is above 0 and "
                        "finite",
                        metadata_->file(), kGgufRopeFactors));
      }
    }
    const auto scaling = static_cast<float>(read_scaling());
    std::transform(divisors.begin(), divisors.end(), divisors.begin(),
                   [scaling](float each) { return each * scaling; });
    const bool are_ones = std::all_of(divisors.begin(), divisors.end(), [](float each) { return each == 1; });
    return are_ones ? std::vector<float>() : divisors;
  }

  [[nodiscard]] std::array<std::int64_t, 3> read_sections(const ModelConfig& config) const {
    const std::int64_t half = config.text.head_dim / 2;
    if (config.family != ModelFamily::qwen3_vl) {
      return {half, 0, 0};
    }
    const std::string name = key("rope.dimension_sections");
    const std::vector<std::int64_t> found = metadata_->integers(name);
    const bool is_possible =
        (found.size() == 3 || (found.size() == 4 && found[3] == 0)) &&
        std::all_of(found.begin(), found.end(), [half](std::int64_t size) { return size >= 0 && size <= half; });
    // Height takes the slots 1, 4, 7, ... and width 2, 5, 8, ...
    if (!is_possible || found[0] + found[1] + found[2] != half || (found[1] > 0 && 3 * found[1] - 2 >= half) ||
        (found[2] > 0 && 3 * found[2] - 1 >= half)) {
      metadata_->fail(name, fmt::format("[{}] are not the sizes of time, height and width that can be interleaved "
                                        "within {} frequencies",
                                        fmt::join(found, ", "), half));
    }
    return {found[0], found[1], found[2]};
  }

  // How many of the first layers get features of images; a projector must give as many.
  void check_deepstack(std::int64_t layers) const {
    const std::string name = key("n_deepstack_layers");
    const std::int64_t count = metadata_->find_integer(name).value_or(0);
    if (count < 0 || count > layers) {
      metadata_->fail(name, fmt::format("{} is not a possible number of the {} layers", count, layers));
    }
  }

  [[nodiscard]] std::vector<std::int64_t> read_ends(std::int64_t vocabulary) const {
    std::vector<std::int64_t> tokens;
    for (const char* name : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      const auto token = metadata_->find_integer(name);
      if (token && (*token < 0 || *token >= vocabulary)) {
        metadata_->fail(name, fmt::format("token {} is not in the vocabulary of {} tokens", *token, vocabulary));
      }
      if (token && std::find(tokens.begin(), tokens.end(), *token) == tokens.end()) {
        tokens.push_back(*token);
      }
    }
    return tokens;
  }

  const GgufFile* file_;
  const GgufMetadata* metadata_;
  std::string prefix_;
};

}  // namespace

void check_general_keys(const GgufMetadata& metadata) { (void)metadata.find_integer("general.file_type"); }

ModelConfig read_gguf_config(const GgufFile& file) { return GgufConfigReader(file).read(); }

}  // namespace pascaline
