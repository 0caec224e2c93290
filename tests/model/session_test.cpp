#include "model/session/session.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/text/utf8.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"

namespace pascaline::testing {
namespace {

class ModelSessionTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  ModelSessionTest() { write_model_folder(folder_.path()); }

  [[nodiscard]] ModelSessionOptions options() const {
    ModelSessionOptions options;
    options.model = folder_.path();
    options.device = "cpu";
    options.options.weights = options.options.cache = ElementType::float32;
    options.options.context = 512;
    return options;
  }
  void expect_refused(const std::string& part) const {
    try {
      const ModelSession session(options());
      ADD_FAILURE() << "opened, though " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  static AnswerOptions greedy(std::int64_t tokens) {
    AnswerOptions options;
    options.max_tokens = tokens;
    return options;
  }
  static std::vector<ChatMessage> user(const std::string& text) { return {text_message(ChatRole::user, text)}; }
};

TEST_F(ModelSessionTest, PiecesMakeTheText) {
  ModelSession session(options());
  std::string pieces;
  const Answer answer = session.ask(user("hello there"), {}, greedy(12), [&](std::string_view piece) {
    pieces += piece;
    return true;
  });
  EXPECT_EQ(pieces, answer.text);
  EXPECT_LE(answer.tokens.size(), 12);
  EXPECT_EQ(answer.text, session.tokenizer().decode(answer.tokens, SpecialTokens::skip));
  EXPECT_EQ(session.ask(user("hello there"), {}, greedy(12)).tokens, answer.tokens) << "it begins again";
  const Answer cut = session.ask(user("hello there"), {}, greedy(12), [](std::string_view) { return false; });
  EXPECT_EQ(cut.end, AnswerEnd::cancelled);
}

TEST_F(ModelSessionTest, ItsMemoryStaysWithinTheLimit) {
  ModelSessionOptions limited = options();
  limited.memory_limit = std::uint64_t{64} << 20;
  ModelSession session(limited);
  const Answer free_answer = ModelSession(options()).ask(user("hello there"), {}, greedy(12));
  EXPECT_EQ(session.ask(user("hello there"), {}, greedy(12)).tokens, free_answer.tokens);
  const PoolStatistics statistics = session.memory().statistics();
  EXPECT_GT(statistics.held_bytes, 0U);
  EXPECT_LE(statistics.peak_held_bytes, limited.memory_limit);
  limited.memory_limit = 50'000;
  EXPECT_THROW(ModelSession{limited}, OutOfMemoryError);
}

// What a prompt with an image, and the tokens after it, ask of kernels, in order.
std::vector<std::string> operations_of(ModelSession& session) {
  std::vector<std::string> operations;
  session.executor().observe([&](const ops::KernelProblem& problem) { operations.push_back(problem.named().text()); });
  const VisionConfig& vision = session.config().vision.value();
  const std::int64_t side = 2 * vision.merge;
  const std::vector<float> pixels(static_cast<std::size_t>(side * side * vision.patch_values()));
  const PatchView view{side, side, pixels};
  std::vector<TokenId> tokens(40, 1);
  std::fill_n(tokens.begin() + 3, 4, static_cast<TokenId>(vision.image_token));
  session.model().clear();
  session.model().append({tokens, {&view, 1}});
  session.model().set_sampling({});
  (void)session.model().sample();
  (void)session.model().step();
  session.executor().observe({});
  return operations;
}

TEST_F(ModelSessionTest, OnlyObservedItAsksForTheSameOperations) {
  ModelSessionOptions computed = options();
  computed.options.request = {.tokens = 64, .images = 1, .patches = 64, .longest_side = 8};
  ModelSessionOptions observed = computed;
  observed.device = "emulator";
  observed.observe_only = true;
  observed.options.fusion = Fusion::off;  // the processor has nothing to launch
  std::filesystem::remove(folder_ / "model.safetensors");
  ModelSession there(observed);
  const std::vector<std::string> asked = operations_of(there);
  EXPECT_EQ(there.executor().computed(), 0U);
  EXPECT_FALSE(there.executor().on_processor());
  write_model_folder(folder_.path());
  ModelSession here(computed);
  EXPECT_EQ(asked, operations_of(here));
  EXPECT_GT(asked.size(), 20U);
}

// 140 GB of weights.
TEST_F(ModelSessionTest, OnlyObservedAModelOfAnySizeFits) {
  nlohmann::json config = nlohmann::json::parse(bytes_of(folder_ / "config.json"));
  nlohmann::json& text = config.contains("text_config") ? config["text_config"] : config;
  text["hidden_size"] = 8192;
  text["intermediate_size"] = 28672;
  text["num_hidden_layers"] = 80;
  if (config.contains("vision_config")) {
    config["vision_config"]["out_hidden_size"] = 8192;
  }
  write_bytes(folder_ / "config.json", config.dump());
  ModelSessionOptions observed = options();
  observed.device = "emulator";
  observed.observe_only = true;
  observed.numbers_only = true;
  observed.options.request = {.tokens = 64, .images = 1, .patches = 64, .longest_side = 8};
  ModelSession session(observed);
  EXPECT_GT(session.memory().statistics().held_bytes, std::uint64_t{100} << 30);
  EXPECT_GT(operations_of(session).size(), 80U * 8);
}

TEST_F(ModelSessionTest, GoingOnIsReadingItAll) {
  ModelSession session(options());
  const Answer first = session.ask(user("one"), {}, greedy(5));
  ASSERT_EQ(first.end, AnswerEnd::max_tokens) << "for this test the answer must not end by itself";
  const Answer second = session.continue_chat(text_message(ChatRole::user, "two"), {}, greedy(8));
  std::vector<TokenId> all = encode_chat(session.tokenizer(), user("one"));
  all.insert(all.end(), first.tokens.begin(), first.tokens.end());
  const auto turn = encode_next_turn(session.tokenizer(), text_message(ChatRole::user, "two"));
  all.insert(all.end(), turn.begin(), turn.end());
  ModelSession other(options());
  EXPECT_EQ(other.complete(all, {}, greedy(8)).tokens, second.tokens);
  EXPECT_EQ(other.model().length(), session.model().length());
}

// The next turn sees what was shown, and nothing of the stop string or after it.
TEST_F(ModelSessionTest, AConversationGoesOnAfterAStopStringAsItWasShown) {
  ModelSession session(options());
  const Answer free = session.ask(user("one"), {}, greedy(12));
  const Tokenizer& tokenizer = session.tokenizer();
  const std::vector<TokenId> prompt = encode_chat(tokenizer, user("one"));
  const auto decoded = [&](const std::vector<TokenId>& ids) { return tokenizer.decode(ids, SpecialTokens::skip); };
  int inside = 0;  // stop strings that begin within a token
  std::set<std::size_t> kept;
  for (std::size_t begin = 0; begin < free.text.size(); ++begin) {
    const std::string stop = free.text.substr(begin, 2);
    if (valid_utf8(stop) != stop) {
      continue;
    }
    AnswerOptions how = greedy(12);
    how.stop = {stop};
    const Answer first = session.ask(user("one"), {}, how);
    ASSERT_EQ(first.end, AnswerEnd::stop_string) << begin;
    ASSERT_EQ(first.text, free.text.substr(0, free.text.find(stop)));
    std::vector<TokenId> all = prompt;
    std::vector<TokenId> whole;
    while (first.text.size() > decoded(whole).size()) {
      whole.push_back(free.tokens[whole.size()]);
    }
    while (decoded(whole) != first.text.substr(0, decoded(whole).size())) {
      whole.pop_back();
    }
    kept.insert(whole.size());
    const std::vector<TokenId> rest = tokenizer.encode(first.text.substr(decoded(whole).size()), AddedTokens::ignore);
    inside += rest.empty() ? 0 : 1;
    all.insert(all.end(), whole.begin(), whole.end());
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(session.model().length(), static_cast<std::int64_t>(all.size())) << "stopped at '" << stop << "'";
    const auto turn = encode_next_turn(tokenizer, text_message(ChatRole::user, "two"));
    all.insert(all.end(), turn.begin(), turn.end());
    AnswerOptions penalized = greedy(4);
    penalized.sampling.repetition = 1.5F;
    const Answer second = session.continue_chat(text_message(ChatRole::user, "two"), {}, penalized);
    const std::vector<float> logits = session.model().logits();
    EXPECT_EQ(session.complete(all, {}, penalized).tokens, second.tokens) << "stopped at '" << stop << "'";
    const std::vector<float> expected = session.model().logits();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(logits[i], expected[i], 1e-4) << i;
    }
  }
  EXPECT_GT(kept.size(), 1U) << "for this test answers must stop in several places";
  EXPECT_GT(inside, 0) << "and within tokens";
}

TEST_F(ModelSessionTest, EndTokensEndAnAnswer) {
  ModelSession plain(options());
  const Answer free = plain.complete(std::vector<TokenId>{5, 6, 7}, {}, greedy(6));
  ASSERT_EQ(free.tokens.size(), 6);
  std::ofstream(folder_ / "generation_config.json") << nlohmann::json{{"eos_token_id", {free.tokens[3]}}};
  ModelSession session(options());
  const Answer answer = session.complete(std::vector<TokenId>{5, 6, 7}, {}, greedy(6));
  EXPECT_EQ(answer.end, AnswerEnd::end_token);
  const auto end = std::find(free.tokens.begin(), free.tokens.end(), free.tokens[3]);
  EXPECT_EQ(answer.tokens, std::vector<TokenId>(free.tokens.begin(), end));
}

// The tests' tokenizer has <|im_end|> as 738 and <|endoftext|> as 736.
TEST_F(ModelSessionTest, WithoutEndTokensTheTokenizersEndAnAnswer) {
  nlohmann::json config = nlohmann::json::parse(read_file(folder_ / "config.json"));
  config["text_config"].erase("eos_token_id");
  write_bytes(folder_ / "config.json", config.dump());
  std::filesystem::remove(folder_ / "generation_config.json");
  const auto ends = [&] { return ModelFolder(folder_.path()).generation().eos_tokens; };
  EXPECT_EQ(ends(), (std::vector<std::int64_t>{738, 736}));
  write_bytes(folder_ / "generation_config.json", R"({"eos_token_id": []})");
  EXPECT_EQ(ends(), (std::vector<std::int64_t>{738, 736}));
  write_bytes(folder_ / "tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  EXPECT_EQ(ends(), (std::vector<std::int64_t>{736, 738}));
  write_bytes(folder_ / "tokenizer_config.json", R"({"eos_token": {"content": "<|vision_end|>", "special": true}})");
  EXPECT_EQ(ends(), (std::vector<std::int64_t>{740, 738, 736}));
  write_bytes(folder_ / "tokenizer_config.json", R"({"eos_token": 7})");
  expect_refused("tokenizer_config.json:/eos_token: ");
  write_bytes(folder_ / "tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  write_bytes(folder_ / "generation_config.json", R"({"eos_token_id": 5})");
  EXPECT_EQ(ends(), std::vector<std::int64_t>{5}) << "the tokenizer is not asked";
}

TEST_F(ModelSessionTest, WhereNothingEndsAnAnswerItIsSaidOnce) {
  nlohmann::json config = nlohmann::json::parse(read_file(folder_ / "config.json"));
  config["text_config"].erase("eos_token_id");
  write_bytes(folder_ / "config.json", config.dump());
  for (const char* file : {"generation_config.json", "tokenizer.json"}) {
    std::filesystem::remove(folder_ / file);
  }
  ModelSessionOptions random = options();
  random.random_weights = true;
  ::testing::internal::CaptureStderr();
  ModelSession session(random);
  EXPECT_EQ(session.complete(std::vector<TokenId>{1, 2}, {}, greedy(20)).tokens.size(), 20);
  EXPECT_EQ(session.complete(std::vector<TokenId>{1, 2}, {}, greedy(3)).tokens.size(), 3);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no token that ends an answer"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(ModelSessionTest, NumbersNeedNoEndAndNoGenerationConfig) {
  nlohmann::json config = nlohmann::json::parse(read_file(folder_ / "config.json"));
  config["text_config"].erase("eos_token_id");
  write_bytes(folder_ / "config.json", config.dump());
  write_bytes(folder_ / "generation_config.json", R"({"num_beams": 4})");
  EXPECT_NO_THROW(ModelFolder(folder_.path(), ModelParts::numbers));
  EXPECT_THROW((void)ModelSession(options()).folder().default_sampling(1), Error) << "a request would use it";
}

TEST_F(ModelSessionTest, ClearForgetsTheConversation) {
  ModelSession session(options());
  const Answer first = session.complete(std::vector<TokenId>{5, 6, 7}, {}, greedy(6));
  EXPECT_GT(session.model().length(), 3);
  session.clear();
  EXPECT_EQ(session.model().length(), 0);
  AnswerOptions fresh = greedy(6);
  fresh.sampling.repetition = 1.5F;
  const Answer again = session.complete(std::vector<TokenId>{5, 6, 7}, {}, fresh);
  ModelSession other(options());
  EXPECT_EQ(again.tokens, other.complete(std::vector<TokenId>{5, 6, 7}, {}, fresh).tokens);
}

TEST_F(ModelSessionTest, WhatExceedsTheContextSaysWhatIsInUse) {
  ModelSessionOptions small = options();
  small.options.context = 8;
  ModelSession session(small);
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5};
  session.model().append({tokens, {}});
  try {
    session.model().append({tokens, {}});
    ADD_FAILURE() << "ten tokens in a context of eight";
  } catch (const ContextFullError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("5 new tokens exceed the context of 8; 5 are in use", 0), 0U)
        << error.what();
  }
  EXPECT_EQ(session.model().length(), 5);
}

TEST_F(ModelSessionTest, FullContextEndsAnAnswer) {
  ModelSessionOptions small = options();
  small.options.context = 8;
  ModelSession session(small);
  const Answer answer = session.complete(std::vector<TokenId>{5, 6, 7}, {}, greedy(100));
  EXPECT_EQ(answer.end, AnswerEnd::context);
  EXPECT_EQ(answer.tokens.size(), 6) << "five that the context holds, and the one after them";
  EXPECT_THROW(session.complete(std::vector<TokenId>(9, 5), {}, greedy(1)), Error);
}

TEST_F(ModelSessionTest, RandomWeightsNeedOnlyTheConfiguration) {
  for (const char* file : {"model.safetensors", "tokenizer.json", "preprocessor_config.json", "chat_template.json"}) {
    std::filesystem::remove(folder_ / file);
  }
  ModelSessionOptions random = options();
  random.random_weights = true;
  ModelSession session(random);
  EXPECT_EQ(session.complete(std::vector<TokenId>{1, 2}, {}, greedy(3)).tokens.size(), 3);
  EXPECT_THROW((void)session.tokenizer(), Error);
  EXPECT_THROW((void)session.folder().preprocessor(), Error);
}

TEST_F(ModelSessionTest, DamagedFoldersAreRefused) {
  std::filesystem::resize_file(folder_ / "model.safetensors", 1000);
  expect_refused("model.safetensors");
  std::filesystem::remove(folder_ / "model.safetensors");
  expect_refused("model.safetensors");
  write_bytes(folder_ / "preprocessor_config.json", "{}");
  expect_refused("preprocessor_config.json");
  std::filesystem::remove(folder_ / "tokenizer.json");
  expect_refused("tokenizer.json");
  std::filesystem::remove(folder_ / "chat_template.json");
  expect_refused("chat template");
  write_bytes(folder_ / "config.json", "{");
  expect_refused("config.json");
}

TEST_F(ModelSessionTest, PreprocessorOfAnotherModelIsRefused) {
  std::string text = read_file(folder_ / "preprocessor_config.json");
  text.replace(text.find("\"patch_size\": 4"), 15, "\"patch_size\": 8");
  write_bytes(folder_ / "preprocessor_config.json", text);
  expect_refused("patches of");
}

TEST_F(ModelSessionTest, OptionsAreRefusedBeforeTheWeightsAreOpened) {
  std::filesystem::remove(folder_ / "model.safetensors");
  ModelSessionOptions wrong = options();
  wrong.options.context = 4097;
  for (const bool random : {false, true}) {
    wrong.random_weights = random;
    try {
      const ModelSession session(wrong);
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("1 to 4096 (max_position_embeddings"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(ModelSessionTest, LongPromptsCanBeInterrupted) {
  ModelSessionOptions small = options();
  small.options.chunk = 4;
  ModelSession session(small);
  AnswerOptions options = greedy(3);
  int asked = 0;
  options.interrupted = [&] { return ++asked > 2; };
  const Answer answer = session.complete(std::vector<TokenId>(20, 5), {}, options);
  EXPECT_EQ(answer.end, AnswerEnd::cancelled);
  EXPECT_TRUE(answer.tokens.empty());
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(session.model().length(), 0) << "nothing of it was read";
  EXPECT_EQ(session.complete(std::vector<TokenId>(20, 5), {}, greedy(3)).tokens.size(), 3);
}

TEST_F(ModelSessionTest, DevicesThatAreNotThere) {
  ModelSessionOptions wrong = options();
  wrong.device = "cuda:99";
  EXPECT_THROW(ModelSession{wrong}, Error);
  wrong.device = "gpu";
  std::filesystem::remove(folder_ / "model.safetensors");  // names are checked before weights
  try {
    const ModelSession session(wrong);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_EQ(said.rfind("'gpu' is not a device; give ", 0), 0U) << said;
    EXPECT_NE(said.find("emulator or cpu"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace pascaline::testing
