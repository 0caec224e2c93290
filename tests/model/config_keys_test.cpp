#include "tests/model/config_keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "model/image/preprocess.hpp"
#include "model/model.hpp"
#include "model/requirements.hpp"
#include "model/session/prompt.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

// All that a model folder's configuration decides, computed on the processor with weights that follow from names.
struct FolderResults {
  std::vector<std::string> tensors;
  std::int64_t context = 0;
  std::vector<float> text;   // logits
  std::vector<float> image;  // likewise
  std::vector<float> patches;
  std::tuple<float, float, float, std::int32_t, float, float> sampling;
  std::vector<bool> ends;

  friend bool operator==(const FolderResults&, const FolderResults&) = default;
};

Image slanted_image() {
  Image image{24, 32, std::vector<std::uint8_t>(24 * 32 * 3)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
  }
  return image;
}

std::vector<std::string> tensors_of(const ModelConfig& config) {
  std::vector<std::string> lines;
  for (const TensorSpec& tensor : required_tensors(config)) {
    lines.push_back(tensor.name);
    for (const std::int64_t extent : tensor.shape) {
      lines.back() += " " + std::to_string(extent);
    }
  }
  return lines;
}

FolderResults results_of(const std::filesystem::path& path) {
  const ModelFolder folder(path);
  const ModelConfig& config = folder.config();
  FolderResults results;
  results.tensors = tensors_of(config);
  results.context = checked_options(config, {}).context;
  const ops::SamplingSettings sampling = folder.default_sampling(1);
  results.sampling = {sampling.repetition, sampling.presence, sampling.temperature,
                      sampling.top_k,      sampling.top_p,    sampling.min_p};
  for (TokenId token = 0; token < config.text.vocab; ++token) {
    results.ends.push_back(folder.ends(token));
  }
  const auto host = open_device("emulator");
  Executor executor(*host);
  WeightSource weights = hash_weights(config);
  ModelOptions options;
  options.weights = options.cache = ElementType::float32;
  options.context = std::min<std::int64_t>(64, results.context);
  Model model(executor, config, weights, options);
  const std::vector<std::int32_t> text{1, 2, 3, 5, 8, 13};
  model.append({text, {}});
  results.text = model.logits();
  if (!config.vision) {
    return results;
  }
  const Patches patches = preprocess(slanted_image(), folder.preprocessor());
  results.patches.assign(patches.view().begin(), patches.view().end());
  std::vector<std::int32_t> tokens{10};
  tokens.insert(tokens.end(), tokens_of({&patches, 1}, config).at(0), 741);
  tokens.insert(tokens.end(), {20, 30});
  const PatchView view{patches.grid.h, patches.grid.w, patches.view()};
  model.clear();
  model.append({tokens, {&view, 1}});
  results.image = model.logits();
  return results;
}

// Results, or what was said against the folder.
struct FolderOutcome {
  std::optional<FolderResults> results;
  std::string refusal;
};

class ConfigKeysTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::map<std::string, json> files_;

  ConfigKeysTest() : ConfigKeysTest(write_model_folder) {}

  explicit ConfigKeysTest(ModelConfig (*write)(const std::filesystem::path&)) {
    write(folder_.path());
    for (const char* file : {"config.json", "preprocessor_config.json", "generation_config.json"}) {
      if (std::filesystem::exists(folder_ / file)) {
        files_[file] = json::parse(read_file(folder_ / file));
      }
    }
  }

  void check_all(const std::vector<KeyCase>& keys) const {
    const FolderOutcome before = outcome({});
    ASSERT_TRUE(before.results) << before.refusal;
    for (const KeyCase& key : keys) {
      check(key, *before.results);
    }
  }

  // With the files changed by these patches.
  [[nodiscard]] FolderOutcome outcome(const std::map<std::string, json>& patches) const {
    for (const auto& [name, content] : files_) {
      json changed = content;
      if (const auto patch = patches.find(name); patch != patches.end()) {
        changed.merge_patch(patch->second);
      }
      write_file_atomically(folder_ / name, changed.dump());
    }
    try {
      return {results_of(folder_.path()), ""};
    } catch (const Error& error) {
      return {std::nullopt, error.what()};
    }
  }

  void check(const KeyCase& key, const FolderResults& before) const {
    SCOPED_TRACE(key.file + ":" + key.pointer + ": " + key.change.dump());
    std::map<std::string, json> patches{{key.file, key.change}};
    patches.insert(key.beside.begin(), key.beside.end());
    const FolderOutcome after = outcome(patches);
    if (key.effect == KeyEffect::used || key.effect == KeyEffect::none || key.effect == KeyEffect::warned) {
      ASSERT_TRUE(after.results) << after.refusal;
      EXPECT_EQ(*after.results == before, key.effect != KeyEffect::used);
      const StrictKeys strict(true);
      const FolderOutcome strictly = outcome(patches);
      EXPECT_EQ(strictly.results.has_value(), key.effect != KeyEffect::warned) << strictly.refusal;
      if (key.effect == KeyEffect::warned) {
        EXPECT_NE(strictly.refusal.find(key.says), std::string::npos) << strictly.refusal;
      }
      return;
    }
    ASSERT_FALSE(after.results) << "it was accepted, and results " << (*after.results == before ? "stay" : "change");
    EXPECT_NE(after.refusal.find(key.says), std::string::npos) << after.refusal;
    if (key.effect == KeyEffect::refused) {
      const std::string place = (folder_ / key.file).string() + ":" + key.pointer;
      EXPECT_EQ(after.refusal.rfind(place, 0), 0U) << after.refusal;
    }
  }
};

// Pointers of everything that is no object.
void collect_pointers(const json& value, const std::string& pointer, std::set<std::string>& found) {
  if (!value.is_object()) {
    found.insert(pointer);
    return;
  }
  for (const auto& [key, member] : value.items()) {
    collect_pointers(member, pointer + "/" + key, found);
  }
}

// Of a model that only reads text, the cases of those.
const std::vector<KeyCase>& cases_of(const json& config) {
  return config.at("model_type") == "qwen3" ? text_only_key_cases() : key_cases();
}

void expect_all_known(const std::string& file, const json& content, const std::string& name,
                      const std::vector<KeyCase>& keys = key_cases()) {
  std::set<std::string> pointers;
  collect_pointers(content, "", pointers);
  for (const std::string& pointer : pointers) {
    const auto is_it = [&](const KeyCase& key) { return key.file == file && key.pointer == pointer; };
    EXPECT_TRUE(std::any_of(keys.begin(), keys.end(), is_it))
        << name << " has " << pointer << ", of which nothing here says what it does";
  }
}

TEST_F(ConfigKeysTest, EveryKeyIsUsedOrRefusedOrHasNoEffect) { check_all(key_cases()); }

class TextOnlyKeysTest : public ConfigKeysTest {
 protected:
  TextOnlyKeysTest() : ConfigKeysTest(write_text_model_folder) {}
};

TEST_F(TextOnlyKeysTest, EveryKeyIsUsedOrRefusedOrHasNoEffect) {
  check_all(text_only_key_cases());
  for (const auto& [file, content] : files_) {
    expect_all_known(file, content, file + " of the tests", text_only_key_cases());
  }
  const json written =
      json::parse(read_file(std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "qwen3_tied/config.json"));
  expect_all_known("config.json", written, "config.json as Transformers writes it", text_only_key_cases());
}

class LlamaKeysTest : public ConfigKeysTest {
 protected:
  LlamaKeysTest() : ConfigKeysTest(write_llama_folder) {}
};

TEST_F(LlamaKeysTest, WhatIsItsOwnIsUsedOrRefusedOrHasNoEffect) { check_all(llama_key_cases()); }

TEST_F(ConfigKeysTest, EveryKeyOfTheReleasedFilesIsKnown) {
  int configurations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PASCALINE_CHECKPOINT_DATA)) {
    if (entry.path().extension() == ".json") {
      const json content = json::parse(read_file(entry.path()));
      expect_all_known("config.json", content, entry.path().filename().string(), cases_of(content));
      ++configurations;
    }
  }
  EXPECT_GE(configurations, 7);
  for (const json& content : released_preprocessors()) {
    expect_all_known("preprocessor_config.json", content, "the released preprocessor_config.json");
  }
  expect_all_known("generation_config.json", released_generation(), "the released generation_config.json");
  for (const auto& [file, content] : files_) {
    expect_all_known(file, content, file + " of the tests");
  }
}

TEST_F(ConfigKeysTest, ReleasedFilesAreAccepted) {
  for (json content : released_preprocessors()) {
    EXPECT_NO_THROW((void)parse_preprocessor_config(content.dump(), "preprocessor_config.json")) << content;
  }
  json generation = released_generation();
  ModelConfig config = load_model_config(folder_.path());
  config.text.vocab = 151936;
  EXPECT_NO_THROW((void)parse_generation_config(generation.dump(), "generation_config.json", config));
}

}  // namespace
}  // namespace pascaline::testing
