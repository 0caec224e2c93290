#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

// The program with a model that only reads text.
class CliTextModelTest : public CliModelFixture {
 protected:
  CliTextModelTest() {
    std::filesystem::remove_all(model_);
    std::filesystem::create_directory(model_);
    write_text_model_folder(model_);
  }

  static void expect_text_only(const ProgramResult& result) {
    expect_fault(result, 1, {"this model only reads text (its model_type is qwen3); leave out the images"});
  }
};

TEST_F(CliTextModelTest, EveryCommandTakesIt) {
  const ProgramResult answer = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "4", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.error;
  EXPECT_LE(json_of(answer)["tokens"].size(), 4);
  const ProgramResult talk = on_cpu("chat", {"--greedy", "-n", "3"}, "hello\nand?\n/stats\n");
  EXPECT_EQ(talk.exit_code, 0) << talk.error;
  EXPECT_NE(talk.out.find("context: "), std::string::npos) << talk.out;
  const ProgramResult times = on_cpu("bench-model", {"--repeats", "1", "--prompt-tokens", "8", "--json"});
  ASSERT_EQ(times.exit_code, 0) << times.error;
  EXPECT_EQ(json_of(times)["passes"].size(), 2) << "a prompt and a token, but no image";

  const std::vector<std::string> on_emulator{"--device",   "emulator", "--weights",       "float32",
                                             "--kv-cache", "float32",  "--prompt-tokens", "8"};
  std::vector<std::string> words = on_emulator;
  words.push_back("--json");
  const ProgramResult profile = run("profile", words);
  ASSERT_EQ(profile.exit_code, 0) << profile.error;
  EXPECT_EQ(json_of(profile)["passes"].size(), 2);
  words = on_emulator;
  words.insert(words.end(), {"-o", (folder_ / "mine.json").string()});
  const ProgramResult workload = run("workload", words);
  ASSERT_EQ(workload.exit_code, 0) << workload.error;
  EXPECT_FALSE(Workload::load(folder_ / "mine.json").entries.empty());
}

TEST_F(CliTextModelTest, UnknownKeysAreToldOnceAndRefusedOnDemand) {
  const std::filesystem::path file = std::filesystem::path(model_) / "config.json";
  json config = json::parse(read_file(file));
  config["a_tools_own"] = 1;
  write_bytes(file, config.dump());
  const ProgramResult answer = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "2"});
  EXPECT_EQ(answer.exit_code, 0) << answer.error;
  const std::string told = "config.json: 1 key is unknown here and ignored: /a_tools_own";
  const std::size_t at = answer.error.find(told);
  ASSERT_NE(at, std::string::npos) << answer.error;
  EXPECT_EQ(answer.error.find(told, at + 1), std::string::npos) << "once: " << answer.error;
  expect_fault(on_cpu("generate", {"--prompt", "hello", "--strict"}), 1, {told, "--strict"});
}

TEST_F(CliTextModelTest, SettingsForDrawingOnlyMatterWhereTokensAreDrawn) {
  const std::filesystem::path file = std::filesystem::path(model_) / "generation_config.json";
  write_bytes(file, R"({"do_sample": true, "temperature": -1, "top_p": 7, "eos_token_id": 738})");
  const auto generate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--prompt", "hello", "-n", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return on_cpu("generate", words);
  };
  expect_fault(generate({}), 1, {"generation_config.json:/temperature: -1 is out of range"});
  expect_fault(generate({"--temperature", "0.5"}), 1, {"generation_config.json:/top_p: 7 is out of range"});
  EXPECT_EQ(generate({"--temperature", "0.5", "--top-p", "0.9"}).exit_code, 0);
  EXPECT_EQ(generate({"--greedy"}).exit_code, 0);
  write_bytes(file, R"({"do_sample": false, "temperature": 0, "top_k": -1, "top_p": 0, "eos_token_id": 738})");
  EXPECT_EQ(generate({}).exit_code, 0);
}

TEST_F(CliTextModelTest, MinPOfOneIsTheLikeliestToken) {
  const auto tokens = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--prompt", "hello", "-n", "6", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(on_cpu("generate", words))["tokens"];
  };
  const std::vector<std::string> drawn{"--temperature", "2", "--top-k", "0", "--seed", "3"};
  std::vector<std::string> likeliest = drawn;
  likeliest.insert(likeliest.end(), {"--min-p", "1"});
  EXPECT_EQ(tokens(likeliest), tokens({"--greedy"}));
  EXPECT_NE(tokens(drawn), tokens({"--greedy"}));
  expect_fault(on_cpu("generate", {"--prompt", "x", "--min-p", "1.5"}), 2, {"--min-p"});
}

TEST_F(CliTextModelTest, AdviceOnlyNamesWhatMayHelp) {
  // Logits beyond float32, which no type of weights changes.
  const std::filesystem::path file = std::filesystem::path(model_) / "model.safetensors";
  std::string bytes = read_file(file);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const json names = json::parse(bytes.substr(sizeof(header), header));
  const auto begin = names["model.norm.weight"]["data_offsets"][0].get<std::size_t>();
  for (std::size_t i = 0; i < 64; ++i) {
    const float huge = 3e38F;
    std::memcpy(bytes.data() + sizeof(header) + header + begin + i * sizeof(huge), &huge, sizeof(huge));
  }
  write_bytes(file, bytes);
  const auto told = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--prompt", "x", "--greedy"};
    words.insert(words.end(), more.begin(), more.end());
    return on_cpu("generate", words).error;
  };
  EXPECT_NE(
      told({"--weights", "float16", "--kv-cache", "float16"}).find("try --kv-cache float32 and --weights float32"),
      std::string::npos);
  const std::string half = told({"--weights", "float32", "--kv-cache", "float16"});
  EXPECT_NE(half.find("try --kv-cache float32"), std::string::npos) << half;
  EXPECT_EQ(half.find("--weights float32"), std::string::npos) << half;
  EXPECT_EQ(told({"--weights", "float32", "--kv-cache", "float32"}).find("try"), std::string::npos);
}

TEST_F(CliTextModelTest, AnswersTellTimesAsLlamaBenchDoes) {
  const json answer =
      json_of(on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "5", "--seed", "3", "--json"}));
  ASSERT_EQ(answer.at("tokens").size(), 5U) << answer;
  const json& tests = answer.at("llama_bench");
  ASSERT_EQ(tests.size(), 2U);
  const std::string prompt = std::to_string(answer.at("prompt_tokens").get<int>());
  EXPECT_EQ(tests[0].at("test"), "pp" + prompt);
  EXPECT_EQ(tests[1].at("test"), "tg4 @ d" + prompt);
  EXPECT_EQ(tests[1].at("tokens_per_s"), answer.at("tokens_per_s"));
  EXPECT_GT(tests[0].at("tokens_per_s"), 0.0);
}

TEST_F(CliTextModelTest, AChatInJsonIsALineForEachAnswer) {
  const std::vector<std::string> how{"--greedy", "-n", "5"};
  std::vector<std::string> in_json = how;
  in_json.emplace_back("--json");
  const ProgramResult talk =
      on_cpu("chat", in_json, "hello\n/stats\n/nonsense\n/help\nlost\nand?\n/clear\n/image nosuch.png\nhello\nhello\n");
  ASSERT_EQ(talk.exit_code, 1) << talk.error;
  std::vector<json> lines;
  std::istringstream out(talk.out);
  for (std::string line; std::getline(out, line);) {
    lines.push_back(json::parse(line));
  }
  ASSERT_EQ(lines.size(), 7U) << talk.out;
  EXPECT_EQ(lines[1].at("error"), "unknown command /nonsense; /help lists the commands");
  EXPECT_EQ(lines[2].at("error"), "this message is not answered because the command before it is unknown");
  EXPECT_NE(lines[4].at("error").get<std::string>().find("this model only reads text"), std::string::npos);
  EXPECT_TRUE(lines[5].contains("error")) << "a message is not answered without its image";
  for (const std::size_t i : {0, 3, 6}) {
    EXPECT_EQ(lines[i].at("end"), "max_tokens");
    EXPECT_EQ(lines[i].at("answer_tokens"), 5);
    EXPECT_EQ(lines[i].at("tokens").size(), 5U);
    EXPECT_EQ(lines[i].at("llama_bench").size(), 2U);
  }
  const auto prompt = lines[0].at("prompt_tokens").get<int>();
  EXPECT_EQ(lines[0].at("depth"), 0);
  EXPECT_EQ(lines[0].at("llama_bench")[0].at("test"), "pp" + std::to_string(prompt));
  const auto depth = lines[3].at("depth").get<int>();
  EXPECT_GE(depth, prompt + 4) << "the first turn is in the cache";
  const auto next = lines[3].at("prompt_tokens").get<int>();
  EXPECT_EQ(lines[3].at("llama_bench")[0].at("test"), "pp" + std::to_string(next) + " @ d" + std::to_string(depth));
  EXPECT_EQ(lines[3].at("llama_bench")[1].at("test"), "tg4 @ d" + std::to_string(depth + next));
  EXPECT_EQ(lines[6].at("text"), lines[0].at("text")) << "a new conversation";
  EXPECT_EQ(lines[6].at("depth"), 0);
  const ProgramResult plain = on_cpu("chat", how, "hello\n");
  EXPECT_EQ(plain.out, lines[0].at("text").get<std::string>() + " [max_tokens]\n");
  EXPECT_NE(talk.error.find("context: "), std::string::npos) << talk.error;
  EXPECT_NE(talk.error.find("/quit"), std::string::npos) << talk.error;
}

TEST_F(CliTextModelTest, AStopStringEndsTheAnswer) {
  const std::vector<std::string> words{"--prompt", "hello", "--greedy", "-n", "12", "--json"};
  const json whole = json_of(on_cpu("generate", words));
  const auto text = whole.at("text").get<std::string>();
  ASSERT_GT(text.size(), 6U);
  const std::string stop = text.substr(3, 2);
  std::vector<std::string> more = words;
  more.insert(more.end(), {"--stop", "no such text", "--stop", stop});
  const ProgramResult cut = on_cpu("generate", more);
  ASSERT_EQ(cut.exit_code, 0) << cut.error;
  EXPECT_EQ(json_of(cut).at("end"), "stop_string");
  EXPECT_EQ(json_of(cut).at("text"), text.substr(0, text.find(stop)));
  EXPECT_LT(json_of(cut).at("tokens").size(), whole.at("tokens").size());
  more.erase(std::find(more.begin(), more.end(), "--json"));
  EXPECT_EQ(on_cpu("generate", more).out, text.substr(0, text.find(stop)) + "\n");
  expect_fault(on_cpu("generate", {"--prompt", "x", "--stop", ""}), 2, {"--stop: its value is empty"});
  const ProgramResult talk = on_cpu("chat", {"--greedy", "-n", "12", "--stop", stop}, "hello\nand?\n");
  EXPECT_EQ(talk.exit_code, 0) << talk.error;
  EXPECT_NE(talk.out.find("[stop_string]"), std::string::npos) << talk.out;
}

TEST_F(CliTextModelTest, BenchModelPrintsWhatLlamaBenchDoes) {
  const std::vector<std::string> sizes{"--repeats",   "2", "--prompt-tokens", "8", "5",
                                       "--generated", "3", "--depth",         "0", "7"};
  const auto with = [&](const char* format) {
    std::vector<std::string> words = sizes;
    words.insert(words.end(), {"--format", format});
    return words;
  };
  const ProgramResult table = on_cpu("bench-model", with("llama-bench"));
  ASSERT_EQ(table.exit_code, 0) << table.error;
  EXPECT_EQ(table.out.find(
                "| model                          |       size |     params | backend    | threads |            test |"
                "                  t/s |\n| ------------------------------ | ---------: |"),
            0U)
      << table.out;
  for (const char* test : {"|             pp8 |", "|             pp5 |", "|             tg3 |", "|        pp8 @ d7 |",
                           "|        tg3 @ d7 |"}) {
    EXPECT_NE(table.out.find(test), std::string::npos) << table.out;
  }
  EXPECT_NE(table.out.find(" ± "), std::string::npos);
  const json results = json_of(on_cpu("bench-model", with("llama-bench-json")));
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[2].at("n_gen"), 3);
  EXPECT_EQ(results[5].at("n_depth"), 7);
  EXPECT_EQ(results[5].at("n_prompt"), 0);
  for (const char* text : {"build_commit", "cpu_info", "gpu_info", "backends", "model_filename", "model_type", "type_k",
                           "type_v", "test_time"}) {
    EXPECT_TRUE(results[0].at(text).is_string()) << text;
  }
  for (const char* number : {"model_size", "model_n_params", "n_batch", "n_ubatch", "n_threads", "n_gpu_layers",
                             "n_prompt", "n_gen", "n_depth", "avg_ns", "stddev_ns"}) {
    EXPECT_TRUE(results[0].at(number).is_number_integer()) << number;
  }
  EXPECT_FALSE(results[0].contains("test")) << "no name of llama-bench's";
  EXPECT_EQ(results[0].at("n_gpu_layers"), 0);
  EXPECT_EQ(results[0].at("gpu_info"), "");
  ASSERT_EQ(results[0].at("samples_ns").size(), 2U);
  EXPECT_NEAR(results[0]["samples_ns"][0].get<double>() * results[0]["samples_ts"][0].get<double>(), 8e9, 1e7);
  EXPECT_EQ(results[0].at("test_time").get<std::string>().size(), std::string("2026-01-31T12:00:00Z").size());
  ASSERT_EQ(results[0].at("samples_ts").size(), 2U);
  const double mean = (results[0]["samples_ts"][0].get<double>() + results[0]["samples_ts"][1].get<double>()) / 2;
  EXPECT_NEAR(results[0].at("avg_ts").get<double>(), mean, 1e-9 * mean);
  expect_fault(on_cpu("bench-model", {"--format", "llama-bench", "--depth", "100000"}), 1,
               {"pp512 @ d100000 needs a context of 100512 tokens", "--context"});
  const json generated = json_of(on_cpu(
      "bench-model", {"--repeats", "1", "--prompt-tokens", "0", "--generated", "2", "--format", "llama-bench-json"}));
  ASSERT_EQ(generated.size(), 1U);
  EXPECT_EQ(generated[0].at("n_gen"), 2);
  expect_fault(on_cpu("bench-model", {"--prompt-tokens", "0", "--generated", "0", "--format", "llama-bench"}), 1,
               {"no test is left"});
  expect_fault(on_cpu("bench-model", {"--prompt-tokens", "0"}), 2, {"--prompt-tokens", "llama-bench"});
  for (const char* option : {"--depth", "--generated"}) {
    expect_fault(on_cpu("bench-model", {option, "1"}), 2, {option, "give --format llama-bench or llama-bench-json"});
  }
  expect_fault(on_cpu("bench-model", {"--format", "json", "--depth", "1"}), 2, {"--depth", "llama-bench"});
  expect_fault(on_cpu("bench-model", {"--format", "llama-bench", "--no-image"}), 2, {"--no-image"});
}

TEST_F(CliTextModelTest, ATowerIsNotPlacedWhereThereIsNone) {
  for (const char* place : {"gpu", "cpu", "stream"}) {
    const ProgramResult result =
        run("generate", {"--prompt", "x", "-n", "1", "--device", "emulator", "--vision", place});
    expect_fault(result, 1, {"--vision " + std::string(place), "this model only reads text", "leave it out"});
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  }
  EXPECT_EQ(run("generate", {"--prompt", "x", "--device", "emulator", "--vision", "auto", "--plan"}).exit_code, 0);
}

TEST_F(CliTextModelTest, AnInt8CacheServesEveryCommand) {
  const std::vector<std::string> in_int8{"--kv-cache", "int8"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), in_int8.begin(), in_int8.end());
    return words;
  };
  const ProgramResult answer = on_cpu("generate", with({"--prompt", "hello", "--greedy", "-n", "4", "--json"}));
  ASSERT_EQ(answer.exit_code, 0) << answer.error;
  const ProgramResult talk = on_cpu("chat", with({"--greedy", "-n", "3"}), "hello\nand?\n/clear\nhello\n");
  EXPECT_EQ(talk.exit_code, 0) << talk.error;
  const ProgramResult times = on_cpu("bench-model", with({"--repeats", "1", "--prompt-tokens", "8", "--json"}));
  EXPECT_EQ(times.exit_code, 0) << times.error;

  const std::vector<std::string> on_emulator =
      with({"--device", "emulator", "--weights", "float32", "--prompt", "hello", "--greedy", "-n", "4", "--json"});
  const ProgramResult emulated = run("generate", on_emulator);
  ASSERT_EQ(emulated.exit_code, 0) << emulated.error;
  EXPECT_EQ(json_of(emulated)["tokens"], json_of(answer)["tokens"]);

  const std::string file = (folder_ / "int8.json").string();
  const ProgramResult workload =
      run("workload", with({"--device", "emulator", "--weights", "float32", "--prompt-tokens", "8", "--output", file}));
  ASSERT_EQ(workload.exit_code, 0) << workload.error;
  for (const char* kernel : {"qk_norm_rope", "attention_prefill", "attention_decode_qkv"}) {
    const Space space = Space::load(data_folder("search_spaces") / (std::string(kernel) + ".json"));
    const std::vector<WorkloadProblem> problems = expand(Workload::load(file), space);
    EXPECT_FALSE(problems.empty()) << kernel;
    for (const WorkloadProblem& problem : problems) {
      EXPECT_EQ(problem.problem.type("CACHE"), ElementType::int8) << problem.problem.text();
    }
  }
}

TEST_F(CliTextModelTest, UnknownTypesOfACacheAreAFault) {
  const ProgramResult wrong = on_cpu("generate", {"--prompt", "x", "--kv-cache", "int4"});
  expect_fault(wrong, 2, {"--kv-cache", "int4"});
  EXPECT_EQ(std::count(wrong.error.begin(), wrong.error.end(), '\n'), 1) << wrong.error;
}

TEST_F(CliTextModelTest, ImagesAreRefusedBeforeAnythingElse) {
  remove_weights();
  expect_text_only(on_cpu("generate", {"--prompt", "what is this?", "--image", "no_such.png"}));
  expect_text_only(on_cpu("generate", {"--prompt", "x", "--max-image-tokens", "16"}));
  const std::vector<std::string> sizes{"--prompt-tokens", "8", "--image-size", "64", "64"};
  expect_text_only(on_cpu("bench-model", sizes));
  std::vector<std::string> on_emulator = sizes;
  on_emulator.insert(on_emulator.end(), {"--device", "emulator"});
  expect_text_only(run("profile", on_emulator));
  on_emulator.insert(on_emulator.end(), {"-o", (folder_ / "mine.json").string()});
  expect_text_only(run("workload", on_emulator));
}

TEST_F(CliTextModelTest, ChatGoesOnWithoutTheImage) {
  write_bytes(folder_ / "image.png", "no image");
  const ProgramResult talk =
      on_cpu("chat", {"--greedy", "-n", "3"}, "/image " + (folder_ / "image.png").string() + "\nhello\n/stats\n");
  EXPECT_EQ(talk.exit_code, 1) << talk.error;
  EXPECT_NE(talk.out.find("this model only reads text"), std::string::npos) << talk.out;
  EXPECT_NE(talk.out.find("context: "), std::string::npos) << talk.out;
}

// The models that Transformers wrote, with the logits that it computes.
TEST_F(CliTextModelTest, ValidateAgreesWithTransformers) {
  for (const char* name : {"qwen3_tied", "qwen3_untied"}) {
    const std::filesystem::path folder = std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / name;
    model_ = folder.string();
    const ProgramResult result =
        on_cpu("validate", {"--weights", "float32", "--kv-cache", "float32", "--tolerance", "1e-5", "--json",
                            "--reference", (folder / "reference.safetensors").string()});
    EXPECT_EQ(result.exit_code, 0) << result.error << result.out;
    const json parts = json_of(result)["parts"];
    ASSERT_EQ(parts.size(), 3);
    EXPECT_EQ(parts[0]["rows"], 12);
    EXPECT_EQ(parts[2]["rows"], 3);
  }
}

TEST_F(CliTextModelTest, AReferenceWithImagesIsRefused) {
  const std::vector<std::int32_t> tokens{1};
  const std::vector<std::int32_t> grid{1, 2, 2};
  const std::vector<float> values(752);
  const auto file = (folder_ / "reference.safetensors").string();
  write_safetensors(
      file, std::vector<StoredTensor>{{"input_ids", StoredType::I32, {1}, std::as_bytes(std::span(tokens))},
                                      {"logits", StoredType::F32, {1, 752}, std::as_bytes(std::span(values))},
                                      {"pixel_values", StoredType::F32, {4, 188}, std::as_bytes(std::span(values))},
                                      {"image_grid_thw", StoredType::I32, {1, 3}, std::as_bytes(std::span(grid))}});
  expect_fault(on_cpu("validate", {"--reference", file}), 1,
               {"reference.safetensors", "it has pixel_values, but the model only reads text"});
}

TEST_F(CliTextModelTest, AFamilyThatIsNotKnownIsRefusedByName) {
  const std::filesystem::path file = std::filesystem::path(model_) / "config.json";
  json config = json::parse(read_file(file));
  config["model_type"] = "gemma";
  write_bytes(file, config.dump());
  for (const char* command : {"generate", "bench-model"}) {
    std::vector<std::string> words;
    if (std::string(command) == "generate") {
      words = {"--prompt", "x"};
    }
    expect_fault(on_cpu(command, words), 1,
                 {"config.json:/model_type: the model family 'gemma' is not known, only 'qwen3_vl' (Qwen3-VL), "
                  "'qwen3' (Qwen3, text only), 'llama' (Llama, text only, such as SmolLM2)"});
  }
}

}  // namespace
}  // namespace pascaline::testing
