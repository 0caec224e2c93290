#include "model/checkpoint/hf/config_fields.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/checkpoint/model_keys.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxVocabulary = 1 << 24;
constexpr std::int64_t kMaxPositions = std::numeric_limits<std::int32_t>::max();

// The base of rotary angles.
double read_theta(const JsonNode& object) {
  constexpr double kMaxTheta = 1e12;
  const JsonNode node = object.at("rope_theta");
  const double value = node.real();
  if (!(value > 1 && value <= kMaxTheta)) {
    node.fail(fmt::format("{} is out of range (greater than 1, at most {})", value, kMaxTheta));
  }
  return value;
}

// Missing is one per head for some classes; null means that for all of them.
std::int64_t read_kv_heads(const JsonNode& node, std::int64_t heads, const DecoderDefaults& defaults) {
  constexpr std::string_view kKey = "num_key_value_heads";
  const bool is_null = node.has(kKey) && !node.has_value(kKey);
  return is_null ? heads : read_extent(node, kKey, kMaxHeads, defaults.kv_heads == 0 ? heads : defaults.kv_heads);
}

std::int64_t read_head_dim(const JsonNode& node, const TextConfig& text, const DecoderDefaults& defaults) {
  if (node.has_value("head_dim") || defaults.head_dim != 0) {
    return read_extent(node, "head_dim", kMaxHeads, defaults.head_dim);
  }
  require(text.hidden % text.heads == 0, node,
          fmt::format("hidden_size {} is not a multiple of num_attention_heads {}, and there is no head_dim",
                      text.hidden, text.heads));
  return text.hidden / text.heads;
}

// Both are the same as leaving them out, or not supported.
void check_head_keys(const JsonNode& node, std::int64_t head_dim) {
  const std::string whole = fmt::format("[{}]", head_dim);
  const std::string usual = fmt::format("[{:.17g}]", 1 / std::sqrt(static_cast<double>(head_dim)));
  check_limits(node, std::array{LimitedKey{"rotary_dim", whole}, LimitedKey{"softmax_scale", usual}});
}

NormEpsilon read_epsilon(const JsonNode& node) {
  constexpr std::string_view kKey = "rms_norm_eps";
  if (!node.has_value(kKey)) {
    return {};
  }
  const double epsilon = node.at(kKey).real();
  require(norm_epsilon_from(epsilon).has_value(), node.at(kKey), wrong_epsilon_text(epsilon));
  return *norm_epsilon_from(epsilon);
}

}  // namespace

void require(bool holds, const JsonNode& node, const std::string& otherwise) {
  if (!holds) {
    node.fail(otherwise);
  }
}

void require_supported(const JsonNode& object, const LimitedKey& limit) {
  check_supported(object.at(limit.key), limit);
}

std::int64_t read_extent(const JsonNode& object, std::string_view key, std::int64_t limit, std::int64_t otherwise) {
  if (!object.has_value(key)) {
    return otherwise;
  }
  const JsonNode node = object.at(key);
  const std::int64_t value = node.integer();
  if (value < 1 || value > limit) {
    node.fail(fmt::format("{} is not a possible size (1 to {})", value, limit));
  }
  return value;
}

std::int64_t read_token(const JsonNode& node, std::int64_t vocabulary) {
  const std::int64_t id = node.integer();
  require(id >= 0 && id < vocabulary, node,
          fmt::format("token {} is not in the vocabulary of {} tokens", id, vocabulary));
  return id;
}

std::vector<std::int64_t> read_end_tokens(const JsonNode& object, std::int64_t vocabulary) {
  if (!object.has_value("eos_token_id")) {
    return {};
  }
  const JsonNode node = object.at("eos_token_id");
  if (!node.value().is_array()) {
    return {read_token(node, vocabulary)};
  }
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < node.array_size(); ++i) {
    tokens.push_back(read_token(node.at(i), vocabulary));
  }
  return tokens;
}

std::optional<double> find_theta(const JsonNode& object) {
  std::optional<double> theta;
  const auto take = [&](const JsonNode& holder) {
    if (holder.has_value("rope_theta")) {
      const double found = read_theta(holder);
      const double other = theta.value_or(found);
      require(other == found, holder.at("rope_theta"), fmt::format("{} and {} contradict each other", found, other));
      theta = found;
    }
  };
  take(object);
  for (const std::string_view key : kRopeObjects) {
    if (object.has_value(key)) {
      take(object.at(key));
    }
  }
  return theta;
}

// Files of older versions say "type".
void check_rope_type(const JsonNode& rope) {
  require_supported(rope, {rope.has_value("rope_type") || !rope.has_value("type") ? "rope_type" : "type", kRopeTypes});
}

std::optional<NormEpsilon> norm_epsilon_from(double value) noexcept {
  constexpr double kStored = 1e-6;  // relative: it may have been a float32
  if (!(value > 0 && value <= NormEpsilon{NormEpsilon::kMaxNano}.value())) {
    return std::nullopt;
  }
  const NormEpsilon epsilon{std::llround(value * 1e9)};
  return std::abs(epsilon.value() - value) <= kStored * value ? std::optional(epsilon) : std::nullopt;
}

std::string wrong_epsilon_text(double value) {
  return fmt::format("{} is not supported, only whole billionths, from 1e-9 to 1", value);
}

TextConfig read_decoder(const JsonNode& node, const DecoderDefaults& defaults) {
  constexpr std::array kLimited{LimitedKey{"hidden_act", R"(["silu", "swish"])"},
                                LimitedKey{"attention_bias", "[false]"}};
  check_limits(node, kLimited);
  TextConfig text;
  text.hidden = read_extent(node, "hidden_size", kMaxWidth, defaults.hidden);
  text.layers = read_extent(node, "num_hidden_layers", kMaxLayers, defaults.layers);
  text.heads = read_extent(node, "num_attention_heads", kMaxHeads, defaults.heads);
  text.kv_heads = read_kv_heads(node, text.heads, defaults);
  text.head_dim = read_head_dim(node, text, defaults);
  check_head_keys(node, text.head_dim);
  text.intermediate = read_extent(node, "intermediate_size", kMaxWidth, defaults.intermediate);
  text.vocab = read_extent(node, "vocab_size", kMaxVocabulary, defaults.vocab);
  text.max_positions = read_extent(node, "max_position_embeddings", kMaxPositions, defaults.max_positions);
  text.norm_epsilon = read_epsilon(node);
  const std::optional<double> theta = find_theta(node);
  text.rope_theta = theta ? *theta : read_theta(node);
  require(text.heads % text.kv_heads == 0, node,
          fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", text.heads, text.kv_heads));
  require(text.head_dim % 2 == 0, node, fmt::format("head_dim {} is odd", text.head_dim));
  return text;
}

}  // namespace pascaline
