#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliQuantizeTest : public CliModelFixture {
 protected:
  std::string out_ = (folder_ / "quantized").string();

  [[nodiscard]] ProgramResult quantize(const std::vector<std::string>& more, const ProgramSetting& setting = {}) const {
    std::vector<std::string> words{"quantize", "--model", model_, "-o", out_};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(folder_.path(), words, setting);
  }
  // Tokens that a model answers with.
  [[nodiscard]] std::string answer(const std::string& model, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"generate", "--model",   model,      "--device", "cpu", "--context", "256",
                                   "--prompt", "hello you", "--greedy", "-n",       "12",  "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run_program(folder_.path(), words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json_of(result)["tokens"].dump();
  }
  // Writes a file, with its folder, and returns its path.
  [[nodiscard]] std::string put(const std::string& name, const std::string& text) const {
    const fs::path file = folder_ / name;
    fs::create_directories(file.parent_path());
    write_file_atomically(file, text);
    return file.string();
  }
  // Names of all that is in the tests' folder.
  [[nodiscard]] std::set<std::string> left() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("quantized")) {
        names.insert(name);
      }
    }
    return names;
  }
};

TEST_F(CliQuantizeTest, EveryNameAnswersAsQuantizedAtLoad) {
  for (const std::string_view name : WeightRecipe::names()) {
    const std::string given(name);
    const ProgramResult result = quantize({"--weights", given, "--force"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    if (!given.starts_with("float")) {
      EXPECT_NE(result.error.find("rows of "), std::string::npos) << result.error;
      EXPECT_NE(result.error.find("are filled up with zeros"), std::string::npos);
    }
    EXPECT_LE(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_NE(result.out.find("tensors in " + given + ", "), std::string::npos) << result.out;
    const std::string expected = answer(model_, {"--weights", given});
    EXPECT_EQ(answer(out_, {}), expected) << name;
    EXPECT_EQ(answer(out_, {"--weights", given}), expected) << name;
  }
  EXPECT_EQ(left(), std::set<std::string>{"quantized"});
}

TEST_F(CliQuantizeTest, FilesOfTheFolderComeAlong) {
  (void)put("model/chat_template.jinja", "{{ messages }}");
  (void)put("model/LICENSE", "free");
  (void)put("model/other.safetensors.index.json", "{}");
  (void)put("model/weights.bin", "x");
  (void)put("model/.hidden.json", "x");
  (void)put("model/adapter_config.json", "{}");
  ASSERT_EQ(quantize({"--weights", "q8_0"}).exit_code, 0);
  for (const char* file : {"config.json", "tokenizer.json", "preprocessor_config.json"}) {
    EXPECT_EQ(read_file(fs::path(out_) / file), read_file(fs::path(model_) / file)) << file;
  }
  EXPECT_TRUE(fs::exists(fs::path(out_) / "chat_template.jinja"));
  EXPECT_TRUE(fs::exists(fs::path(out_) / "LICENSE"));
  for (const char* file : {"other.safetensors.index.json", "weights.bin", ".hidden.json", "adapter_config.json"}) {
    EXPECT_FALSE(fs::exists(fs::path(out_) / file)) << file;
  }
  EXPECT_EQ(fs::status(out_).permissions() & fs::perms::others_read, fs::perms::others_read);
}

TEST_F(CliQuantizeTest, ARecipeFileSaysItForSingleTensors) {
  const std::string recipe = put("mine.json", R"({"tensors": [
    {"name": "*embed_tokens.weight", "type": "q8_0"}, {"name": "*visual*", "type": "float16"}], "others": "q4_0"})");
  ASSERT_EQ(quantize({"--weights", recipe}).exit_code, 0);
  const ModelConfig config = load_model_config(out_);
  const Checkpoint checkpoint = Checkpoint::open(out_, config);
  EXPECT_EQ(checkpoint.recipe(), "mine.json");
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const TensorSpec& tensor = checkpoint.tensors()[i];
    if (tensor.name.find("visual") != std::string::npos && tensor.kind == TensorKind::matrix) {
      EXPECT_EQ(checkpoint.stored(i).type, StoredType::F16) << tensor.name;
    }
  }
  EXPECT_EQ(checkpoint.format(0), StoredFormat{ElementType::q8_0});
  EXPECT_EQ(answer(out_, {}), answer(model_, {"--weights", recipe}));
  const std::string wrong = put("wrong.json", R"({"tensors": [{"name": "x*", "type": "q8_0"}], "others": "q4_0"})");
  expect_fault(quantize({"--weights", wrong, "--force"}), 1, {wrong, "'x*' fits no matrix of this model"});
  const std::string split =
      put("split.json", R"({"tensors": [{"name": "*up_proj.weight", "type": "q8_0"}], "others": "q4_0"})");
  expect_fault(quantize({"--weights", split, "--force"}), 1, {"are one matrix here and need one type"});
  EXPECT_EQ(left(), std::set<std::string>{"quantized"});
  const std::string values =
      put("values.json", R"({"tensors": [{"name": "*v_proj.weight", "type": "q8_0"}], "others": "q4_0"})");
  ASSERT_EQ(quantize({"--weights", values, "--force"}).exit_code, 0);
  EXPECT_EQ(answer(out_, {}), answer(model_, {"--weights", values})) << "queries, keys and values of several types";
}

TEST_F(CliQuantizeTest, APatternBehindABroaderOneWarns) {
  const std::string recipe = put("mine.json", R"({"tensors": [{"name": "*", "type": "q8_0"},
    {"name": "*visual*", "type": "float16"}], "others": "q4_0"})");
  const ProgramResult result = quantize({"--weights", recipe});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("warning: " + recipe + ": '*visual*' decides nothing, as earlier patterns fit all"),
            std::string::npos)
      << result.error;
}

TEST_F(CliQuantizeTest, BlocksWhoseScaleIsTooSmallAreCounted) {
  const Safetensors stored(fs::path(model_) / "model.safetensors");
  std::vector<StoredTensor> tensors = stored.tensors();
  const auto down = std::find_if(tensors.begin(), tensors.end(), [](const StoredTensor& tensor) {
    return tensor.name.ends_with("layers.1.mlp.down_proj.weight");
  });
  ASSERT_NE(down, tensors.end());
  std::vector<std::byte> bytes(down->bytes.begin(), down->bytes.end());
  const std::vector<float> small(32, 1e-9F);
  ASSERT_GE(down->shape[1], 32);
  std::memcpy(bytes.data(), small.data(), small.size() * sizeof(float));
  down->bytes = bytes;
  const fs::path changed = folder_ / "changed";
  fs::copy(model_, changed);
  write_safetensors(changed / "model.safetensors", tensors);
  const ProgramResult result =
      run_program(folder_.path(), {"quantize", "--model", changed.string(), "-o", out_, "--weights", "q8_0"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("warning: 1 block of weights became 0, as the scale"), std::string::npos) << result.error;
  EXPECT_EQ(quantize({"--weights", "q8_0", "--force"}).error.find("became 0"), std::string::npos);
}

TEST_F(CliQuantizeTest, AnotherTypeThanTheStoredOneWarns) {
  ASSERT_EQ(quantize({"--weights", "q8_0"}).exit_code, 0);
  const std::vector<std::string> words{"generate", "--model", out_,       "--device", "cpu", "--context", "256",
                                       "--prompt", "hello",   "--greedy", "-n",       "2",   "--weights"};
  const auto error_with = [&](const char* weights) {
    std::vector<std::string> all = words;
    all.emplace_back(weights);
    const ProgramResult result = run_program(folder_.path(), all);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.error;
  };
  const std::string warning =
      "matrices are stored in another format (q8_0) than q4_k asks for: quantizing twice loses accuracy";
  EXPECT_NE(error_with("q4_k").find(warning), std::string::npos);
  EXPECT_EQ(error_with("float32").find("warning"), std::string::npos);
  EXPECT_EQ(error_with("q8_0").find("warning"), std::string::npos);
  expect_fault(run_program(folder_.path(), {"quantize", "--model", out_, "-o", out_ + "2", "--weights", "q4_k"}), 1,
               {"the model is quantized already (q8_0)", "start from the original"});
  EXPECT_EQ(left(), std::set<std::string>{"quantized"});
}

TEST_F(CliQuantizeTest, NothingIsOverwrittenByMistake) {
  (void)put("quantized/notes.txt", "mine");
  expect_fault(quantize({"--weights", "q8_0"}), 1, {"quantized exists", "--force"});
  expect_fault(quantize({"--weights", "q8_0", "--force"}), 1, {"this is not a model's folder"});
  (void)put("quantized/config.json", "{}");
  fs::create_directory(fs::path(out_) / "more");
  expect_fault(quantize({"--weights", "q8_0", "--force"}), 1, {"it has the folder more in it"});
  fs::remove(fs::path(out_) / "more");
  EXPECT_EQ(quantize({"--weights", "q8_0", "--force"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(fs::path(out_) / "notes.txt"));
  const std::string own = read_file(fs::path(model_) / "model.safetensors");
  expect_fault(
      run_program(folder_.path(), {"quantize", "--model", model_, "-o", model_, "--weights", "q8_0", "--force"}), 1,
      {"is the model itself"});
  EXPECT_EQ(read_file(fs::path(model_) / "model.safetensors"), own);
  expect_fault(run_program(folder_.path(), {"quantize", "--model", model_, "-o", out_ + "/config.json", "--weights",
                                            "q8_0", "--force"}),
               1, {"this is not a folder"});
  expect_fault(run_program(folder_.path(), {"quantize", "--model", model_, "-o", out_ + "/a/b", "--weights", "q8_0"}),
               1, {"cannot create", "No such file"});
  EXPECT_EQ(left(), std::set<std::string>{"quantized"});
}

TEST_F(CliQuantizeTest, AGgufFileIsSentToConvert) {
  const std::string file = put("m.gguf", "GGUF");
  expect_fault(run_program(folder_.path(), {"quantize", "--model", file, "-o", out_, "--weights", "q8_0"}), 1,
               {file + " is a GGUF file", "make one of the file with pascaline convert"});
}

TEST_F(CliQuantizeTest, AFullDiskLeavesNothing) {
  ProgramSetting setting;
  setting.file_size_limit = 4096;
  const ProgramResult result = quantize({"--weights", "q8_0"}, setting);
  expect_fault(result, 1, {"cannot write", "model.safetensors"});
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(CliQuantizeTest, ValuesThatCannotBeHeldAreNamed) {
  const fs::path file = fs::path(model_) / "model.safetensors";
  const Safetensors content(file);
  for (const auto& [value, reason] :
       {std::pair(std::numeric_limits<float>::quiet_NaN(), "is nan; the checkpoint is damaged"),
        std::pair(1e30F, "needs a scale beyond float16, so it cannot be kept as q8_0")}) {
    std::vector<StoredTensor> tensors = content.tensors();
    const auto down = std::find_if(tensors.begin(), tensors.end(), [](const StoredTensor& tensor) {
      return tensor.name.ends_with("layers.1.mlp.down_proj.weight");
    });
    ASSERT_NE(down, tensors.end());
    ASSERT_EQ(down->type, StoredType::F32);
    std::vector<std::byte> bytes(down->bytes.begin(), down->bytes.end());
    std::memcpy(bytes.data() + sizeof value * (static_cast<std::size_t>(down->shape[1]) * 2 + 1), &value, sizeof value);
    down->bytes = bytes;
    const fs::path bad = folder_ / "bad";
    fs::remove_all(bad);
    fs::copy(model_, bad);
    write_safetensors(bad / "model.safetensors", tensors);
    const ProgramResult result =
        run_program(folder_.path(), {"quantize", "--model", bad.string(), "-o", out_, "--weights", "q8_0"});
    expect_fault(result, 1,
                 {(bad / "model.safetensors").string() + ": tensor '", "layers.1.mlp.down_proj.weight': value ",
                  " of row 2 ", reason});
    EXPECT_EQ(left(), std::set<std::string>{});
  }
}

TEST_F(CliQuantizeTest, TensorsThatStayAsTheyAreMustBeFiniteToo) {
  const Safetensors content(fs::path(model_) / "model.safetensors");
  std::vector<StoredTensor> tensors = content.tensors();
  const auto norm = std::find_if(tensors.begin(), tensors.end(), [](const StoredTensor& tensor) {
    return tensor.name.ends_with("layers.1.input_layernorm.weight");
  });
  ASSERT_NE(norm, tensors.end());
  ASSERT_EQ(norm->type, StoredType::F32);
  std::vector<std::byte> bytes(norm->bytes.begin(), norm->bytes.end());
  const float value = std::numeric_limits<float>::infinity();
  std::memcpy(bytes.data() + 5 * sizeof value, &value, sizeof value);
  norm->bytes = bytes;
  const fs::path bad = folder_ / "bad_norm";
  fs::copy(model_, bad);
  write_safetensors(bad / "model.safetensors", tensors);
  expect_fault(run_program(folder_.path(), {"quantize", "--model", bad.string(), "-o", out_, "--weights", "q4_k"}), 1,
               {"layers.1.input_layernorm.weight': value ", "is inf; the checkpoint is damaged"});
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(CliQuantizeTest, ADamagedFolderIsNotTakenForOneOfFloat16) {
  ASSERT_EQ(quantize({"--weights", "q4_k"}).exit_code, 0);
  const fs::path file = fs::path(out_) / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"workload", "--model", out_, "--device", "emulator", "-o", "w.json"},
        {"sweep", "--model", out_, "--device", "emulator", "--db", "t.db"},
        {"generate", "--model", out_, "--device", "emulator", "--prompt", "x", "--plan"}}) {
    expect_fault(run_program(folder_.path(), words), 1, {"model.safetensors"});
  }
}

TEST_F(CliQuantizeTest, WrongWordsAreRefused) {
  expect_fault(quantize({}), 2, {"--weights is required"});
  expect_fault(quantize({"--weights", "q4k"}), 2, {"'q4k' (did you mean 'q4_k'?) is none of float32, "});
  expect_fault(quantize({"--weights", "auto"}), 2, {"'auto' is none of"});
  expect_fault(quantize({"--weights", model_}), 2, {"what has that name is no regular file"});
  expect_fault(quantize({"--weights", "q8_0", "--jobs", "0"}), 2, {"--jobs"});
  remove_weights();
  expect_fault(quantize({"--weights", "q8_0"}), 1, {"there is neither model.safetensors nor"});
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(CliQuantizeTest, AutomaticWeightsAreTold) {
  const std::vector<std::string> words{"--prompt", "hello", "--greedy", "-n", "2", "--weights", "auto"};
  const ProgramResult on_processor = on_cpu("generate", words);
  EXPECT_EQ(on_processor.exit_code, 0);
  EXPECT_NE(on_processor.error.find("pascaline: weights q8_0: the model needs "), std::string::npos)
      << on_processor.error;
  ASSERT_EQ(quantize({"--weights", "q4_0"}).exit_code, 0);
  const ProgramResult stored =
      run_program(folder_.path(), {"generate", "--model", out_, "--device", "cpu", "--context", "256", "--prompt",
                                   "hello", "--greedy", "-n", "2", "--weights", "auto"});
  EXPECT_EQ(stored.exit_code, 0);
  EXPECT_NE(stored.error.find("weights q4_0 (as stored): "), std::string::npos) << stored.error;
  const ProgramResult observed =
      run("workload", {"--device", "emulator", "--weights", "auto", "-o", (folder_ / "w.json").string()});
  expect_fault(observed, 2, {"--weights auto is decided by the memory that is free", "name the type"});
}

TEST_F(CliQuantizeTest, AutomaticWeightsAreTheMostAccurateThatFit) {
  const auto chosen = [&](const std::string& limit) {
    const ProgramResult result =
        run("generate", {"--device", "emulator", "--prompt", "hello", "--greedy", "-n", "1", "--weights", "auto",
                         "--kv-cache", "float16", "--memory-limit", limit});
    const std::size_t begin = result.error.find("weights ") + 8;
    return result.error.substr(begin, result.error.find(':', begin) - begin);
  };
  EXPECT_EQ(chosen("1GiB"), "float16");
  EXPECT_EQ(chosen("100kB"), "q4_k");
}

TEST_F(CliQuantizeTest, ValidateAndWorkloadTakeTheStoredFormats) {
  ASSERT_EQ(quantize({"--weights", "q8_0"}).exit_code, 0);
  const ProgramResult compared =
      run_program(folder_.path(), {"validate", "--model", out_, "--device", "cpu", "--context", "256", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  EXPECT_EQ(json_of(compared)["weights"], "q8_0 (as stored)");
  const ProgramResult observed =
      run_program(folder_.path(), {"workload", "--model", out_, "--device", "emulator", "--untuned", "--prompt-tokens",
                                   "8", "-o", (folder_ / "w.json").string()});
  ASSERT_EQ(observed.exit_code, 0) << observed.error;
  EXPECT_NE(read_file(folder_ / "w.json").find("q8_0"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
