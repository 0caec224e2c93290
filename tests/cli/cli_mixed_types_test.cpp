#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "db/store.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kMixedHeadDim = 64;  // with four heads of queries, two of keys and of values

// The program with a GGUF file whose first layer has values in Q6_K beside queries and keys in Q4_K, as Q4_K_M has in
// half of its layers.
class CliMixedTypesTest : public CliModelFixture {
 protected:
  std::string file_ = (folder_ / "mixed.gguf").string();
  std::string database_ = (folder_ / "tuned.db").string();

  CliMixedTypesTest() {
    std::filesystem::remove_all(model_);
    std::filesystem::create_directory(model_);
    ModelConfig config = write_text_model_folder(model_);
    config.text.hidden = 256;
    config.text.intermediate = 512;
    config.text.head_dim = kMixedHeadDim;
    config.text.mrope_section = {kMixedHeadDim / 2, 0, 0};
    write_model(model_, config);
    write_bytes(folder_ / "recipe.json",
                R"({"tensors": [{"name": "*.0.*v_proj.weight", "type": "q6_k"}], "others": "q4_k"})");
    const ProgramResult written =
        run_program(folder_.path(), {"convert", model_, file_, "--weights", (folder_ / "recipe.json").string()});
    EXPECT_EQ(written.exit_code, 0) << written.error;
  }

  [[nodiscard]] ProgramResult with_file(const std::vector<std::string>& words) const {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--model", file_, "--device", "emulator", "--context", "64"});
    ProgramSetting setting;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    return run_program(folder_.path(), all, setting);
  }
  [[nodiscard]] json json_with_file(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const ProgramResult result = with_file(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.exit_code == 0 ? json_of(result) : json();
  }
  static std::string tokens_of(const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> words{"generate", "--model", model, "--untuned", "--context", "128",  "--prompt",
                                   "hello",    "-n",      "4",   "--greedy",  "--json",    "--raw"};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    const ProgramResult result = run_program(std::filesystem::path(model).parent_path(), words, setting);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.exit_code == 0 ? json_of(result)["tokens"].dump() : result.error;
  }
};

TEST_F(CliMixedTypesTest, ConvertKeepsEachType) {
  const std::string back = (folder_ / "back").string();
  const std::string again = (folder_ / "again.gguf").string();
  ASSERT_EQ(run_program(folder_.path(), {"convert", file_, back}).exit_code, 0);
  ASSERT_EQ(run_program(folder_.path(), {"convert", back, again}).exit_code, 0);
  const GgufFile first = GgufFile::open(file_);
  const GgufFile second = GgufFile::open(again);
  ASSERT_EQ(first.tensors().size(), second.tensors().size());
  EXPECT_EQ(first.find("blk.0.attn_q.weight")->type, GgufType::Q4_K);
  EXPECT_EQ(first.find("blk.0.attn_v.weight")->type, GgufType::Q6_K);
  EXPECT_EQ(first.find("blk.1.attn_v.weight")->type, GgufType::Q4_K);
  for (const GgufTensor& tensor : first.tensors()) {
    const GgufTensor* const other = second.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->type, tensor.type) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(other->bytes, tensor.bytes)) << tensor.name;
  }
  for (const char* device : {"cpu", "emulator"}) {
    EXPECT_EQ(tokens_of(back, {"--device", device}), tokens_of(file_, {"--device", device})) << device;
  }
  EXPECT_EQ(tokens_of(file_, {"--device", "emulator", "--gpu-layers", "1", "--offload", "stream"}),
            tokens_of(file_, {"--device", "emulator"}));
}

TEST_F(CliMixedTypesTest, WorkloadsHaveBothShapes) {
  const std::string mine = (folder_ / "mine.json").string();
  const ProgramResult written = with_file({"workload", "--untuned", "--prompt-tokens", "12", "-o", mine});
  ASSERT_EQ(written.exit_code, 0) << written.error;
  const Workload workload = Workload::load(mine);
  const auto shapes = [&](const char* kernel) {
    std::vector<std::string> texts;
    for (const WorkloadProblem& problem :
         expand(workload, Space::load(data_folder("search_spaces") / (std::string(kernel) + ".json")))) {
      texts.push_back(problem.problem.text());
    }
    return texts;
  };
  const auto has = [](const std::vector<std::string>& texts, const std::string& shape, const std::string& type) {
    return std::ranges::any_of(texts, [&](const std::string& text) {
      return text.find(shape) != std::string::npos && text.find(type) != std::string::npos;
    });
  };
  for (const char* kernel : {"matmul_q", "matvec_q"}) {
    const std::vector<std::string> texts = shapes(kernel);
    EXPECT_TRUE(has(texts, " N=384 K=256 ", "WEIGHT=q4_k")) << kernel << " of queries and keys";
    EXPECT_TRUE(has(texts, " N=128 K=256 ", "WEIGHT=q6_k")) << kernel << " of values";
    EXPECT_TRUE(has(texts, " N=512 K=256 ", "WEIGHT=q4_k")) << kernel << " of the other layer";
    EXPECT_FALSE(has(texts, "", "WEIGHT=q8_0")) << kernel;
  }
  EXPECT_TRUE(has(shapes("qk_norm_rope"), "PARTS=2", "TOKENS=12"));
  EXPECT_TRUE(has(shapes("qk_norm_rope"), "PARTS=0", "TOKENS=12")) << "of the other layer";
}

TEST_F(CliMixedTypesTest, SitesOfSuchLayersAreMeasuredAndExplained) {
  const json swept = json_with_file({"sweep",
                                     "--db",
                                     database_,
                                     "--prompt-tokens",
                                     "12",
                                     "--kernel",
                                     "site_decode_attention",
                                     "--kernel",
                                     "rmsnorm",
                                     "--kernel",
                                     "sample_next",
                                     "--trials",
                                     "1",
                                     "--warm-cache",
                                     "--min-samples",
                                     "3",
                                     "--max-samples",
                                     "5",
                                     "--rounds",
                                     "4"});
  EXPECT_EQ(Store(database_, OpenMode::read_only).winners("site_decode_attention", nullptr).size(), 2U)
      << "of both layers: " << swept;
  std::set<std::string> phases;
  for (const json& phase : swept["phases"]) {
    phases.insert(phase["phase"]);
  }
  EXPECT_EQ(phases, (std::set<std::string>{"prompt", "token"})) << "a model of text has no images";
  const json explained = json_with_file({"explain", "--db", database_, "--prompt-tokens", "12"});
  std::size_t mixed = 0;
  for (const json& site : explained["sites"]) {
    const std::string text = site["site"];
    if (text.starts_with("site_decode_attention") && text.find("QKV=q4_k K=q4_k V=q6_k") != std::string::npos) {
      ++mixed;
      EXPECT_EQ(site["origin"], "exact") << site;
    }
  }
  EXPECT_EQ(mixed, 1U) << explained;
  json plan = explained;
  for (json& site : plan["sites"]) {
    site["alternative"] = "single";
  }
  const std::string file = (folder_ / "plan.json").string();
  write_bytes(file, plan.dump());
  const json forced = json_with_file({"explain", "--db", database_, "--fusion", file});
  for (const json& site : forced["sites"]) {
    EXPECT_EQ(site["alternative"], "single") << site;
  }
  const json profile = json_with_file({"profile", "--untuned", "--prompt-tokens", "12"});
  EXPECT_EQ(profile["passes"].size(), 2U);
}

TEST_F(CliMixedTypesTest, APlanTellsTheTypes) {
  const ProgramResult plan = with_file({"generate", "--untuned", "--prompt", "hello", "--raw", "--plan"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_NE(plan.out.find("q4_k, q6_k"), std::string::npos) << plan.out;
  EXPECT_EQ(plan.out.find("q8_0"), std::string::npos) << plan.out;
}

}  // namespace
}  // namespace pascaline::testing
