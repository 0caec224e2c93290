// What ways to compute a site do wrong while a model's sites are measured: each costs its own trial, the others are
// compared, and the operations by themselves stay.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "core/util/sanitizer.hpp"
#include "db/store.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

class CliSiteFaultsTest : public CliModelFixture {
 protected:
  std::filesystem::path kernels_ = folder_ / "kernels";
  std::filesystem::path spaces_ = folder_ / "spaces";
  std::string database_ = (folder_ / "tuned.db").string();

  void SetUp() override {
    std::filesystem::copy(data_folder("kernel_templates"), kernels_, std::filesystem::copy_options::recursive);
    std::filesystem::copy(data_folder("search_spaces"), spaces_, std::filesystem::copy_options::recursive);
  }
  // Replaces what occurs once in a file.
  static void edit(const std::filesystem::path& file, const std::string& text, const std::string& by) {
    std::string content = bytes_of(file);
    const std::size_t at = content.find(text);
    ASSERT_NE(at, std::string::npos) << text << " in " << file;
    content.replace(at, text.size(), by);
    write_bytes(file, content);
  }
  [[nodiscard]] ProgramResult sweep(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"sweep",
                                   "--model",
                                   model_,
                                   "--device",
                                   "emulator",
                                   "--context",
                                   "64",
                                   "--prompt-tokens",
                                   "8",
                                   "--image-size",
                                   "16",
                                   "24",
                                   "--weights",
                                   "float32",
                                   "--kv-cache",
                                   "float32",
                                   "--db",
                                   database_,
                                   "--kernels",
                                   kernels_.string(),
                                   "--spaces",
                                   spaces_.string(),
                                   "--warm-cache",
                                   "--min-samples",
                                   "3",
                                   "--max-samples",
                                   "3",
                                   "--rounds",
                                   "4",
                                   "--kernel-timeout",
                                   "2",
                                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    return run_program(folder_.path(), words, setting);
  }
  // Of the site's trials outside of finals, by alternative; each is there once.
  [[nodiscard]] std::map<std::string, Trial> trials_of(const std::string& site) const {
    std::map<std::string, Trial> trials;
    for (const StoredTrial& stored : Store(database_, OpenMode::read_only).trials({})) {
      if (stored.trial.problem.kernel == site && stored.trial.stage == TrialStage::search) {
        EXPECT_TRUE(trials.emplace(stored.trial.config.text(), stored.trial).second) << stored.trial.config.text();
      }
    }
    return trials;
  }
  static void expect(const std::map<std::string, Trial>& trials, const std::string& alternative, TrialStatus status,
                     const std::string& reason = "") {
    const auto found = trials.find("ALTERNATIVE=" + alternative);
    ASSERT_NE(found, trials.end()) << alternative;
    EXPECT_EQ(name_of(found->second.status), name_of(status)) << alternative << ": " << found->second.reason;
    EXPECT_NE(found->second.reason.find(reason), std::string::npos) << alternative << ": " << found->second.reason;
  }
  [[nodiscard]] std::string winner_of(const std::string& site) const {
    const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners(site, nullptr);
    return winners.size() == 1 ? winners.front().trial.config.text() : std::to_string(winners.size()) + " winners";
  }
};

// A site whose own operations fail has nothing to compare with: it is left out.
TEST_F(CliSiteFaultsTest, HangsCrashesAndBuffersThatDoNotFitCostTheirOwnTrial) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "a crash is AddressSanitizer's report then, and its allocator aborts";
  }
  edit(kernels_ / "attention_decode_qkv.cu", "  __shared__ Token::NewHeads heads;\n",
       "  __shared__ Token::NewHeads heads;\n  for (volatile int wait = 1; wait != 0;) {\n  }\n");
  edit(
      kernels_ / "matvec_normed.cu", "  const int first = static_cast<int>(blockIdx.x);\n",
      "  const int first = static_cast<int>(blockIdx.x);\n  *reinterpret_cast<volatile int*>(static_cast<unsigned long "
      "long>(n)) = 1;\n");
  edit(spaces_ / "mlp.json", R"x("access": "scratch", "extent": "2 * round_up(M * INTERMEDIATE, 4)")x",
       R"("access": "scratch", "extent": "M * INTERMEDIATE * 34359738368")");
  write_bytes(kernels_ / "attention_projected.cu", "#error this kernel cannot be built\n");
  write_bytes(kernels_ / "layernorm.cu", "#error this kernel cannot be built\n");
  const std::vector<std::string> sites{"--kernel", "site_decode_attention", "--kernel", "site_decode_mlp",
                                       "--kernel", "site_vision_mlp"};
  const ProgramResult first = sweep(sites);
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(json_of(first)["problems_done"], 2) << first.out;
  EXPECT_NE(first.error.find("layernorm"), std::string::npos) << first.error;
  EXPECT_EQ(winner_of("site_vision_mlp"), "0 winners");

  const std::map<std::string, Trial> attention = trials_of("site_decode_attention");
  expect(attention, "single", TrialStatus::ok);
  expect(attention, "rotated", TrialStatus::timed_out, "after 2 s in phase 'launch'");
  expect(attention, "normed", TrialStatus::crashed, "signal 11");
  expect(attention, "normed_rotated", TrialStatus::crashed, "signal 11");
  expect(attention, "projected", TrialStatus::compile_failed, "attention_projected");
  expect(attention, "normed_projected", TrialStatus::compile_failed, "attention_projected");
  expect(attention, "whole", TrialStatus::rejected, "does not fit these types");
  EXPECT_EQ(winner_of("site_decode_attention"), "ALTERNATIVE=single");
  const std::map<std::string, Trial> mlp = trials_of("site_decode_mlp");
  expect(mlp, "single", TrialStatus::ok);
  expect(mlp, "normed", TrialStatus::crashed, "signal 11");
  expect(mlp, "whole", TrialStatus::compile_failed, "does not fit on the device");
  EXPECT_EQ(winner_of("site_decode_mlp"), "ALTERNATIVE=single");

  // What took the device once is left alone from then on.
  const ProgramResult second = sweep(sites);
  EXPECT_EQ(second.exit_code, 0) << second.error;
  EXPECT_EQ(trials_of("site_decode_attention").size(), attention.size());
  EXPECT_EQ(winner_of("site_decode_attention"), "ALTERNATIVE=single");
}

}  // namespace
}  // namespace pascaline::testing
