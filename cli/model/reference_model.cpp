#include "cli/model/reference_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/shown_text.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline::cli {
namespace {

// What differs, as "KEY is THERE, not HERE".
class ConfigDifferences {
 public:
  template <typename T>
  void compare(std::string_view key, const T& here, const T& there) {
    if (here != there) {
      found_.push_back(fmt::format("{} is {}, not {}", key, there, here));
    }
  }
  [[nodiscard]] const std::vector<std::string>& found() const noexcept { return found_; }

 private:
  std::vector<std::string> found_;
};

void compare_texts(const TextConfig& here, const TextConfig& there, ConfigDifferences& differences) {
  differences.compare("vocab_size", here.vocab, there.vocab);
  differences.compare("hidden_size", here.hidden, there.hidden);
  differences.compare("num_hidden_layers", here.layers, there.layers);
  differences.compare("num_attention_heads", here.heads, there.heads);
  differences.compare("num_key_value_heads", here.kv_heads, there.kv_heads);
  differences.compare("head_dim", here.head_dim, there.head_dim);
  differences.compare("intermediate_size", here.intermediate, there.intermediate);
  differences.compare("rope_theta", here.rope_theta, there.rope_theta);
  differences.compare("what rope_scaling divides by", here.rope_divisors, there.rope_divisors);
  differences.compare("rms_norm_eps", here.norm_epsilon.value(), there.norm_epsilon.value());
  differences.compare("mrope_section", here.mrope_section, there.mrope_section);
}

void compare_towers(const VisionConfig& here, const VisionConfig& there, ConfigDifferences& differences) {
  differences.compare("the vision tower's hidden_size", here.hidden, there.hidden);
  differences.compare("its depth", here.depth, there.depth);
  differences.compare("its num_heads", here.heads, there.heads);
  differences.compare("its intermediate_size", here.intermediate, there.intermediate);
  differences.compare("its patch_size", here.patch, there.patch);
  differences.compare("its out_hidden_size", here.out_hidden, there.out_hidden);
}

// A token's text for a message; an id without a token has none.
std::string shown_token(std::string_view bytes) { return bytes.empty() ? "nothing" : quoted_name(shown_text(bytes)); }

// Both of tokenizers that have as many ids.
void require_same_vocabulary(const Tokenizer& here, const Tokenizer& there, const std::filesystem::path& model,
                             const std::filesystem::path& file) {
  for (TokenId id = 0; static_cast<std::size_t>(id) < here.id_count(); ++id) {
    if (there.bytes(id) != here.bytes(id)) {
      throw ModelError(
          fmt::format("{}: token {} is {}, not {} as in {}: a model is only compared with one of the same "
                      "vocabulary",
                      file.string(), id, shown_token(there.bytes(id)), shown_token(here.bytes(id)), model.string()));
    }
  }
}

}  // namespace

void require_same_architecture(const ModelFolder& model, const ModelFolder& reference) {
  const ModelConfig& here = model.config();
  const ModelConfig& there = reference.config();
  ConfigDifferences differences;
  differences.compare("model_type", traits_of(here.family).model_type, traits_of(there.family).model_type);
  if (here.family == there.family) {
    compare_texts(here.text, there.text, differences);
    if (here.vision && there.vision) {
      compare_towers(*here.vision, *there.vision, differences);
    }
  }
  if (!differences.found().empty()) {
    throw ModelError(fmt::format("{}: {} as in {}: a model is only compared with one of the same architecture",
                                 (reference.path() / "config.json").string(), fmt::join(differences.found(), ", "),
                                 model.path().string()));
  }
}

void check_reference_model(const ModelFolder& model, const Tokenizer& tokenizer, const ModelFolder& reference) {
  const Checkpoint checkpoint = Checkpoint::open(reference.location(), reference.config());
  if (checkpoint.has_formats()) {
    fmt::print(stderr,
               "pascaline: warning: {} is quantized itself ({}): what its own rounding costs is not seen; compare with "
               "the original\n",
               reference.path().string(), clean_line(checkpoint.recipe()));
  }
  if (const std::filesystem::path file = reference.path() / "tokenizer.json"; std::filesystem::exists(file)) {
    require_same_vocabulary(tokenizer, Tokenizer::load(file, static_cast<std::size_t>(reference.config().text.vocab)),
                            model.path(), file);
  }
}

void note_if_quantized(const ModelFolder& model) {
  if (const Checkpoint checkpoint = Checkpoint::open(model.location(), model.config()); checkpoint.has_formats()) {
    fmt::print(
        stderr,
        "pascaline: {} is quantized ({}), and is compared with its rounded weights; --reference with the original "
        "model's folder tells what rounding them cost\n",
        model.path().string(), clean_line(checkpoint.recipe()));
  }
}

}  // namespace pascaline::cli
