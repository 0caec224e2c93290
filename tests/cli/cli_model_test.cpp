#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "core/workload.hpp"
#include "db/store.hpp"
#include "db/sweep_plan.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/session/session.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/cli/cli_model_fixture.hpp"
#include "tests/cli/endless_compiler.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

class CliModelTest : public CliModelFixture {
 protected:
  // A reference that the model itself made, with one logit of the prompt changed by `fault`.
  [[nodiscard]] std::string write_reference(float fault) const {
    ModelSessionOptions options;
    options.model = model_;
    options.device = "cpu";
    options.options.weights = options.options.cache = ElementType::float32;
    ModelSession session(options);
    const std::vector<std::int32_t> tokens{1, 2, 3, 5, 8};
    const std::vector<std::int32_t> later{13, 21};
    std::vector<float> logits;
    session.model().append({tokens, {}}, [&](std::int64_t, std::span<const float> rows) {
      logits.insert(logits.end(), rows.begin(), rows.end());
    });
    logits[7] += fault;
    std::vector<float> decoded;
    for (const std::int32_t& token : later) {
      session.model().append({std::span(&token, 1), {}});
      const std::vector<float> row = session.model().logits();
      decoded.insert(decoded.end(), row.begin(), row.end());
    }
    const auto file = (folder_ / "reference.safetensors").string();
    write_safetensors(file, std::vector<StoredTensor>{
                                {"input_ids", StoredType::I32, {5}, std::as_bytes(std::span(tokens))},
                                {"logits", StoredType::F32, {5, 752}, std::as_bytes(std::span(logits))},
                                {"decode_ids", StoredType::I32, {2}, std::as_bytes(std::span(later))},
                                {"decode_logits", StoredType::F32, {2, 752}, std::as_bytes(std::span(decoded))}});
    return file;
  }
};

TEST_F(CliModelTest, GenerateIsInterruptedWhileItCompiles) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    EndlessCompiler(folder).interrupt(
        {"generate", "--model", model_, "--untuned", "--device", "emulator", "--context", "256", "--prompt", "x"},
        signal, 130);
  }
}

// It has nothing of its own to put in order.
TEST_F(CliModelTest, ProfileInterruptedWhileItCompilesLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    EndlessCompiler(folder).interrupt(
        {"profile", "--model", model_, "--untuned", "--device", "emulator", "--context", "256"}, signal, 130);
  }
}

TEST_F(CliModelTest, GenerateAnswers) {
  const ProgramResult text = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "6"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  const ProgramResult result = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "6", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const json answer = json_of(result);
  EXPECT_EQ(answer["text"].get<std::string>() + "\n", text.out);
  EXPECT_LE(answer["tokens"].size(), 6);
  EXPECT_GT(answer["prompt_tokens"], 5);
  const auto drawn = [&](const char* seed) {
    return json_of(on_cpu("generate", {"--prompt", "hello", "-n", "8", "--json", "--temperature", "3", "--top-k", "0",
                                       "--top-p", "1", "--seed", seed}))["tokens"];
  };
  EXPECT_EQ(drawn("5"), drawn("5"));
  EXPECT_NE(drawn("5"), drawn("6"));
}

TEST_F(CliModelTest, WrongInputIsAFault) {
  expect_fault(on_cpu("generate", {"--prompt", "x", "--image", "nosuch.png"}), 1, {"nosuch.png"});
  expect_fault(on_cpu("generate", {"--prompt", std::string(2000, 'x')}), 1, {"context of 256", "--context"});
  expect_fault(on_cpu("generate", {}), 2, {"--prompt"});
  expect_fault(on_cpu("generate", {"--prompt", "x", "--weights", "float64"}), 2, {"--weights"});
  expect_fault(on_cpu("generate", {"--prompt", "x", "--greedy", "--temperature", "1"}), 2, {"--temperature"});
  expect_fault(on_cpu("profile", {}), 1, {"on the processor", "--device emulator"});
  expect_fault(run("generate", {"--prompt", "x", "--device", "gpu"}), 2, {"'gpu' is not a device", "emulator or cpu"});
  std::filesystem::remove(std::filesystem::path(model_) / "config.json");
  expect_fault(on_cpu("generate", {"--prompt", "x"}), 1, {"config.json"});
}

TEST_F(CliModelTest, RequestsAreCheckedBeforeTheWeights) {
  std::filesystem::remove(std::filesystem::path(model_) / "model.safetensors");
  expect_fault(on_cpu("generate", {"--prompt", "x", "--image", "nosuch.png"}), 1, {"nosuch.png"});
  expect_fault(on_cpu("generate", {"--prompt", std::string(2000, 'x')}), 1, {"context of 256", "--context"});
  expect_fault(on_cpu("generate", {"--prompt", "x", "-n", "300"}), 1, {"context of 256", "--max-tokens"});
  expect_fault(on_cpu("chat", {"--system", std::string(2000, 'x')}, "hi\n"), 1, {"context of 256", "--context"});
  expect_fault(on_cpu("generate", {"--prompt", "x"}), 1, {"model.safetensors"});
  expect_fault(on_cpu("generate", {"--prompt", "x", "--context", "5000"}), 1, {"1 to 4096"});
  write_bytes(folder_ / "broken.png", "\x89PNG\r\n\x1a\nnothing");
  expect_fault(on_cpu("generate", {"--prompt", "x", "--image", (folder_ / "broken.png").string()}), 1, {"broken.png"});
}

TEST_F(CliModelTest, LargeImagesAreMadeToFit) {
  const std::string file = (folder_ / "photo.png").string();
  write_bytes(file, png_of(black_image(64, 64)));  // 64 tokens
  const auto ask = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--prompt", "x", "--image", file, "--image", file, "--greedy", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return on_cpu("generate", words);
  };
  const ProgramResult whole = ask({"-n", "2"});
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  EXPECT_EQ(whole.error, "");
  const ProgramResult smaller = ask({"-n", "2", "--context", "100"});
  ASSERT_EQ(smaller.exit_code, 0) << smaller.error;
  EXPECT_EQ(std::count(smaller.error.begin(), smaller.error.end(), '\n'), 1) << smaller.error;
  EXPECT_NE(smaller.error.find("--max-image-tokens"), std::string::npos) << smaller.error;
  EXPECT_LT(json_of(smaller)["prompt_tokens"], 99);
  EXPECT_GT(json_of(whole)["prompt_tokens"], 128);
  expect_fault(ask({"--max-image-tokens", "64", "--context", "100"}), 1, {"--max-image-tokens", "--context"});
  const ProgramResult chat = on_cpu("chat", {"--context", "100", "--greedy", "-n", "2"}, "/image " + file + "\nx\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.error;
  EXPECT_NE(chat.error.find("made smaller"), std::string::npos) << chat.error;
}

TEST_F(CliModelTest, AMemoryLimitIsKeptOrSaysWhatWouldFit) {
  const std::vector<std::string> asked{"--prompt", "x", "--greedy", "-n", "2", "--json"};
  const auto ask = [&](const std::string& limit) {
    std::vector<std::string> words = asked;
    words.insert(words.end(), {"--memory-limit", limit});
    return on_cpu("generate", words);
  };
  const ProgramResult whole = on_cpu("generate", asked);
  const ProgramResult limited = ask("64MiB");
  ASSERT_EQ(limited.exit_code, 0) << limited.error;
  EXPECT_EQ(json_of(limited)["text"], json_of(whole)["text"]);
  const ProgramResult refused = ask("40kB");
  EXPECT_EQ(refused.exit_code, 1);
  for (const char* part : {"--memory-limit allows 0.0 MiB", "weights, matrices in float32", "nothing fits"}) {
    EXPECT_NE(refused.error.find(part), std::string::npos) << part << " in\n" << refused.error;
  }
  for (const char* wrong : {"5", "lots", "-1GiB", "1.5"}) {
    expect_fault(ask(wrong), 2, {"--memory-limit", "such as 1.5GiB"});
  }
}

TEST_F(CliModelTest, APlanSaysWhereEachPartIsAndLoadsNothing) {
  const std::vector<std::string> on_emulator{"--device", "emulator", "--plan"};
  const auto plan = [&](const std::string& command, std::vector<std::string> more) {
    more.insert(more.end(), on_emulator.begin(), on_emulator.end());
    return run(command, more);
  };
  remove_weights();
  for (const char* command : {"bench-model", "profile", "validate", "chat"}) {
    const ProgramResult result = plan(command, {"--random-weights", "--gpu-layers", "1", "--offload", "stream"});
    ASSERT_EQ(result.exit_code, 0) << command << ": " << result.error;
    for (const char* part : {"device memory: ", "weights of 1 layer in float16", "slots for 1 layer that",
                             "host memory: ", "streamed   layer 1", "kernel by kernel, as a graph",
                             "measured:", "copying from the host to the device", "(chosen)", "prompt of 512"}) {
      EXPECT_NE(result.out.find(part), std::string::npos) << command << ": " << part << " in\n" << result.out;
    }
  }
  const ProgramResult whole = plan("generate", {"--prompt", "x"});
  EXPECT_NE(whole.out.find("launched as a graph"), std::string::npos) << whole.out << whole.error;
  const json shared = json_of(
      plan("generate", {"--prompt", "x", "--json", "--gpu-layers", "1", "--offload", "cpu", "--vision", "cpu"}));
  EXPECT_EQ(shared["residency"]["layers"], (json{"device", "processor"}));
  EXPECT_EQ(shared["residency"]["vision"], "processor");
  EXPECT_FALSE(shared["graph"]);
  EXPECT_GT(shared["rates"]["copy_bytes_per_s"], 0);
  EXPECT_GT(shared["expected"]["decode_tokens_per_s"], 0);
  std::uint64_t sum = 0;
  for (const json& part : shared["device_parts"]) {
    sum += part["bytes"].get<std::uint64_t>();
  }
  EXPECT_EQ(shared["device_bytes"], sum);
  const ProgramResult streamed = plan(
      "bench-model", {"--random-weights", "--vision", "stream", "--prompt-tokens", "64", "--image-size", "16", "16"});
  for (const char* part :
       {"slots for the vision tower that are streamed", "weights of the vision tower to be streamed in float16, page-",
        "streamed   vision tower", "seconds of images of ", "vision tower streamed (chosen)", "launched as a graph"}) {
    EXPECT_NE(streamed.out.find(part), std::string::npos) << part << " in\n" << streamed.out << streamed.error;
  }
  const json tower = json_of(plan("generate", {"--prompt", "x", "--json", "--vision", "stream"}));
  EXPECT_EQ(tower["residency"]["vision"], "streamed");
  EXPECT_EQ(tower["residency"]["vision_parts"]["streamed"], tower["residency"]["vision_parts"]["all"]);
  EXPECT_TRUE(tower["graph"]);
  const ProgramResult processor = on_cpu("generate", {"--prompt", "x", "--plan"});
  EXPECT_EQ(processor.exit_code, 0) << processor.error;
  EXPECT_NE(processor.out.find("all of the model runs on the processor"), std::string::npos) << processor.out;
}

TEST_F(CliModelTest, ASharedModelAnswersAsOneInOnePlace) {
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--prompt", "hello", "--greedy", "-n", "6", "--json", "--device", "emulator"});
    const ProgramResult result = run("generate", more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.exit_code == 0 ? json_of(result)["tokens"] : json();
  };
  const json whole = ask({});
  EXPECT_EQ(ask({"--gpu-layers", "1", "--offload", "cpu"}), whole);
  EXPECT_EQ(ask({"--gpu-layers", "0", "--offload", "stream", "--vision", "cpu"}), whole);
  EXPECT_EQ(ask({"--vision", "stream"}), whole);
  EXPECT_EQ(ask({"--memory-limit", "900kB", "--chunk", "64"}), whole);
  const ProgramResult chat =
      run("chat", {"--greedy", "-n", "3", "--device", "emulator", "--memory-limit", "900kB", "--chunk", "64"},
          "hello\nand again\n/clear\nhello\n");
  const ProgramResult expected =
      run("chat", {"--greedy", "-n", "3", "--device", "emulator"}, "hello\nand again\n/clear\nhello\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.error;
  EXPECT_EQ(chat.out, expected.out);
}

TEST_F(CliModelTest, WrongPlacesAreRefused) {
  const auto ask = [&](const std::string& option, const std::string& value, const std::string& device) {
    return run("generate", {"--prompt", "x", option, value, "--device", device});
  };
  expect_fault(ask("--gpu-layers", "3", "emulator"), 1, {"--gpu-layers 3", "2 layers", "0 to 2, or auto"});
  expect_fault(ask("--gpu-layers", "-1", "emulator"), 2, {"--gpu-layers", "'-1'", "nor auto"});
  expect_fault(ask("--gpu-layers", "most", "emulator"), 2, {"--gpu-layers", "'most'"});
  expect_fault(ask("--vision", "here", "emulator"), 2, {"--vision"});
  expect_fault(ask("--gpu-layers", "1", "cpu"), 2, {"--gpu-layers", "--device cpu"});
  expect_fault(ask("--vision", "cpu", "cpu"), 2, {"--vision", "--device cpu"});
  expect_fault(ask("--offload", "stream", "cpu"), 2, {"--offload", "--device cpu"});
  const ProgramResult refused = run("generate", {"--prompt", "x", "--device", "emulator", "--gpu-layers", "2",
                                                 "--vision", "gpu", "--memory-limit", "300kB"});
  EXPECT_EQ(refused.exit_code, 1);
  for (const char* part :
       {"the model needs ", "--memory-limit allows 0.3 MiB", "--gpu-layers auto", "--vision stream", "--vision cpu"}) {
    EXPECT_NE(refused.error.find(part), std::string::npos) << part << " in\n" << refused.error;
  }
}

TEST_F(CliModelTest, AnswersThatWereCutSaySo) {
  const ProgramResult most = on_cpu("generate", {"--prompt", "x", "--greedy", "-n", "2"});
  EXPECT_NE(most.error.find("cut off after 2 tokens; allow more with --max-tokens"), std::string::npos) << most.error;
  const ProgramResult quiet = on_cpu("generate", {"--prompt", "x", "--greedy", "-n", "2", "--json"});
  EXPECT_EQ(quiet.error, "");
}

TEST_F(CliModelTest, DatabaseOfAnotherDeviceIsRefusedOrWarnedOf) {
  const std::string database = (folder_ / "tuned.db").string();
  Store store(database, OpenMode::create);
  const ContextIds context = example_context(store);
  const std::int64_t trial = store.add_trial(begin_example_session(store, context), context, example_trial(32));
  store.set_winner(context, trial, std::nullopt, 0.5);
  const std::vector<std::string> words{"generate", "--model", model_, "--prompt", "x",         "--device",
                                       "emulator", "-n",      "1",    "--greedy", "--context", "64"};
  ProgramSetting setting;
  setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
  std::vector<std::string> given = words;
  given.insert(given.end(), {"--db", database});
  expect_fault(run_program(folder_.path(), given, setting), 1, {example_device().name, "--untuned", "pascaline sweep"});
  setting.environment.emplace_back("PASCALINE_DB", database);
  const ProgramResult usual = run_program(folder_.path(), words, setting);
  EXPECT_EQ(usual.exit_code, 0) << usual.error;
  EXPECT_NE(usual.error.find("warning: " + database + " was tuned on"), std::string::npos) << usual.error;
}

TEST_F(CliModelTest, ChatGoesOn) {
  const ProgramResult result =
      on_cpu("chat", {"--greedy", "-n", "4"}, "one\n\n/nonsense\ntwo\n/stats\n/clear\none\n/quit\nnever\n");
  EXPECT_EQ(result.exit_code, 1) << "a command was unknown, and no terminal gave it";
  EXPECT_NE(result.out.find("unknown command /nonsense"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("of 256 tokens"), std::string::npos) << result.out;
  const std::string first = result.out.substr(0, result.out.find("unknown command"));
  EXPECT_NE(result.out.find("a new conversation\n" + first), std::string::npos) << "after /clear it answers as before";
  const ProgramResult fault = on_cpu("chat", {"--greedy", "-n", "2"}, "/image nosuch.png\n/image\nhi\n");
  EXPECT_EQ(fault.exit_code, 1) << fault.error;
  EXPECT_NE(fault.out.find("nosuch.png"), std::string::npos);
}

TEST_F(CliModelTest, ChatShowsTheNewConversationAfterClear) {
  const ProgramResult result =
      on_cpu("chat", {"--greedy", "-n", "4"}, "/stats\none\n/stats\n/clear\n/stats\none\n/stats\n");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  std::vector<std::string> shown;
  for (std::size_t at = result.out.find("context: "); at != std::string::npos;
       at = result.out.find("context: ", at + 1)) {
    shown.push_back(result.out.substr(at, result.out.find('\n', at) - at));
  }
  ASSERT_EQ(shown.size(), 4) << result.out;
  EXPECT_EQ(shown[0], "context: 0 of 256 tokens");
  EXPECT_NE(shown[1], shown[0]);
  EXPECT_EQ(shown[2], shown[0]);
  EXPECT_EQ(shown[3], shown[1]);
  EXPECT_NE(result.out.find("a new conversation\nno answer yet; context: 0"), std::string::npos) << result.out;
}

TEST_F(CliModelTest, ChatNamesTheWayOutOfAFullContext) {
  write_bytes(folder_ / "photo.png", png_of(black_image(64, 64)));
  const std::string image = "/image " + (folder_ / "photo.png").string() + "\n";
  const std::string way = "/clear starts a new conversation";
  const auto chat = [&](const std::string& tokens, const std::string& input) {
    return on_cpu("chat", {"--greedy", "--context", "64", "-n", tokens}, input).out;
  };
  const std::string next = chat("2", "one\n" + std::string(100, 'x') + "\n");
  EXPECT_NE(next.find(" new tokens exceed the context of 64; "), std::string::npos) << next;
  EXPECT_NE(next.find(way), std::string::npos) << next;
  const std::string cut = chat("500", "one\n");
  EXPECT_NE(cut.find("[context]\nthe context of 64 tokens is full; " + way), std::string::npos) << cut;
  const std::string no_room = chat("500", "one\n" + image);
  EXPECT_NE(no_room.find("left for them"), std::string::npos) << no_room;
  EXPECT_NE(no_room.rfind(way), no_room.find(way)) << no_room;
  const std::string first = chat("2", std::string(200, 'x') + "\n");
  EXPECT_NE(first.find("exceed the context of 64; 0 are in use"), std::string::npos) << first;
  EXPECT_EQ(first.find(way), std::string::npos) << "a new one has no more room";
}

TEST_F(CliModelTest, EveryCommandTakesAModelWithoutEndTokens) {
  const std::filesystem::path folder = model_;
  json config = json::parse(read_file(folder / "config.json"));
  config["text_config"].erase("eos_token_id");
  write_bytes(folder / "config.json", config.dump());
  std::filesystem::remove(folder / "generation_config.json");
  const ProgramResult text = on_cpu("generate", {"--prompt", "hello", "--greedy", "-n", "2", "--json"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_EQ(text.error, "") << "the tokenizer names some";
  const ProgramResult times = on_cpu("bench-model", {"--repeats", "1", "--prompt-tokens", "8", "--no-image"});
  EXPECT_EQ(times.exit_code, 0) << times.error;
  EXPECT_EQ(times.error, "");
  const ProgramResult logits = on_cpu("validate", {"--weights", "float32", "--reference", write_reference(0)});
  EXPECT_EQ(logits.exit_code, 0) << logits.error;
}

TEST_F(CliModelTest, ValidateComparesWithAReference) {
  const std::vector<std::string> float32{"--weights", "float32", "--kv-cache", "float32", "--reference"};
  std::vector<std::string> words = float32;
  words.push_back(write_reference(0));
  words.push_back("--json");
  const ProgramResult same = on_cpu("validate", words);
  EXPECT_EQ(same.exit_code, 0) << same.error;
  ASSERT_EQ(json_of(same)["parts"].size(), 3);
  EXPECT_EQ(json_of(same)["parts"][2]["part"], "steps");
  EXPECT_LT(json_of(same)["parts"][1]["relative_l2"], 1e-6);
  EXPECT_LT(json_of(same)["parts"][2]["relative_l2"], 1e-6);
  EXPECT_EQ(json_of(same)["parts"][0]["top1_agreement"], 1);
  EXPECT_LT(json_of(same)["parts"][0]["kl_p99"], 1e-10);
  (void)write_reference(3);
  const ProgramResult other = on_cpu("validate", words);
  EXPECT_EQ(other.exit_code, 3) << other.out;
  EXPECT_GT(json_of(other)["parts"][0]["max_abs"], 2.9);
  EXPECT_GT(json_of(other)["parts"][0]["kl_mean"], 1e-6);
  (void)write_reference(std::numeric_limits<float>::quiet_NaN());
  expect_fault(on_cpu("validate", words), 1, {"the reference's prefill: after token 1, logit 7 is nan"});
  std::filesystem::resize_file(folder_ / "reference.safetensors", 100);
  expect_fault(on_cpu("validate", words), 1, {"reference.safetensors"});
}

TEST_F(CliModelTest, BenchModelTimesEveryPass) {
  const ProgramResult result =
      on_cpu("bench-model", {"--prompt-tokens", "8", "16", "--image-size", "16", "24", "--repeats", "2", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const json passes = json_of(result)["passes"];
  ASSERT_EQ(passes.size(), 5);
  for (const json& pass : passes) {
    EXPECT_GT(pass["time_ms"], 0);
    EXPECT_GT(pass["tflops"], 0);
    EXPECT_FALSE(pass.contains("of_flop_limit")) << "a processor does not tell";
  }
}

TEST_F(CliModelTest, BenchModelComparesWithWhatWasProbed) {
  const std::string database = (folder_ / "probed.db").string();
  {
    Store store(database, OpenMode::create);
    Probe probe;
    probe.started_unix_ms = 1000;
    probe.values = {{ProbeQuantity::ffma_gflops, 2000, 1990, 2010, 0.01, 9, true},
                    {ProbeQuantity::dp4a_gops, 8000, 7990, 8010, 0.01, 9, true}};
    store.add_probe(probe, store.device_id(device_row(open_device("emulator")->info())),
                    store.toolkit_id(example_toolkit()));
  }
  const json out =
      json_of(run_program(folder_.path(),
                          {"bench-model", "--model", model_, "--device", "emulator", "--db", database, "--context",
                           "256", "--prompt-tokens", "8", "--no-image", "--repeats", "1", "--json"},
                          {.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}}}));
  EXPECT_EQ(out["peak_tflops"], 2);
  EXPECT_EQ(out["peak_tflops_measured"], true);
  const json& prompt = out["passes"].at(0);
  EXPECT_NEAR(prompt["of_flop_limit"].get<double>(), prompt["tflops"].get<double>() / 2, 1e-12);
  EXPECT_EQ(out["peak_int8_tops"], 8);
}

TEST_F(CliModelTest, BenchModelChoosesWhatFits) {
  const ProgramResult usual = on_cpu("bench-model", {"--repeats", "1", "--json"});
  EXPECT_EQ(usual.exit_code, 0) << usual.error;
  EXPECT_NE(usual.error.find("no room for prompts of 512, 2048 tokens; one of 251 is taken instead"), std::string::npos)
      << usual.error;
  const json passes = json_of(usual)["passes"];
  ASSERT_EQ(passes.size(), 5) << "128 and 251 tokens read and decoded at, and an image";
  EXPECT_EQ(passes[4]["per"], "image of 16 x 16 patches") << "the largest that the model takes";
  EXPECT_EQ(json_of(on_cpu("bench-model", {"--repeats", "1", "--json", "--no-image"}))["passes"].size(), 4);
  std::filesystem::remove(std::filesystem::path(model_) / "model.safetensors");
  expect_fault(on_cpu("bench-model", {"--prompt-tokens", "300"}), 1, {"context of 256", "--prompt-tokens"});
  expect_fault(on_cpu("bench-model", {"--image-size", "4096", "4096", "--prompt-tokens", "8"}), 1,
               {"at most 4096 pixels", "--image-size"});
  expect_fault(run("profile", {"--image-size", "100000", "100000", "--prompt-tokens", "8", "--device", "emulator"}), 1,
               {"--image-size"});
}

TEST_F(CliModelTest, BenchModelKeepsWhatWentWellIfARowFails) {
  // Logits beyond float32: a prompt can be read, but no token be chosen.
  const std::string file = (std::filesystem::path(model_) / "model.safetensors").string();
  std::string bytes = read_file(file);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const json names = json::parse(bytes.substr(sizeof(header), header));
  const auto begin = names["model.language_model.norm.weight"]["data_offsets"][0].get<std::size_t>();
  for (std::size_t i = 0; i < 64; ++i) {
    const float huge = 3e38F;
    std::memcpy(bytes.data() + sizeof(header) + header + begin + i * sizeof(huge), &huge, sizeof(huge));
  }
  write_bytes(file, bytes);
  const ProgramResult result =
      on_cpu("bench-model", {"--prompt-tokens", "8", "--no-image", "--repeats", "1", "--json"});
  EXPECT_EQ(result.exit_code, 1) << result.error;
  const json passes = json_of(result)["passes"];
  ASSERT_EQ(passes.size(), 2);
  EXPECT_GT(passes[0]["time_ms"], 0);
  EXPECT_NE(passes[1]["failure"].get<std::string>().find("not numbers"), std::string::npos);
  expect_fault(on_cpu("generate", {"--prompt", "x", "--json"}), 1, {"not numbers", "the weights are damaged"});
}

TEST_F(CliModelTest, ProfileAndWorkloadShowWhatIsLaunched) {
  const std::vector<std::string> on_host{"--device", "emulator",        "--weights", "float32",      "--kv-cache",
                                         "float32",  "--prompt-tokens", "8",         "--image-size", "16",
                                         "24"};
  std::vector<std::string> words = on_host;
  words.push_back("--json");
  const ProgramResult profile = run("profile", words);
  ASSERT_EQ(profile.exit_code, 0) << profile.error;
  const json passes = json_of(profile)["passes"];
  ASSERT_EQ(passes.size(), 3);
  int norms = 0;
  for (const json& launch : passes[0]["launches"]) {
    EXPECT_EQ(launch["provenance"], "default");
    norms += launch["problem"].get<std::string>().rfind("rmsnorm", 0) == 0 ? launch["count"].get<int>() : 0;
  }
  EXPECT_EQ(norms, 5) << "two a layer, and the head's of one row";

  words = on_host;
  const auto file = (folder_ / "mine.json").string();
  words.insert(words.end(), {"-o", file});
  const ProgramResult result = run("workload", words);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Workload workload = Workload::load(file);
  ASSERT_EQ(workload.phases.size(), 3);
  EXPECT_EQ(workload.phases[0].name, "prompt");
  EXPECT_EQ(workload.phases[1].name, "token");
  EXPECT_EQ(workload.phases[2].name, "image");
  for (const char* option : {"--weights float32", "--kv-cache float32"}) {
    EXPECT_NE(workload.description.find(option), std::string::npos) << workload.description;
  }
  EXPECT_GT(workload.entries.size(), 20);
  const Space space = Space::load(data_folder("search_spaces") / "rmsnorm.json");
  double calls = 0;
  std::set<std::string> problems;
  std::set<std::string> of_phases;
  for (const WorkloadProblem& problem : expand(workload, space)) {
    calls += problem.count;
    problems.insert(problem.problem.text());
    const std::string of_phase = problem.phase + ": " + problem.problem.text();
    EXPECT_TRUE(of_phases.insert(of_phase).second) << "twice: " << of_phase;
    EXPECT_EQ(problem.problem.type("STORAGE"), ElementType::float32) << "as it was launched";
  }
  EXPECT_EQ(calls, 15) << "of the prompt, of the prompt with an image and of a step";
  EXPECT_EQ(problems.size(), 3U) << "8 rows, those of the image, and one";
}

// It does not depend on what the weights hold.
TEST_F(CliModelTest, SweepTunesWhatTheModelLaunchesAndNeedsNoWeights) {
  remove_weights();
  const std::string database = (folder_ / "tuned.db").string();
  const auto sweep = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"sweep",
                                   "--device",
                                   "host",
                                   "--weights",
                                   "float32",
                                   "--kv-cache",
                                   "float32",
                                   "--prompt-tokens",
                                   "8",
                                   "--image-size",
                                   "16",
                                   "24",
                                   "--context",
                                   "256",
                                   "--db",
                                   database,
                                   "--jobs",
                                   "2",
                                   "--warm-cache",
                                   "--min-samples",
                                   "3",
                                   "--rounds",
                                   "2",
                                   "--max-samples",
                                   "5",
                                   "--trials",
                                   "2"};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    return run_program(folder_.path(), words, setting);
  };
  expect_fault(sweep({"--model", (folder_ / "nosuch").string()}), 1, {"nosuch"});
  expect_fault(sweep({"--model", model_, "--kernel", "softmax"}), 1, {"no problem of kernel 'softmax'", "rmsnorm"});
  EXPECT_FALSE(std::filesystem::exists(database));
  const json summary = json_of(sweep({"--model", model_, "--kernel", "rmsnorm", "--kernel", "gather", "--json"}));
  ASSERT_EQ(summary["phases"].size(), 3);
  EXPECT_EQ(summary["phases"][0]["phase"], "prompt");
  EXPECT_EQ(summary["phases"][1]["phase"], "token");
  EXPECT_EQ(summary["phases"][2]["phase"], "image");
  for (const json& phase : summary["phases"]) {
    EXPECT_GT(phase["after_us"].get<double>(), 0) << phase;
    EXPECT_EQ(phase["at_default"], 0) << phase;
  }
  const Store store(database, OpenMode::read_only);
  std::map<std::string, double> norms;
  std::set<std::string> kernels;
  const SweepPlan plan = store.plan(summary["run"]).value();
  for (const PlannedProblem& planned : plan.problems) {
    kernels.insert(planned.problem.kernel);
    for (const PhaseCalls& phase : planned.phases) {
      norms[phase.phase] += planned.problem.kernel == "rmsnorm" ? phase.count : 0;
    }
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"gather", "rmsnorm"}));
  EXPECT_EQ(norms, (std::map<std::string, double>{{"prompt", 5}, {"token", 5}, {"image", 5}}))
      << "two a layer, and the head's";
  EXPECT_EQ(store.winners("", nullptr).size(), plan.problems.size());
  const ProgramResult text = sweep({"--model", model_, "--kernel", "gather"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find(model_ + ", on "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\nprompt "), std::string::npos) << text.out;
}

// Alternatives of a site as trials, with finals; then what `explain` says of them, and a plan that is given.
TEST_F(CliModelTest, SweepOfAModelMeasuresItsSites) {
  const std::string database = (folder_ / "tuned.db").string();
  ProgramSetting setting;
  setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
  const std::vector<std::string> about{
      "--model",         model_,       "--device",     "emulator", "--context", "64",
      "--prompt-tokens", "8",          "--image-size", "16",       "24",        "--weights",
      "float32",         "--kv-cache", "float32",      "--db",     database};
  const auto run = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), about.begin(), about.end());
    words.insert(words.end(), more.begin(), more.end());
    return run_program(folder_.path(), words, setting);
  };
  const std::vector<std::string> quick{"--kernel",
                                       "site_decode_attention",
                                       "--trials",
                                       "1",
                                       "--warm-cache",
                                       "--min-samples",
                                       "3",
                                       "--max-samples",
                                       "5",
                                       "--rounds",
                                       "4",
                                       "--json"};
  const json summary = json_of(run({"sweep"}, quick));
  EXPECT_EQ(summary["problems_done"], 1) << summary;
  const std::string site = [&] {
    const Store store(database, OpenMode::read_only);
    const std::vector<Winner> winners = store.winners("site_decode_attention", nullptr);
    EXPECT_EQ(winners.size(), 1U);
    std::set<std::string> tried;
    for (const StoredTrial& stored : store.trials({})) {
      EXPECT_TRUE(has_time(stored.trial.status) || stored.trial.status == TrialStatus::rejected) << stored.trial.reason;
      tried.insert(stored.trial.config.text());
    }
    EXPECT_TRUE(tried.contains("ALTERNATIVE=single")) << "though one trial was asked for, all are compared";
    EXPECT_TRUE(tried.contains("ALTERNATIVE=rotated"));
    EXPECT_TRUE(tried.contains("ALTERNATIVE=normed"));
    return winners.empty() ? std::string() : winners.front().trial.problem.text();
  }();
  // What was measured is not measured again; the finals are.
  const json again = json_of(run({"sweep"}, quick));
  EXPECT_EQ(again["trials"], 0) << again;

  const json explained = json_of(run({"explain"}, {"--json"}));
  const auto entry = std::find_if(explained["sites"].begin(), explained["sites"].end(),
                                  [&](const json& one) { return one["site"] == site; });
  ASSERT_NE(entry, explained["sites"].end()) << explained;
  EXPECT_EQ((*entry)["origin"], "exact") << *entry;
  EXPECT_EQ((*entry)["alternatives"].size(), 6U) << "those that fit: " << *entry;
  for (const json& alternative : (*entry)["alternatives"]) {
    EXPECT_GT(alternative["time_us"].get<double>(), 0) << *entry;
  }
  const ProgramResult text = run({"explain"}, {});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("a token's attention"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("with every operation by itself"), std::string::npos) << text.out;

  json plan = explained;
  for (json& one : plan["sites"]) {
    one["alternative"] = "single";
  }
  const std::string file = (folder_ / "plan.json").string();
  std::ofstream(file) << plan.dump();
  const json forced = json_of(run({"explain"}, {"--fusion", file, "--json"}));
  for (const json& one : forced["sites"]) {
    EXPECT_TRUE(one["origin"] == "file" || one["origin"] == "only") << one;
    EXPECT_EQ(one["alternative"], "single") << one;
  }
  for (const json& pass : forced["passes"]) {
    EXPECT_EQ(pass["launches"], pass["single_launches"]) << pass;
  }
  const auto launched = [&](const std::string& fusion) {
    const std::string workload = (folder_ / "launched.json").string();
    const ProgramResult result = run({"workload"}, {"--fusion", fusion, "--output", workload});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return std::pair(json::parse(std::ifstream(workload))["entries"], result.error);
  };
  const auto [by_plan, nothing_told] = launched(file);
  EXPECT_EQ(by_plan, launched("off").first);
  EXPECT_NE(by_plan, launched("auto").first);
  EXPECT_EQ(nothing_told.find("warning"), std::string::npos) << nothing_told;
  plan["device"]["name"] = "another";
  std::ofstream(file) << plan.dump();
  const ProgramResult foreign = run({"explain"}, {"--fusion", file, "--json"});
  EXPECT_EQ(foreign.exit_code, 0) << foreign.error;
  EXPECT_NE(foreign.error.find("is a plan for another, not for"), std::string::npos) << foreign.error;
  const auto [by_none, told] = launched(file);
  EXPECT_EQ(by_none, launched("auto").first);
  EXPECT_NE(told.find("is a plan for another, not for"), std::string::npos) << told;
  plan["sites"][0]["alternative"] = "doubled";
  std::ofstream(file) << plan.dump();
  expect_fault(run({"explain"}, {"--fusion", file}), 1, {"plan.json: /sites/0", "no alternative 'doubled'"});
  expect_fault(run({"explain"}, {"--fusion", (folder_ / "nosuch.json").string()}), 2, {"nosuch.json"});
}

TEST_F(CliModelTest, OptionsAboutKernelsAreOfNoUseOnTheProcessorAndSaidToBe) {
  const ProgramResult result =
      on_cpu("generate", {"--prompt", "a", "--max-tokens", "1", "--greedy", "--fusion", "off", "--thermal", "off"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("without kernels: --thermal, --fusion are ignored"), std::string::npos) << result.error;
}

}  // namespace
}  // namespace pascaline::testing
