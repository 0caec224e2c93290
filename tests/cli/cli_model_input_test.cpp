#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_config.hpp"
#include "tests/cli/cli_model_fixture.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline::testing {
namespace {

// What the program says of input that is wrong, before anything is computed.
class CliModelInputTest : public CliModelFixture {
 protected:
  // Without --untuned, which a bundle excludes.
  [[nodiscard]] ProgramResult generate(const std::vector<std::string>& more, bool gpus = true) const {
    std::vector<std::string> words{"generate", "--model", model_, "--prompt", "x", "--greedy", "-n", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.environment = {{"PASCALINE_DB", (folder_ / "nosuch.db").string()}};
    if (!gpus) {
      setting.environment.emplace_back("CUDA_VISIBLE_DEVICES", "-1");
    }
    return run_program(folder_.path(), words, setting);
  }
  [[nodiscard]] std::string image(const std::string& name, const Image& image) const {
    write_bytes(folder_ / name, png_of(image));
    return (folder_ / name).string();
  }
};

void expect_one_warning(const ProgramResult& result, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_NE(result.error.find("warning"), std::string::npos) << result.error;
  for (const std::string& part : parts) {
    EXPECT_NE(result.error.find(part), std::string::npos) << result.error;
  }
}

TEST_F(CliModelInputTest, ABundleIsOfNoUseOnTheProcessor) {
  expect_fault(generate({"--device", "cpu", "--bundle", "nosuch.pasc"}), 2, {"--bundle", "leave out --bundle"});
  expect_fault(generate({"--bundle", "nosuch.pasc"}, false), 1, {"there is no GPU here", "nosuch.pasc", "--device"});
  expect_fault(generate({"--device", "emulator", "--bundle", "nosuch.pasc"}), 1, {"nosuch.pasc", "No such file"});
}

TEST_F(CliModelInputTest, OptionsAboutKernelsAreOfNoUseOnTheProcessor) {
  expect_one_warning(generate({"--device", "cpu", "--db", "nosuch.db", "--nvrtc", "nonsense", "--target", "sm_61",
                               "--kernels", "a", "--spaces", "b", "--cache", "c"}),
                     {"--db, --target, --nvrtc, --cache, --kernels, --spaces are ignored"});
  expect_one_warning(generate({"--nvrtc", "nonsense"}, false), {"--nvrtc is ignored"});
  EXPECT_EQ(generate({"--device", "cpu"}).error, "") << "PASCALINE_DB was not given for this run alone";
}

TEST_F(CliModelInputTest, NumbersAreWholeAndWithinTheirRange) {
  remove_weights();
  const std::vector<std::pair<std::string, std::string>> few{{"--context", "0"},          {"--context", "-5"},
                                                             {"--context", "1e3"},        {"--context", "+7"},
                                                             {"--context", "9 "},         {"--chunk", "0"},
                                                             {"--chunk", "0x10"},         {"--chunk", "1.0"},
                                                             {"--max-image-tokens", "0"}, {"--max-image-tokens", "nan"},
                                                             {"--max-tokens", "0"}};
  for (const auto& wrong : few) {
    expect_fault(on_cpu("generate", {"--prompt", "x", wrong.first, wrong.second}), 2,
                 {wrong.first + ": must be a whole number of at least 1, not '" + wrong.second + "'"});
  }
  const std::string huge = "99999999999999999999";
  expect_fault(on_cpu("generate", {"--prompt", "x", "--chunk", huge}), 2,
               {"--chunk: must be a whole number from 1 to 9223372036854775807, not '" + huge + "'"});
  for (const std::string& wrong : std::vector<std::string>{"-1", "2147483648", "x"}) {
    expect_fault(on_cpu("generate", {"--prompt", "x", "--top-k", wrong}), 2,
                 {"--top-k: must be a whole number from 0 to 2147483647, not '" + wrong + "'"});
  }
  for (const std::string& wrong : std::vector<std::string>{"-1", "18446744073709551616", "1.5"}) {
    expect_fault(on_cpu("generate", {"--prompt", "x", "--seed", wrong}), 2,
                 {"--seed: must be a whole number from 0 to 18446744073709551615, not '" + wrong + "'"});
  }
  expect_fault(on_cpu("bench-model", {"--repeats", "0"}), 2, {"--repeats: must be a whole number from 1 to 1000"});
  expect_fault(on_cpu("generate", {"--prompt", "x", "-n", "0300"}), 1, {"an answer of up to 300"});
  for (const std::string& seed : std::vector<std::string>{"0", "18446744073709551615"}) {
    expect_fault(on_cpu("generate", {"--prompt", "x", "--seed", seed, "--top-k", "2147483647"}), 1,
                 {"model.safetensors"});
  }
}

TEST_F(CliModelInputTest, ErrorsOfAImageNameItsFile) {
  const std::string good = image("good.png", black_image(16, 16));
  const std::string strip = image("strip.png", black_image(2, 800));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--max-image-tokens", "16"}}) {
    std::vector<std::string> words{"--prompt", "x", "--image", good, "--image", strip};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = on_cpu("generate", words);
    expect_fault(result, 1, {"strip.png: an image of 800 x 2 pixels is too long"});
    EXPECT_EQ(result.error.find("--context"), std::string::npos) << result.error;
    EXPECT_EQ(result.error.find("good.png"), std::string::npos) << result.error;
  }
  const ProgramResult chat = on_cpu("chat", {}, "/image " + strip + "\n");
  EXPECT_NE(chat.out.find("strip.png: an image of"), std::string::npos) << chat.out;
  std::filesystem::remove(std::filesystem::path(model_) / "preprocessor_config.json");
  const ProgramResult lacking = on_cpu("generate", {"--prompt", "x", "--image", good, "--random-weights"});
  expect_fault(lacking, 1, {"no preprocessor_config.json"});
  EXPECT_EQ(lacking.error.find("--context"), std::string::npos) << lacking.error;
}

TEST_F(CliModelInputTest, AWorkloadThatCannotBeWrittenIsKnownFirst) {
  remove_weights();
  const auto write = [&](const std::string& file) {
    return run("workload", {"--device", "emulator", "--prompt-tokens", "8", "-o", file});
  };
  const std::string nowhere = (folder_ / "nosuch" / "mine.json").string();
  expect_fault(write(nowhere), 1, {"cannot write " + nowhere, "nosuch cannot be written: No such file", "; give a"});
  expect_fault(write(folder_.path().string()), 1, {"it is a folder", "; give a"});
  const std::string kept = (folder_ / "kept.json").string();
  write_bytes(kept, "mine");
  std::filesystem::permissions(kept, std::filesystem::perms::owner_read);
  expect_fault(write(kept + "/mine.json"), 1, {"cannot write " + kept, "Not a directory", "; give a"});
  ProgramSetting setting;
  setting.unprivileged = true;
  const std::vector<std::string> words{"workload", "--model", model_, "--device", "emulator", "-o", kept};
  for (const bool seen : {false, true}) {
    const auto mine = std::filesystem::perms::owner_all;
    const auto others = std::filesystem::perms::others_read | std::filesystem::perms::others_exec;
    std::filesystem::permissions(folder_.path(), seen ? mine | others : mine);
    expect_fault(run_program(folder_.path(), words, setting), 1,
                 {"cannot write " + kept, "Permission denied", "; give a"});
  }
  EXPECT_EQ(read_file(kept), "mine");
  const ProgramResult written = write((folder_ / "mine.json").string());
  EXPECT_EQ(written.exit_code, 0) << written.error << "what is launched needs no weights";
  EXPECT_NE(read_file((folder_ / "mine.json").string()).find("\"entries\""), std::string::npos);
}

// References for `validate`, with images; a test spoils one thing.
class CliReferenceTest : public CliModelInputTest {
 protected:
  static constexpr std::int64_t kVocabulary = 752;
  std::vector<std::int32_t> tokens_{1, 2, 3};
  std::vector<std::int32_t> later_{5};
  std::vector<std::int32_t> grids_{1, 2, 4, 1, 4, 4};
  std::int64_t grid_values_ = 3;
  std::int64_t patches_ = 24;
  std::int64_t patch_values_ = 0;
  std::vector<std::string> left_out_;

  CliReferenceTest() {
    patch_values_ = load_model_config(model_).vision.value().patch_values();
    remove_weights();
  }

  [[nodiscard]] ProgramResult validate() const {
    const auto count = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
    const std::vector<float> logits(static_cast<std::size_t>(count(tokens_) * kVocabulary));
    const std::vector<float> decoded(static_cast<std::size_t>(count(later_) * kVocabulary));
    const std::vector<float> pixels(static_cast<std::size_t>(patches_ * patch_values_));
    std::vector<StoredTensor> tensors{
        {"input_ids", StoredType::I32, {count(tokens_)}, std::as_bytes(std::span(tokens_))},
        {"logits", StoredType::F32, {count(tokens_), kVocabulary}, std::as_bytes(std::span(logits))},
        {"decode_ids", StoredType::I32, {count(later_)}, std::as_bytes(std::span(later_))},
        {"decode_logits", StoredType::F32, {count(later_), kVocabulary}, std::as_bytes(std::span(decoded))},
        {"pixel_values", StoredType::F32, {patches_, patch_values_}, std::as_bytes(std::span(pixels))},
        {"image_grid_thw",
         StoredType::I32,
         {count(grids_) / grid_values_, grid_values_},
         std::as_bytes(std::span(grids_))}};
    std::erase_if(tensors, [&](const StoredTensor& tensor) {
      return std::find(left_out_.begin(), left_out_.end(), tensor.name) != left_out_.end();
    });
    const std::string file = (folder_ / "reference.safetensors").string();
    write_safetensors(file, tensors);
    return on_cpu("validate", {"--reference", file});
  }
  void expect_refused(std::vector<std::string> parts) const {
    parts.emplace_back("reference.safetensors: ");
    expect_fault(validate(), 1, parts);
  }
};

TEST_F(CliReferenceTest, ASoundOneIsReadBeforeTheWeights) {
  expect_fault(validate(), 1, {"model.safetensors"});
  left_out_ = {"pixel_values", "image_grid_thw", "decode_ids", "decode_logits"};
  expect_fault(validate(), 1, {"model.safetensors"});
}

TEST_F(CliReferenceTest, TokensMustBeOfTheVocabulary) {
  tokens_[2] = 752;
  expect_refused({"input_ids[2] is 752", "0 to 751"});
  tokens_[2] = 751;
  later_[0] = -1;
  expect_refused({"decode_ids[0] is -1", "0 to 751"});
  later_[0] = 0;
  tokens_.clear();
  expect_refused({"input_ids is empty"});
}

TEST_F(CliReferenceTest, TensorsThatBelongTogetherMustBothBeThere) {
  for (const auto& [missing, present] : std::map<std::string, std::string>{{"decode_ids", "decode_logits"},
                                                                           {"decode_logits", "decode_ids"},
                                                                           {"pixel_values", "image_grid_thw"},
                                                                           {"image_grid_thw", "pixel_values"}}) {
    left_out_ = {missing};
    expect_refused({"has " + present + " but no " + missing});
  }
  left_out_ = {"input_ids"};
  expect_refused({"input_ids"});
}

TEST_F(CliReferenceTest, GridsMustBeOfTheModelAndThePatches) {
  const auto expect_second = [&](std::vector<std::int32_t> grid, const std::vector<std::string>& parts) {
    std::copy(grid.begin(), grid.end(), grids_.begin() + 3);
    expect_refused(parts);
  };
  expect_second({2, 4, 4}, {"image 2 of image_grid_thw is 2 x 4 x 4", "still"});
  expect_second({1, 0, 4}, {"1 x 0 x 4", "positive"});
  expect_second({1, 4, -4}, {"1 x 4 x -4", "positive"});
  expect_second({1, 1, 16}, {"1 x 1 x 16", "multiples of 2"});
  expect_second({1, 2, 9}, {"1 x 2 x 9", "multiples of 2"});
  expect_second({1, 4, 6}, {"24 patches, and pixel_values has 16 for it"});
  expect_second({1, 1 << 30, 1 << 30}, {"1152921504606846976 patches, and pixel_values has 16 for it"});
  expect_second({1, 2, 4}, {"pixel_values has 24 patches, and the images of image_grid_thw have 16 in total"});
  grids_ = {1, 2, 4, 4};
  grid_values_ = 2;
  expect_refused({"image_grid_thw has 2 numbers per image"});
  patch_values_ += 1;
  grid_values_ = 4;
  expect_refused({"image_grid_thw has 4 numbers per image"});
  grids_ = {1, 4, 6};
  grid_values_ = 3;
  expect_refused({"pixel_values has", "values per patch; the model's patches have"});
}

}  // namespace
}  // namespace pascaline::testing
