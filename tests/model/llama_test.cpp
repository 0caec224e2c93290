#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/requirements.hpp"
#include "model/session/session.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/recorded_run.hpp"

namespace pascaline::testing {
namespace {

// Models of the family llama, with what Transformers computes: make_llama_fixture.py.
const std::filesystem::path kModels = PASCALINE_CHECKPOINT_DATA;

// Frequencies scaled as Llama 3.1's, in F16 and BF16; and SmolLM2's form in Q4_1 and Q8_0.
void check_both(Executor& executor, const GoldenTolerance& tolerance) {
  check_recorded(executor, kModels / "llama_scaled.gguf", kModels / "llama_scaled/reference.safetensors", tolerance);
  check_recorded(executor, kModels / "llama_small.gguf", kModels / "llama_small.safetensors", tolerance);
}

TEST(LlamaTest, LogitsAreThoseOfTransformers) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_both(executor, {ElementType::float32, ElementType::float32, 1e-5F});
}

TEST(LlamaTest, KernelsOnTheEmulatorGiveThem) {
  const auto host = open_device("emulator");
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host, options);
  Executor executor(dispatcher);
  check_both(executor, {ElementType::float32, ElementType::float32, 1e-5F});
  // Where activations are rounded to int8: in products with the blocks as they are stored, after norms and by them.
  check_recorded(executor, kModels / "llama_small.gguf", kModels / "llama_small.safetensors",
                 {ElementType::q4_1, ElementType::int8, 0.3F});
  // Layers that are copied to the device when they are used, without the weights of norms that they have not.
  for (const std::int64_t layers : {0, 1}) {
    check_recorded(
        executor, kModels / "llama_small.gguf", kModels / "llama_small.safetensors",
        {ElementType::float32, ElementType::float32, 1e-5F, {layers, VisionResidency::automatic, Offload::stream}});
  }
  EXPECT_FALSE(executor.fell_back());
}

TEST(LlamaTest, BlocksAsTheyAreStoredAreCloseToThem) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_recorded(executor, kModels / "llama_small.gguf", kModels / "llama_small.safetensors",
                 {ElementType::q4_1, ElementType::float32, 0.3F});
}

// The configuration of Transformers and the metadata of the file say the same; the script draws weights by their hash,
// and stores the rows of queries and keys in another order.
TEST(LlamaTest, TheFileIsTheModelOfTheFolder) {
  ModelConfig folder = load_model_config(kModels / "llama_scaled");
  ModelConfig file = load_model_config(kModels / "llama_scaled.gguf");
  ASSERT_EQ(folder.text.rope_divisors.size(), 16U);
  ASSERT_EQ(file.text.rope_divisors.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(file.text.rope_divisors[i], folder.text.rope_divisors[i], 1e-6F * folder.text.rope_divisors[i]) << i;
  }
  EXPECT_EQ(file.text.rope_divisors.front(), 1);
  EXPECT_EQ(file.text.rope_divisors.back(), 8);
  EXPECT_EQ(file.text.norm_epsilon.nano, 2'000'000);
  EXPECT_FALSE(file.text.normalises_heads);
  file.text.rope_divisors = folder.text.rope_divisors;
  EXPECT_EQ(file, folder);

  const WeightSource hashed = hash_weights(file);
  const WeightSource stored = checkpoint_weights(Checkpoint::open(kModels / "llama_scaled.gguf", file));
  ASSERT_EQ(stored.tensors(), hashed.tensors());
  for (const TensorSpec& tensor : stored.tensors()) {
    EXPECT_EQ(tensor.name.find("q_norm"), std::string::npos);
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    stored.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], hash_weight(tensor, i)) << tensor.name << " " << i;
    }
  }
}

class LlamaTextTest : public ::testing::Test {
 protected:
  const std::filesystem::path file_ = kModels / "llama_small.gguf";

  void expect_refused(const std::string& chat_template, const std::string& complaint) const {
    try {
      const ModelFolder model(file_, ModelParts::all, chat_template);
      ADD_FAILURE() << chat_template << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(complaint), std::string::npos) << error.what();
    }
  }
};

TEST_F(LlamaTextTest, TheFileBringsItsText) {
  const ModelFolder model(file_);
  EXPECT_TRUE(model.has_tokenizer());
  EXPECT_EQ(model.chat_template(), ChatTemplate::smollm2);
  EXPECT_EQ(model.tokenizer().decode(model.tokenizer().encode("hello the", AddedTokens::ignore), SpecialTokens::keep),
            "hello the");
  EXPECT_EQ(model.tokenizer().encode("hello the", AddedTokens::ignore).size(), 2U);
  EXPECT_TRUE(model.ends(2));
  EXPECT_FALSE(model.ends(100));
}

TEST_F(LlamaTextTest, PlainTextBeginsWithTheTokenOfBeginning) {
  const ModelFolder model(file_, ModelParts::words);
  const std::vector<TokenId> tokens = model.encode_plain("<|im_end|>hello");
  ASSERT_GT(tokens.size(), 3U);
  EXPECT_EQ(tokens.front(), 1);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 2), 0) << "what a text spells out is text";
  EXPECT_EQ(tokens.back(), model.tokenizer().encode("hello", AddedTokens::ignore).front());
}

TEST_F(LlamaTextTest, ATemplateCanBeGiven) {
  EXPECT_EQ(ModelFolder(file_, ModelParts::all, "llama3").chat_template(), ChatTemplate::llama3);
  const TemporaryFolder folder;
  write_bytes(folder / "own.jinja", "{{ messages }}");
  expect_refused((folder / "own.jinja").string(), "own.jinja: this template is not a known one");
  expect_refused("nonesuch", "'nonesuch' is neither a known chat template (chatml, smollm2, ");
}

TEST_F(LlamaTextTest, AnswersMessages) {
  ModelSessionOptions options;
  options.model = file_;
  options.device = "cpu";
  options.options.weights = options.options.cache = ElementType::float32;
  options.options.context = 512;
  ModelSession session(options);
  AnswerOptions how;
  how.max_tokens = 6;
  const std::vector<ChatMessage> messages{text_message(ChatRole::user, "hello there")};
  const Answer first = session.ask(messages, {}, how);
  EXPECT_GT(first.prompt_tokens, 50) << "SmolLM2's template has a system message of its own";
  EXPECT_EQ(session.ask(messages, {}, how).tokens, first.tokens);
}

// Opens the file with half precision's NaN as the first number of that tensor.
std::string said_of_damage(const std::filesystem::path& original, const std::string& tensor, ElementType weights) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "m.gguf";
  std::string bytes = read_file(original);
  {
    const GgufFile model = GgufFile::open(original);
    const GgufTensor* const found = model.find(tensor);
    const std::string_view stored(reinterpret_cast<const char*>(found->bytes.data()), 64);
    bytes.replace(bytes.find(stored), 2, std::string("\x00\x7e", 2));
  }
  write_bytes(file, bytes);
  ModelSessionOptions options;
  options.model = file;
  options.device = "cpu";
  options.options.weights = weights;
  options.options.cache = ElementType::float32;
  options.options.context = 64;
  try {
    const ModelSession session(options);
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.substr(0, message.find(':')) == file.string() ? message.substr(file.string().size()) : message;
  }
  return "opened";
}

TEST(LlamaDamageTest, MessagesNameTheFileAndItsTensor) {
  EXPECT_EQ(said_of_damage(kModels / "llama_small.gguf", "blk.0.ffn_gate.weight", ElementType::q4_1)
                .rfind(": tensor 'blk.0.ffn_gate.weight': ", 0),
            0U)
      << said_of_damage(kModels / "llama_small.gguf", "blk.0.ffn_gate.weight", ElementType::q4_1);
  EXPECT_EQ(said_of_damage(kModels / "llama_small.gguf", "blk.0.attn_q.weight", ElementType::float32)
                .rfind(": tensor 'blk.0.attn_q.weight': ", 0),
            0U)
      << said_of_damage(kModels / "llama_small.gguf", "blk.0.attn_q.weight", ElementType::float32);
}

TEST(LlamaDamageTest, SettingsAreNamedAsTheFileHasThem) {
  ModelConfig config = load_model_config(kModels / "llama_small.gguf");
  const auto said = [&](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  ModelOptions options;
  options.context = config.text.max_positions + 1;
  const std::string context = said([&] { (void)checked_options(config, options, "m.gguf"); });
  EXPECT_NE(context.find("(key 'context_length' of its file): give --context within that"), std::string::npos)
      << context;
  options.context = 0;
  options.residency.gpu_layers = config.text.layers + 1;
  const std::string layers = said([&] { (void)checked_options(config, options, "m.gguf"); });
  EXPECT_NE(layers.find("(key 'block_count' of its file)"), std::string::npos) << layers;
  config.text.head_dim = 50;
  EXPECT_EQ(said([&] { check_supported(config, "m.gguf"); }),
            "m.gguf: the decoder's heads have 50 elements (attention.key_length, or embedding_length / "
            "attention.head_count); attention supports multiples of 8 up to 256: take another model");
  EXPECT_EQ(said([&] { check_supported(config, "model"); }).rfind("model/config.json: the decoder's heads", 0), 0U);
}

}  // namespace
}  // namespace pascaline::testing
