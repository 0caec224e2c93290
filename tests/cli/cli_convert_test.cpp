#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "tests/cli/cli_model_fixture.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliConvertTest : public CliModelFixture {
 protected:
  std::string file_ = (folder_ / "new.gguf").string();
  std::string projector_ = (folder_ / "mmproj-new.gguf").string();
  std::string back_ = (folder_ / "new_back").string();
  std::string photo_ = (folder_ / "photo.png").string();

  CliConvertTest() {
    name_video_token(model_);
    write_bytes(photo_, png_of(synthetic_image(16, 24)));
  }

  [[nodiscard]] ProgramResult convert(const std::string& from, const std::string& to,
                                      const std::vector<std::string>& more = {},
                                      const ProgramSetting& setting = {}) const {
    std::vector<std::string> words{"convert", from, to};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(folder_.path(), words, setting);
  }
  // Tokens that a model answers with, to words and a photo.
  [[nodiscard]] std::string answer(const std::vector<std::string>& model) const {
    std::vector<std::string> words{"generate", "--device", "cpu", "--context", "256",      "--prompt", "hello you",
                                   "--image",  photo_,     "-n",  "12",        "--greedy", "--json",   "--model"};
    words.insert(words.end(), model.begin(), model.end());
    const ProgramResult result = run_program(folder_.path(), words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.exit_code == 0 ? json_of(result)["tokens"].dump() : result.error;
  }
  // Names of what was written.
  [[nodiscard]] std::set<std::string> left() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.find("new") != std::string::npos) {
        names.insert(name);
      }
    }
    return names;
  }
};

TEST_F(CliConvertTest, AnswersStayTheSameInEitherForm) {
  for (const std::string weights : {"float32", "float16", "bfloat16", "q8_0", "q6_k", "q4_0"}) {
    const ProgramResult written = convert(model_, file_, {"--weights", weights, "--force"});
    ASSERT_EQ(written.exit_code, 0) << written.error;
    EXPECT_NE(written.out.find(file_ + " and " + projector_ + ": "), std::string::npos) << written.out;
    ASSERT_EQ(convert(file_, back_, {"--mmproj", projector_, "--force"}).exit_code, 0);
    const std::string expected = answer({file_, "--mmproj", projector_});
    EXPECT_EQ(answer({back_}), expected) << weights;
    if (weights == "float32" || weights == "float16" || weights == "bfloat16") {  // which hold the weights exactly
      EXPECT_EQ(answer({model_}), expected) << weights;
    }
  }
  EXPECT_EQ(left(), (std::set<std::string>{"new.gguf", "mmproj-new.gguf", "new_back"}));
}

TEST_F(CliConvertTest, WithoutItsProjectorAnImageIsRefusedWithTheWayOut) {
  ASSERT_EQ(convert(model_, file_).exit_code, 0);
  expect_fault(run_program(folder_.path(),
                           {"generate", "--model", file_, "--device", "cpu", "--prompt", "x", "--image", photo_}),
               1, {"without its vision tower", "--mmproj FILE.gguf"});
  const std::vector<std::string> plain{"generate", "--device", "cpu", "--context", "64",     "--prompt",
                                       "hello",    "-n",       "4",   "--greedy",  "--json", "--model"};
  const auto tokens = [&](const std::vector<std::string>& model) {
    std::vector<std::string> words = plain;
    words.insert(words.end(), model.begin(), model.end());
    const ProgramResult result = run_program(folder_.path(), words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json_of(result)["tokens"].dump();
  };
  EXPECT_EQ(tokens({file_}), tokens({model_}));
  expect_fault(convert(file_, back_), 1, {file_, "--mmproj"});
  EXPECT_EQ(left(), (std::set<std::string>{"new.gguf", "mmproj-new.gguf"}));
}

TEST_F(CliConvertTest, FilesInTheWrongPlaceAreRefused) {
  ASSERT_EQ(convert(model_, file_).exit_code, 0);
  const auto plan = [&](const std::string& model, const std::string& projector) {
    return run_program(folder_.path(),
                       {"generate", "--device", "cpu", "--prompt", "x", "--model", model, "--mmproj", projector});
  };
  expect_fault(plan(model_, projector_), 1, {projector_, "is a folder, which has its own vision tower"});
  expect_fault(plan(file_, file_), 1, {file_ + ": key 'general.architecture'", "no projector"});
  expect_fault(plan(projector_, file_), 1, {projector_ + ": key 'general.architecture'", "this is a projector"});
  expect_fault(plan(file_, "nosuch.gguf"), 1, {"nosuch.gguf"});
  expect_fault(run_program(folder_.path(), {"sweep", "--mmproj", projector_, "--device", "emulator", "--db", "t.db"}),
               2, {"--mmproj is about a model"});
}

TEST_F(CliConvertTest, NothingIsOverwrittenByMistake) {
  ASSERT_EQ(convert(model_, file_).exit_code, 0);
  const std::string bytes = read_file(file_);
  expect_fault(convert(model_, file_, {"--weights", "float16"}), 1, {file_ + " exists", "--force"});
  fs::remove(file_);
  expect_fault(convert(model_, file_), 1, {projector_ + " exists", "--force"});
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(convert(model_, file_, {"--force"}).exit_code, 0);
  EXPECT_EQ(read_file(file_), bytes);
  fs::create_directory(back_);
  write_bytes(fs::path(back_) / "notes.txt", "mine");
  expect_fault(convert(file_, back_, {"--mmproj", projector_}), 1, {"exists"});
  expect_fault(convert(file_, back_, {"--mmproj", projector_, "--force"}), 1, {"this is not a model's folder"});
  expect_fault(convert(model_, (folder_ / "none/new.gguf").string()), 1, {"cannot write", "No such file"});
  fs::create_directory(folder_ / "new_folder.gguf");
  expect_fault(convert(model_, (folder_ / "new_folder.gguf").string(), {"--force"}), 1, {"this is not a file"});
  expect_fault(convert(model_, (folder_ / "new_two.gguf").string(), {"--mmproj", (folder_ / "new_two.gguf").string()}),
               1, {"is the text model; name another file"});
  expect_fault(convert(model_, (folder_ / "new_two.gguf").string(),
                       {"--mmproj", (folder_ / "." / "model" / ".." / "new_two.gguf").string()}),
               1, {"is the text model; name another file"});
  EXPECT_EQ(left(), (std::set<std::string>{"new.gguf", "mmproj-new.gguf", "new_back", "new_folder.gguf"}));
}

TEST_F(CliConvertTest, AFullDiskLeavesNothing) {
  ProgramSetting setting;
  setting.file_size_limit = 200'000;
  expect_fault(convert(model_, file_, {}, setting), 1, {"cannot write", "new."});
  EXPECT_EQ(left(), std::set<std::string>{});
  ASSERT_EQ(convert(model_, file_).exit_code, 0);
  expect_fault(convert(file_, back_, {"--mmproj", projector_}, setting), 1, {"cannot write", "model.safetensors"});
  EXPECT_EQ(left(), (std::set<std::string>{"new.gguf", "mmproj-new.gguf"}));
}

TEST_F(CliConvertTest, WhatCannotBeConvertedIsRefused) {
  expect_fault(convert(model_, back_), 2, {"neither", "is a GGUF file"});
  ASSERT_EQ(convert(model_, file_, {"--weights", "q8_0"}).exit_code, 0);
  expect_fault(convert(file_, (folder_ / "b.gguf").string()), 2, {"are both GGUF files"});
  expect_fault(convert(file_, back_, {"--mmproj", projector_, "--weights", "q4_0"}), 2,
               {"--weights", "float32, float16 or bfloat16"});
  expect_fault(convert(model_, back_ + ".gguf", {"--weights", "int8"}), 2,
               {"'int8' is none of float32, float16, bfloat16, q8_0, q6_k, "});
  expect_fault(convert(model_, back_ + ".gguf", {"--weights", "f17"}), 2, {"'f17'"});
  ASSERT_EQ(convert(file_, back_, {"--mmproj", projector_}).exit_code, 0);
  expect_fault(convert(back_, (folder_ / "again.gguf").string(), {"--weights", "q4_0"}), 1, {"quantizing twice"});
  EXPECT_EQ(convert(back_, (folder_ / "again.gguf").string(), {"--weights", "float16"}).exit_code, 0);
  fs::remove(fs::path(model_) / "preprocessor_config.json");
  expect_fault(convert(model_, (folder_ / "other.gguf").string()), 1, {"preprocessor_config.json"});
  fs::remove(fs::path(back_) / "tokenizer.json");
  expect_fault(convert(back_, (folder_ / "other.gguf").string()), 1, {"tokenizer.json", "<|image_pad|>"});
  EXPECT_FALSE(fs::exists(folder_ / "other.gguf"));
}

}  // namespace
}  // namespace pascaline::testing
