#include "model/checkpoint/hf/generation_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <system_error>

#include "model/checkpoint/hf/config_fields.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/model_keys.hpp"

namespace pascaline {
namespace {

constexpr std::uintmax_t kMaxGenerationBytes = 16U << 20U;

// Reads settings of which a wrong one is a fault, not an error.
class SettingReader {
 public:
  SettingReader(const JsonNode& root, std::vector<SamplingFault>& faults) : root_(&root), faults_(&faults) {}

  // What `read` makes of the key; `otherwise` if it is left out or wrong.
  template <typename Value, typename Read>
  Value setting(std::string_view key, SamplingUse use, Value otherwise, const Read& read) {
    if (root_->has_value(key)) {
      try {
        return read(root_->at(key));
      } catch (const SpaceError& error) {
        faults_->push_back({use, error.what()});
      }
    }
    return otherwise;
  }
  double number(std::string_view key, SamplingUse use, double low, double high, double otherwise) {
    return setting(key, use, otherwise, [&](const JsonNode& node) {
      const double value = node.real();
      require(value >= low && value <= high, node, fmt::format("{} is out of range ({} to {})", value, low, high));
      return value;
    });
  }
  // -1 and 0 are both none.
  std::int64_t top_k(std::int64_t otherwise) {
    return setting("top_k", SamplingUse::top_k, otherwise, [](const JsonNode& node) {
      const std::int64_t value = node.integer();
      require(value >= -1 && value <= std::numeric_limits<std::int32_t>::max(), node,
              fmt::format("{} is not a possible number of tokens", value));
      return std::max<std::int64_t>(value, 0);
    });
  }
  void limited(std::span<const LimitedKey> keys, SamplingUse use) {
    for (const LimitedKey& limit : keys) {
      (void)setting(limit.key, use, 0, [&](const JsonNode& node) {
        check_supported(node, limit);
        return 0;
      });
    }
  }

 private:
  const JsonNode* root_;
  std::vector<SamplingFault>* faults_;
};

// Nothing for one that the model does not have: texts neither begin nor are filled with it here.
std::optional<std::int64_t> optional_token(const JsonNode& root, std::string_view key, const ModelConfig& config) {
  const bool is_number = root.has_value(key) && root.at(key).value().is_number_integer();
  const std::int64_t id = is_number ? root.at(key).integer() : -1;
  return id >= 0 && id < config.text.vocab ? std::optional(id) : std::nullopt;
}

GenerationConfig read_generation(const JsonNode& root, const ModelConfig& config) {
  if (!root.value().is_object()) {
    root.fail(fmt::format("expected an object, found {}", root.value().type_name()));
  }
  check_generation_keys(root);
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  GenerationConfig out = neutral_generation();
  SettingReader reader(root, out.faults);
  reader.limited(limited_generation_keys(), SamplingUse::answer);
  reader.limited(limited_drawing_keys(), SamplingUse::draw);
  out.do_sample = root.has_value("do_sample") && root.at("do_sample").boolean();
  out.temperature = reader.number("temperature", SamplingUse::temperature, 0, kMost, out.temperature);
  if (out.temperature == 0) {
    out.do_sample = false;
    out.temperature = 1;
  }
  out.top_k = reader.top_k(out.top_k);
  out.top_p = reader.number("top_p", SamplingUse::top_p, 0, 1, out.top_p);
  out.min_p = reader.number("min_p", SamplingUse::min_p, 0, 1, out.min_p);
  out.repetition_penalty =
      reader.number("repetition_penalty", SamplingUse::repetition_penalty, kLeast, kMost, out.repetition_penalty);
  out.presence_penalty =
      reader.number("presence_penalty", SamplingUse::presence_penalty, -kMost, kMost, out.presence_penalty);
  const auto is_wrong = [&](SamplingUse use) {
    return std::any_of(out.faults.begin(), out.faults.end(),
                       [use](const SamplingFault& fault) { return fault.use == use; });
  };
  const auto recommends = [&](std::string_view key, SamplingUse use) { return root.has_value(key) && !is_wrong(use); };
  out.recommended = {.do_sample = root.has_value("do_sample"),
                     .temperature = recommends("temperature", SamplingUse::temperature),
                     .top_p = recommends("top_p", SamplingUse::top_p),
                     .top_k = recommends("top_k", SamplingUse::top_k),
                     .min_p = recommends("min_p", SamplingUse::min_p),
                     .repetition_penalty = recommends("repetition_penalty", SamplingUse::repetition_penalty)};
  out.eos_tokens = root.has_value("eos_token_id") ? read_end_tokens(root, config.text.vocab) : config.eos_tokens;
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
