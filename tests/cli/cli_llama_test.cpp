#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include "core/util/paths.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

// The program with a GGUF file of the family llama that brings its text (tests/model/make_llama_fixture.py).
class CliLlamaTest : public CliModelFixture {
 protected:
  CliLlamaTest() { model_ = (std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "llama_small.gguf").string(); }
};

TEST_F(CliLlamaTest, EveryCommandTakesTheFile) {
  const ProgramResult answer = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "4", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.error;
  EXPECT_GT(json_of(answer)["prompt_tokens"], 50) << "SmolLM2's template has a system message of its own";
  const ProgramResult talk = on_cpu("chat", {"--greedy", "-n", "3"}, "hello\nand?\n/stats\n");
  EXPECT_EQ(talk.exit_code, 0) << talk.error;
  const ProgramResult times = on_cpu("bench-model", {"--repeats", "1", "--prompt-tokens", "8", "--json"});
  EXPECT_EQ(times.exit_code, 0) << times.error;
  const ProgramResult plan = run("bench-model", {"--device", "emulator", "--plan"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  const std::string mine = (folder_ / "mine.json").string();
  const ProgramResult workload = run("workload", {"--device", "emulator", "--prompt-tokens", "8", "-o", mine});
  ASSERT_EQ(workload.exit_code, 0) << workload.error;
  const std::string problems = json::parse(read_file(mine)).dump();
  EXPECT_NE(problems.find(R"("NORM":0)"), std::string::npos) << "heads are only turned";
  EXPECT_NE(problems.find(R"("EPSILON":10000)"), std::string::npos) << problems;
}

TEST_F(CliLlamaTest, LogitsAreThoseOfTransformers) {
  const std::string reference = (std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "llama_small.safetensors").string();
  EXPECT_EQ(on_cpu("validate", {"--reference", reference, "--weights", "float32"}).exit_code, 0);
  EXPECT_EQ(on_cpu("validate", {"--reference", reference}).exit_code, 3) << "activations are rounded to int8";
}

TEST_F(CliLlamaTest, ATextBeginsWithTheTokenOfBeginning) {
  ProgramSetting setting;
  setting.input = "hello\n<|im_end|>\n";
  const ProgramResult ids = run_program(folder_.path(), {"tokenize", "--model", model_}, setting);
  EXPECT_EQ(ids.out, "1 264\n1 2\n") << ids.error;
  write_bytes(folder_ / "text.txt", "hello the hello");
  const ProgramResult result = on_cpu("validate", {"--text", (folder_ / "text.txt").string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["tokens"], 5) << "one of them that of beginning";
}

TEST_F(CliLlamaTest, AFolderOfTheModelDoesTheSame) {
  const std::string folder = (folder_ / "folder").string();
  ASSERT_EQ(run_program(folder_.path(), {"convert", model_, folder, "-q"}).exit_code, 0);
  const std::vector<std::string> words{"--prompt", "hello", "--greedy", "-n", "6", "--json", "--weights", "float32"};
  const std::string expected = json_of(on_cpu("generate", words))["tokens"].dump();
  ProgramSetting setting;
  setting.input = "hello\n<|im_end|>\n";
  const ProgramResult ids = run_program(folder_.path(), {"tokenize", "--model", folder}, setting);
  EXPECT_EQ(ids.out, "1 264\n1 2\n") << ids.error;
  const std::string file = (folder_ / "again.gguf").string();
  ASSERT_EQ(run_program(folder_.path(), {"convert", folder, file, "-q"}).exit_code, 0);
  const std::string original = std::exchange(model_, folder);
  EXPECT_EQ(json_of(on_cpu("generate", words))["tokens"].dump(), expected);
  const std::string reference = (std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "llama_small.safetensors").string();
  EXPECT_EQ(on_cpu("validate", {"--reference", reference, "--weights", "float32"}).exit_code, 0);
  model_ = file;
  EXPECT_EQ(json_of(on_cpu("generate", words))["tokens"].dump(), expected);
  EXPECT_EQ(on_cpu("validate", {"--reference", reference, "--weights", "float32"}).exit_code, 0);
  const ProgramResult talk = on_cpu("chat", {"--greedy", "-n", "3"}, "hello\n");
  EXPECT_EQ(talk.exit_code, 0) << talk.error;
}

TEST_F(CliLlamaTest, HowImagesArePreparedIsCheckedByEveryCommand) {
  const std::filesystem::path data = PASCALINE_CHECKPOINT_DATA;
  model_ = (data / "tiny_a.gguf").string();
  const std::string bytes = read_file(data / "mmproj-tiny_a.gguf");
  const std::string projector = (folder_ / "mmproj.gguf").string();
  const auto refused = [&](const std::string& key, std::size_t offset, const std::string& value,
                           const std::string& problem) {
    std::string damaged = bytes;
    const std::size_t place = damaged.find(key) + key.size();  // then type, of elements, count of 8 bytes, elements
    damaged.replace(place + offset, value.size(), value);
    write_bytes(projector, damaged);
    for (const char* command : {"bench-model", "profile", "validate", "workload"}) {
      std::vector<std::string> words{command, "--model", model_, "--mmproj", projector, "--device", "emulator"};
      if (std::string(command) == "workload") {
        words.insert(words.end(), {"-o", (folder_ / "w.json").string()});
      }
      expect_fault(run_program(folder_.path(), words), 1, {projector + ": key '" + key + "': " + problem});
    }
  };
  const std::string none("\x00\x00\xC0\x7F", 4);
  refused("clip.vision.image_mean", 16, none, "it does not have a possible value for each of 3 colours");
  refused("clip.vision.image_std", 20, std::string(4, '\0'), "it does not have a possible value for each of 3 colours");
  refused("clip.vision.image_std", 4, std::string("\x05\x00\x00\x00", 4), "its element 0 is not a floating-point");
}

TEST_F(CliLlamaTest, WhatIsNoModelIsToldWithWhatIs) {
  model_ = (folder_ / "random.bin").string();
  for (const char* bytes : {"", "no model at all"}) {
    write_bytes(model_, bytes);
    expect_fault(on_cpu("generate", {"--prompt", "x"}), 1,
                 {model_ + ": this is neither a folder nor a GGUF file; give a model's folder", "or a GGUF file"});
  }
  model_ = "/dev/null";
  expect_fault(on_cpu("generate", {"--prompt", "x"}), 1, {"/dev/null: this is neither a folder nor a GGUF file"});
}

TEST_F(CliLlamaTest, ANameInAnotherEncodingIsRead) {
  std::string bytes = read_file(model_);
  const std::string key = "general.name";
  const std::size_t place = bytes.find(key);
  ASSERT_NE(place, std::string::npos);
  bytes[place + key.size() + 4 + 8] = '\xE9';  // after the type and the length
  const std::string named = (folder_ / "named.gguf").string();
  write_bytes(named, bytes);
  model_ = named;
  const ProgramResult answer = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "2", "--json"});
  EXPECT_EQ(answer.exit_code, 0) << answer.error;
  const ProgramResult folder = run_program(folder_.path(), {"convert", named, (folder_ / "folder").string(), "-q"});
  EXPECT_EQ(folder.exit_code, 0) << folder.error;
}

TEST_F(CliLlamaTest, ARawPromptIsContinuedAsItIs) {
  const auto asked = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--greedy", "-n", "4", "--json", "--raw"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult answer = on_cpu("generate", words);
    EXPECT_EQ(answer.exit_code, 0) << answer.error;
    return json_of(answer);
  };
  EXPECT_EQ(asked({"--prompt", "hello"})["prompt_tokens"], 2) << "and the token of beginning";
  EXPECT_EQ(asked({"--prompt", "hello<|im_end|>"})["prompt_tokens"], 3) << "special tokens count";
  EXPECT_EQ(asked({"--prompt", "<|im_start|>hello"})["prompt_tokens"], 2) << "it begins with the token already";
  expect_fault(on_cpu("generate", {"--raw", "--prompt", ""}), 2, {"--prompt: its value is empty"});
  expect_fault(on_cpu("generate", {"--raw", "--prompt", std::string(3000, 'x')}), 1, {"context of 256", "--context"});
  for (const char* option : {"--system", "--image", "--template", "--max-image-tokens"}) {
    expect_fault(on_cpu("generate", {"--raw", "--prompt", "x", option, "7"}), 2, {"--raw", option});
  }
}

TEST_F(CliLlamaTest, WithoutATokenizerThatIsWhatIsSaid) {
  const std::string scaled = (std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "llama_scaled.gguf").string();
  const std::string folder = (folder_ / "folder").string();
  ASSERT_EQ(run_program(folder_.path(), {"convert", scaled, folder, "-q"}).exit_code, 0);
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, std::vector<std::string>{"--raw"}}) {
    std::vector<std::string> words{"--prompt", "x"};
    words.insert(words.end(), how.begin(), how.end());
    model_ = scaled;
    expect_fault(on_cpu("generate", words), 1, {scaled + ": key 'tokenizer.ggml.model': there is no tokenizer"});
    model_ = folder;
    expect_fault(on_cpu("generate", words), 1, {"tokenizer.json: there is no such file, which text needs"});
  }
}

TEST_F(CliLlamaTest, ARawPromptNeedsNoTemplate) {
  const std::string folder = (folder_ / "folder").string();
  ASSERT_EQ(run_program(folder_.path(), {"convert", model_, folder, "-q"}).exit_code, 0);
  std::filesystem::remove(std::filesystem::path(folder) / "chat_template.jinja");
  const std::string original = std::exchange(model_, folder);
  expect_fault(on_cpu("generate", {"--prompt", "hello"}), 1, {"there is no chat template", "--template"});
  const ProgramResult answer = on_cpu("generate", {"--raw", "--prompt", "hello", "--greedy", "-n", "4", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.error;
  model_ = original;
  EXPECT_EQ(json_of(answer)["text"],
            json_of(on_cpu("generate", {"--raw", "--prompt", "hello", "--greedy", "-n", "4", "--json"}))["text"]);
}

TEST_F(CliLlamaTest, ATemplateCanBeNamed) {
  const auto tokens = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--prompt", "hello", "-n", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult answer = on_cpu("generate", words);
    EXPECT_EQ(answer.exit_code, 0) << answer.error;
    return json_of(answer)["prompt_tokens"].get<int>();
  };
  EXPECT_LT(tokens({"--template", "chatml"}), tokens({}) / 2) << "it has no system message of its own";
  const std::string lacks =
      "no token is '<|start_header_id|>', which the chat template llama3 (the model's own, or "
      "--template llama3) writes";
  expect_fault(on_cpu("generate", {"--prompt", "hello", "--template", "llama3"}), 1,
               {model_ + ": key 'tokenizer.ggml.tokens': " + lacks});
  const std::string file = std::exchange(model_, (folder_ / "folder").string());
  ASSERT_EQ(run_program(folder_.path(), {"convert", file, model_, "-q"}).exit_code, 0);
  expect_fault(on_cpu("generate", {"--prompt", "hello", "--template", "llama3"}), 1,
               {model_ + "/tokenizer.json: " + lacks});
  expect_fault(on_cpu("chat", {"--template", "nonesuch"}, "hello\n"), 1,
               {"'nonesuch' is neither a known chat template"});
}

}  // namespace
}  // namespace pascaline::testing
