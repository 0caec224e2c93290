#include "runtime/checkpoint/generation_config.hpp"

#include <fmt/format.h>

#include <limits>
#include <system_error>

#include "runtime/checkpoint/model_error.hpp"
#include "runtime/checkpoint/model_keys.hpp"

namespace pascaline {
namespace {

constexpr std::uintmax_t kMaxGenerationBytes = 16U << 20U;

// A number in (low, high], or `otherwise` if the key is left out.
double number(const JsonNode& root, std::string_view key, double low, double high, double otherwise) {
  if (!root.has_value(key)) {
    return otherwise;
  }
  const double value = root.at(key).real();
  if (!(value > low && value <= high)) {
    root.at(key).fail(fmt::format("{} is out of range (greater than {}, at most {})", value, low, high));
  }
  return value;
}

std::int64_t known_token(const JsonNode& node, const ModelConfig& config) {
  const std::int64_t id = node.integer();
  if (id < 0 || id >= config.text.vocab) {
    node.fail(fmt::format("token {} is not in the vocabulary of {} tokens", id, config.text.vocab));
  }
  return id;
}

std::optional<std::int64_t> optional_token(const JsonNode& root, std::string_view key, const ModelConfig& config) {
  return root.has_value(key) ? std::optional(known_token(root.at(key), config)) : std::nullopt;
}

std::vector<std::int64_t> end_tokens(const JsonNode& root, const ModelConfig& config) {
  if (!root.has_value("eos_token_id")) {
    return config.eos_tokens;
  }
  const JsonNode node = root.at("eos_token_id");
  if (!node.value().is_array()) {
    return {known_token(node, config)};
  }
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < node.array_size(); ++i) {
    tokens.push_back(known_token(node.at(i), config));
  }
  return tokens;
}

GenerationConfig read_generation(const JsonNode& root, const ModelConfig& config) {
  if (!root.value().is_object()) {
    root.fail(fmt::format("expected an object, found {}", root.value().type_name()));
  }
  check_generation_keys(root);
  GenerationConfig out = neutral_generation();
  out.do_sample = root.has_value("do_sample") && root.at("do_sample").boolean();
  out.temperature = number(root, "temperature", 0, 1e6, out.temperature);
  out.top_p = number(root, "top_p", 0, 1, out.top_p);
  out.repetition_penalty = number(root, "repetition_penalty", 0, 1e6, out.repetition_penalty);
  out.presence_penalty = number(root, "presence_penalty", -1e6, 1e6, out.presence_penalty);
  out.top_k = root.has_value("top_k") ? root.at("top_k").integer() : out.top_k;
  if (out.top_k < 0 || out.top_k > std::numeric_limits<std::int32_t>::max()) {
    root.at("top_k").fail(fmt::format("{} is not a possible number of tokens", out.top_k));
  }
  out.recommended = {root.has_value("do_sample"), root.has_value("temperature"), root.has_value("top_p"),
                     root.has_value("top_k"), root.has_value("repetition_penalty")};
  out.eos_tokens = end_tokens(root, config);
  out.bos_token = optional_token(root, "bos_token_id", config);
  out.pad_token = optional_token(root, "pad_token_id", config);
  return out;
}

}  // namespace

GenerationConfig neutral_generation() {
  GenerationConfig generation;
  generation.temperature = 1;
  generation.top_k = 50;
  generation.top_p = 1;
  return generation;
}

GenerationConfig parse_generation_config(std::string_view text, const std::string& file, const ModelConfig& config) {
  try {
    const nlohmann::json document = parse_json(text, file);
    return read_generation(JsonNode(document, file), config);
  } catch (const SpaceError& error) {
    throw ModelError(error.what());
  }
}

GenerationConfig load_generation_config(const std::filesystem::path& folder, const ModelConfig& config) {
  const std::filesystem::path file = folder / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::symlink_status(file, ignored).type() != std::filesystem::file_type::not_found) {
    return parse_generation_config(read_model_file(file, kMaxGenerationBytes), file.string(), config);
  }
  GenerationConfig generation;
  generation.eos_tokens = config.eos_tokens;
  return generation;
}

}  // namespace pascaline
