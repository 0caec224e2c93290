#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/gguf/projector_weights.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/convert/split_forms.hpp"
#include "model/convert/to_folder.hpp"
#include "model/convert/to_gguf.hpp"
#include "model/session/model_folder.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class ConvertTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path model_ = folder_.path() / "model";
  fs::path back_ = folder_.path() / "back";
  GgufTargets files_{folder_.path() / "m.gguf", folder_.path() / "mmproj-m.gguf"};
  ModelConfig config_;

  ConvertTest() {
    fs::create_directory(model_);
    fs::create_directory(back_);
    config_ = write_model_folder(model_);
    name_video_token(model_);
  }

  [[nodiscard]] ModelLocation files() const { return {files_.text, files_.projector}; }
  void remove_files() const {
    fs::remove(files_.text);
    fs::remove(files_.projector);
  }
  void to_gguf(const WantedTypes& wanted) const { ASSERT_TRUE(write_gguf_files(model_, files_, wanted)); }
  void to_folder(std::optional<GgufType> numbers = {}) const {
    ASSERT_TRUE(write_model_files(files(), back_, numbers));
  }
  static std::string bytes_of_tensor(const StoredTensor& tensor) {
    return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
  }
};

TEST_F(ConvertTest, AFolderComesBackWithTheSameTensors) {
  to_gguf({GgufType::F32, {}});
  to_folder();
  const Safetensors before(model_ / "model.safetensors");
  const Safetensors after(back_ / "model.safetensors");
  ASSERT_EQ(after.tensors().size(), before.tensors().size());
  for (const StoredTensor& tensor : before.tensors()) {
    const StoredTensor& other = after.at(tensor.name);
    EXPECT_EQ(other.type, tensor.type) << tensor.name;
    EXPECT_EQ(other.shape, tensor.shape) << tensor.name;
    EXPECT_EQ(bytes_of_tensor(other), bytes_of_tensor(tensor)) << tensor.name;
  }
}

TEST_F(ConvertTest, WhatAFolderSaysOfItsModelComesBack) {
  to_gguf({});
  to_folder();
  const ModelFolder before(model_);
  const ModelFolder file(files());
  const ModelFolder after(back_);
  ModelConfig expected = config_;
  expected.eos_tokens = {738};  // the first of generation_config.json; readers know the other by its text
  EXPECT_EQ(file.config(), expected);
  EXPECT_EQ(after.config(), expected);
  for (const ModelFolder* folder : {&file, &after}) {
    EXPECT_EQ(folder->preprocessor(), before.preprocessor());
    EXPECT_EQ(folder->chat_template(), before.chat_template());
    EXPECT_EQ(folder->generation().eos_tokens, before.generation().eos_tokens);
    EXPECT_EQ(folder->default_sampling(1).temperature, before.default_sampling(1).temperature);
    EXPECT_EQ(folder->default_sampling(1).top_k, before.default_sampling(1).top_k);
    EXPECT_EQ(folder->default_sampling(1).top_p, before.default_sampling(1).top_p);
    for (const char* text : {"hello you", "  1234 it's\n\n<|im_end|> \xC3\xA9 e\xCC\x81", "<|image_pad|><tool_call>"}) {
      for (const AddedTokens added : {AddedTokens::match, AddedTokens::ignore}) {
        EXPECT_EQ(folder->tokenizer().encode(text, added), before.tokenizer().encode(text, added)) << text;
      }
    }
    EXPECT_EQ(folder->tokenizer().special_ids(), before.tokenizer().special_ids());
  }
}

TEST_F(ConvertTest, TheNameOfAModelIsKept) {
  const auto name_of_file = [&] { return std::string(GgufFile::open(files_.text).metadata().text("general.name")); };
  to_gguf({});
  EXPECT_EQ(name_of_file(), "model") << "the folder's";
  to_folder();
  remove_files();
  ASSERT_TRUE(write_gguf_files(back_, files_, {}));
  EXPECT_EQ(name_of_file(), "model") << "and not that of the other folder";
}

TEST_F(ConvertTest, GreedyFoldersStayGreedy) {
  write_bytes(model_ / "generation_config.json", R"({"eos_token_id": 738, "do_sample": false})");
  to_gguf({});
  EXPECT_EQ(ModelFolder(files()).default_sampling(1).temperature, ModelFolder(model_).default_sampling(1).temperature);
  to_folder();
  EXPECT_FALSE(ModelFolder(back_).generation().do_sample);
}

TEST_F(ConvertTest, OnlyWhatTheMakersRecommendIsWritten) {
  constexpr const char* kSampling = "general.sampling.";
  const auto sampling_keys = [&] {
    const GgufFile file = GgufFile::open(files_.text);
    std::string names;
    for (const auto& [key, value] : file.metadata().values()) {
      names += key.starts_with(kSampling) ? std::string(key.substr(std::strlen(kSampling))) + " " : "";
    }
    return names;
  };
  const auto there_and_back = [&] {
    fs::remove_all(back_);
    fs::create_directory(back_);
    remove_files();
    to_gguf({});
    to_folder();
  };
  fs::remove(model_ / "generation_config.json");
  there_and_back();
  EXPECT_EQ(sampling_keys(), "");
  EXPECT_FALSE(fs::exists(back_ / "generation_config.json"));
  const ModelFolder plain(back_);
  EXPECT_EQ(plain.generation().eos_tokens, ModelFolder(files()).generation().eos_tokens);
  EXPECT_EQ(plain.default_sampling(1).temperature, ModelFolder(model_).default_sampling(1).temperature);

  write_bytes(model_ / "generation_config.json", R"({"do_sample": true, "top_p": 0.95, "eos_token_id": [738, 736]})");
  there_and_back();
  EXPECT_EQ(sampling_keys(), "top_p ");
  const nlohmann::json written = nlohmann::json::parse(read_file(back_ / "generation_config.json"));
  EXPECT_EQ(written, nlohmann::json::parse(R"({"do_sample": true, "top_p": 0.95, "eos_token_id": [738, 736]})"));

  write_bytes(model_ / "generation_config.json",
              R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05})");
  there_and_back();
  EXPECT_EQ(sampling_keys(), "penalty_repeat temp top_k top_p ");
}

// The tests' own tokenizer has no token for videos.
TEST_F(ConvertTest, ImagesNeedNoTokenOfVideos) {
  const fs::path other = folder_.path() / "other";
  fs::create_directory(other);
  (void)write_model_folder(other);
  ASSERT_TRUE(write_gguf_files(other, files_, {}));
  to_folder();
  ModelConfig expected = config_;
  expected.eos_tokens = {738};
  expected.vision->video_token = kNoVideoToken;
  EXPECT_EQ(ModelFolder(files()).config(), expected);
  EXPECT_EQ(ModelFolder(back_).config(), expected);
}

TEST_F(ConvertTest, TokensOfImagesThatNoGgufFileCanSayAreRefusedBeforeAnythingIsWritten) {
  std::string tokenizer = read_file(model_ / "tokenizer.json");
  const std::string name = "<|vision_end|>";
  const std::size_t place = tokenizer.find(name);
  ASSERT_NE(place, std::string::npos);
  tokenizer.replace(place, name.size(), "<|vision_off|>");
  write_bytes(model_ / "tokenizer.json", tokenizer);
  try {
    (void)write_gguf_files(model_, files_, {});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              (model_ / "config.json").string() +
                  ": /vision_end_token_id: token 740 is '<|vision_off|>' in tokenizer.json; a GGUF file can only say "
                  "that <|vision_end|> is that token");
  }
  EXPECT_FALSE(fs::exists(files_.text));
}

TEST_F(ConvertTest, ItTellsWhichMatricesBecomeOtherBlocks) {
  std::vector<std::string> told;
  ConvertSettings settings;
  settings.tell = [&](const std::string& line) { told.push_back(line); };
  ASSERT_TRUE(write_gguf_files(model_, files_, {{}, WeightRecipe::named("q4_k")}, settings));
  std::size_t q8 = 0;
  for (const fs::path& path : {files_.text, files_.projector}) {
    const GgufFile file = GgufFile::open(path);
    for (const GgufTensor& tensor : file.tensors()) {
      q8 += tensor.type == GgufType::Q8_0 ? 1 : 0;
    }
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told.front().find("Q8_0 instead of Q4_K"), std::string::npos) << told.front();
  EXPECT_NE(told.front().find("as their rows are no whole blocks"), std::string::npos) << told.front();
  EXPECT_GT(q8, 10U);
  told.clear();
  remove_files();
  ASSERT_TRUE(write_gguf_files(model_, files_, {{}, WeightRecipe::named("q8_0")}, settings));
  EXPECT_TRUE(told.empty());
}

TEST_F(ConvertTest, BlocksAreThoseThatQuantizingGives) {
  const Checkpoint original = Checkpoint::open(model_, config_);
  for (const ElementType tried : ggml_formats()) {
    const WeightRecipe recipe = WeightRecipe::named(traits_of(tried).recipe.name);
    to_gguf({{}, recipe});
    const ModelConfig config = load_model_config(files());
    const Checkpoint file = Checkpoint::open(files(), config);
    std::size_t packed = 0;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      const TensorSpec& tensor = file.tensors()[i];
      const std::int64_t columns = tensor.shape.back();
      if (tensor.kind != TensorKind::matrix || is_patch_embedding(tensor.name)) {
        EXPECT_EQ(file.stored(i).type, StoredType::F32) << tensor.name;
        EXPECT_EQ(bytes_of_tensor(file.stored(i)), bytes_of_tensor(original.stored(i))) << tensor.name;
        continue;
      }
      // Rows of 64 values are no whole blocks of 256.
      const ElementType asked = recipe.of(tensor.name);
      const ElementType format = traits_of(asked).block.values == 32 ? asked : ElementType::q8_0;
      ASSERT_EQ(file.format(i), StoredFormat{format}) << tensor.name;
      std::vector<float> row(static_cast<std::size_t>(columns));
      std::vector<std::byte> blocks(file_row_bytes(format, columns));
      original.read(i, ElementType::float32, columns, std::as_writable_bytes(std::span(row)));
      ASSERT_FALSE(quantize_row(format, row, blocks));
      EXPECT_EQ(std::memcmp(file.stored(i).bytes.data() + blocks.size(), blocks.data(), blocks.size()), 0)
          << tensor.name;
      packed += 1;
    }
    EXPECT_GT(packed, 20U);
    fs::remove(files_.text);
    fs::remove(files_.projector);
  }
}

TEST_F(ConvertTest, BlocksComeBackAsTheyAreOrAsNumbers) {
  to_gguf({{}, WeightRecipe::named("q4_0")});
  to_folder();
  const ModelConfig config = load_model_config(files());
  const Checkpoint file = Checkpoint::open(files(), config);
  const Checkpoint after = Checkpoint::open(back_, load_model_config(back_));
  const fs::path numbers = folder_.path() / "numbers";
  fs::create_directory(numbers);
  ASSERT_TRUE(write_model_files(files(), numbers, GgufType::F32));
  const Checkpoint wide = Checkpoint::open(numbers, config);
  EXPECT_FALSE(wide.has_formats());
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    EXPECT_EQ(after.format(i), file.format(i)) << file.tensors()[i].name;
    EXPECT_EQ(bytes_of_tensor(after.stored(i)), bytes_of_tensor(file.stored(i))) << file.tensors()[i].name;
    std::vector<std::byte> expected(static_cast<std::size_t>(file.tensors()[i].elements()) * sizeof(float));
    file.read(i, ElementType::float32, 0, expected);
    EXPECT_EQ(bytes_of_tensor(wide.stored(i)),
              std::string(reinterpret_cast<const char*>(expected.data()), expected.size()))
        << file.tensors()[i].name;
  }
}

TEST_F(ConvertTest, ModelsOfTextHaveOneFile) {
  const fs::path text = folder_.path() / "text";
  fs::create_directory(text);
  (void)write_text_model_folder(text);
  ASSERT_TRUE(write_gguf_files(text, files_, {GgufType::BF16, {}}));
  EXPECT_FALSE(fs::exists(files_.projector));
  ASSERT_TRUE(write_model_files(files_.text, back_, {}));
  const ModelFolder before(text);
  const ModelFolder after(back_);
  ModelConfig expected = before.config();
  expected.eos_tokens = {738};
  EXPECT_EQ(after.config(), expected);
  EXPECT_EQ(after.tokenizer().encode("hello you", AddedTokens::ignore),
            before.tokenizer().encode("hello you", AddedTokens::ignore));
  EXPECT_EQ(Checkpoint::open(back_, after.config()).stored(0).type, StoredType::BF16);
}

TEST_F(ConvertTest, RandomWeightsNeedOnlyTheConfiguration) {
  const fs::path bare = folder_.path() / "bare";
  fs::create_directory(bare);
  ModelConfig config = config_;
  config.text.vocab = 151936;
  config.vision->image_token = 151655;
  config.vision->video_token = 151656;
  config.vision->start_token = 151652;
  config.vision->end_token = 151653;
  write_bytes(bare / "config.json", config_json(config).dump());
  ASSERT_TRUE(write_gguf_files(bare, files_, {GgufType::F32, {}}, {}, true));
  const ModelFolder file(files());
  EXPECT_EQ(file.config(), config);
  EXPECT_FALSE(file.has_tokenizer());
  const WeightSource expected = random_weights(config, 1);
  const WeightSource written = checkpoint_weights(Checkpoint::open(files(), config));
  for (const TensorSpec& tensor : expected.tensors()) {
    std::vector<float> drawn(static_cast<std::size_t>(tensor.elements()));
    std::vector<float> read(drawn.size());
    expected.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(drawn)));
    written.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(read)));
    ASSERT_EQ(read, drawn) << tensor.name;
  }
}

TEST(SplitFormsTest, EveryFamilyIsFoundInItsOwnForm) {
  for (const PreTokenizer& family : pre_tokenizers()) {
    const nlohmann::json document{{"normalizer", normalizer_of(family)},
                                  {"pre_tokenizer", pre_tokenizer_of(family)},
                                  {"model", {{"ignore_merges", family.whole_pieces}}}};
    EXPECT_EQ(family_of(JsonNode(document, "t.json")).name, family.name);
  }
  const nlohmann::json lower{{"normalizer", {{"type", "Lowercase"}}},
                             {"pre_tokenizer", pre_tokenizer_of(*find_pre_tokenizer("qwen2"))},
                             {"model", {{"type", "BPE"}}}};
  EXPECT_THROW((void)family_of(JsonNode(lower, "t.json")), SpaceError);
}

TEST_F(ConvertTest, ItEndsWhenItIsTold) {
  ConvertSettings settings;
  // So many that it is asked before all is done.
  ModelConfig config = config_;
  config.text.vocab = 200'000;
  config.vision->image_token = 151655;
  config.vision->video_token = 151656;
  config.vision->start_token = 151652;
  config.vision->end_token = 151653;
  write_model(model_, config);
  fs::remove(model_ / "tokenizer.json");
  settings.threads = 1;
  int asked = 0;
  settings.goes_on = [&](const TensorProgress& at) {
    EXPECT_LE(at.tensors, at.all_tensors);
    asked += 1;
    return false;
  };
  const auto done = write_gguf_files(model_, files_, {{}, WeightRecipe::named("q6_k")}, settings);
  EXPECT_EQ(done.has_value(), asked == 0);
  EXPECT_GT(asked, 0);
}

TEST_F(ConvertTest, SplittingThatNoGgufFileCanSayIsRefused) {
  std::string tokenizer = read_file(model_ / "tokenizer.json");
  const std::string pattern = "|\\\\p{N}|";
  const std::size_t place = tokenizer.find(pattern);
  ASSERT_NE(place, std::string::npos);
  tokenizer.replace(place, pattern.size(), "|\\\\p{N}{1,2}|");
  write_bytes(model_ / "tokenizer.json", tokenizer);
  try {
    (void)write_gguf_files(model_, files_, {});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tokenizer.json"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("/pre_tokenizer"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("qwen2"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fs::exists(files_.text));
}

}  // namespace
}  // namespace pascaline::testing
