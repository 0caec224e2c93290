#include <png.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "fuzz/vision_model.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/text/byte_level.hpp"
#include "runtime/bundle/bundle.hpp"
#include "tests/model/checkpoint/gguf_builder.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using pascaline::GgufValueType;
using pascaline::testing::GgufBuilder;

std::string gguf_text(const char* text) { return GgufBuilder::text(text); }

// A value of every type, and arrays of some.
std::string gguf_of_all_types() {
  GgufBuilder file;
  file.key("u8", GgufValueType::uint8, "\x07");
  file.key("i16", GgufValueType::int16, GgufBuilder::raw(std::int16_t{-3}));
  file.key("i64", GgufValueType::int64, GgufBuilder::raw(std::int64_t{-1}));
  file.key("f64", GgufValueType::float64, GgufBuilder::raw(0.5));
  file.key("yes", GgufValueType::boolean, "\x01");
  file.word("general.name", "seed");
  file.integer("general.alignment", 32);
  file.array("texts", GgufValueType::text, 2, gguf_text("a") + gguf_text("bc"));
  file.array("flags", GgufValueType::boolean, 3, std::string("\0\1\0", 3));
  file.array("sizes", GgufValueType::int32, 2, GgufBuilder::raw(1) + GgufBuilder::raw(2));
  for (const auto& [type, block, bytes] : {std::array{0U, 1U, 4U},
                                           {1U, 1U, 2U},
                                           {2U, 32U, 18U},
                                           {3U, 32U, 20U},
                                           {8U, 32U, 34U},
                                           {12U, 256U, 144U},
                                           {13U, 256U, 176U},
                                           {14U, 256U, 210U},
                                           {30U, 1U, 2U}}) {
    file.tensor("t" + std::to_string(type), type, {block, 1}, std::string(bytes, '\x01'));
  }
  return file.bytes();
}

// A whole model of one layer, its matrices numbers or blocks of Q8_0.
std::string gguf_model(const std::string& architecture, bool has_blocks) {
  GgufBuilder file;
  const std::string prefix = architecture + ".";
  file.word("general.architecture", architecture);
  file.integer(prefix + "block_count", 1).integer(prefix + "context_length", 64);
  const std::int64_t width = has_blocks ? 32 : 4;
  const auto size = static_cast<std::uint32_t>(width);
  file.integer(prefix + "embedding_length", size).integer(prefix + "feed_forward_length", size);
  file.integer(prefix + "attention.head_count", size / 2).integer(prefix + "attention.head_count_kv", 1);
  const bool is_llama = architecture == "llama";
  if (is_llama) {
    file.integer(prefix + "rope.dimension_count", 2);
  } else {
    file.integer(prefix + "attention.key_length", 2).integer(prefix + "attention.value_length", 2);
  }
  file.real(prefix + "attention.layer_norm_rms_epsilon", is_llama ? 1e-5F : 1e-6F);
  file.real(prefix + "rope.freq_base", 1e4F);
  file.integer("tokenizer.ggml.eos_token_id", 1);
  file.array("tokenizer.ggml.tokens", GgufValueType::text, 2, gguf_text("a") + gguf_text("b"));
  const auto matrix = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
    const auto count = static_cast<std::size_t>(columns * rows);
    file.tensor(name, has_blocks ? 8 : 1, {columns, rows},
                std::string(has_blocks ? count / 32 * 34 : count * 2, '\x11'));
  };
  const auto norm = [&](const std::string& name, std::int64_t size) {
    file.tensor(name, 0, {size}, std::string(static_cast<std::size_t>(size) * 4, '\x3c'));
  };
  matrix("token_embd.weight", width, 2);
  norm("output_norm.weight", width);
  norm("blk.0.attn_norm.weight", width);
  matrix("blk.0.attn_q.weight", width, width);
  matrix("blk.0.attn_k.weight", width, 2);
  matrix("blk.0.attn_v.weight", width, 2);
  matrix("blk.0.attn_output.weight", width, width);
  if (!is_llama) {
    norm("blk.0.attn_q_norm.weight", 2);
    norm("blk.0.attn_k_norm.weight", 2);
  }
  norm("blk.0.ffn_norm.weight", width);
  matrix("blk.0.ffn_gate.weight", width, width);
  matrix("blk.0.ffn_up.weight", width, width);
  matrix("blk.0.ffn_down.weight", width, width);
  return file.bytes();
}

std::string small_bundle() {
  pascaline::Bundle bundle;
  bundle.program_version = "1";
  bundle.architecture = "host";
  bundle.kind = pascaline::BinaryKind::host_object;
  bundle.toolkits = {{"g++", "12.2", "host", ""}};
  pascaline::BundleKernel& kernel = bundle.kernels.emplace_back();
  kernel.name = kernel.function = "scale";
  kernel.source_hash = std::string(32, '0');
  kernel.space_hash = std::string(32, '1');
  kernel.codes.push_back({{"BLOCK=32"}, {"-O3"}, {}, 0, 0, "code"});
  const std::string bytes = encode_bundle(bundle);
  (void)pascaline::parse_bundle(bytes, "the seed");
  return bytes;
}

std::string png(int color_type, int bits, bool interlaced) {
  pascaline::testing::PngSource source;
  source.height = 9;
  source.width = 11;
  source.color_type = color_type;
  source.bit_depth = bits;
  source.interlaced = interlaced;
  for (std::int64_t i = 0; i < 9 * 11 * source.channels(); ++i) {
    source.samples.push_back(static_cast<std::uint16_t>(i * i % 4));
  }
  if (color_type == PNG_COLOR_TYPE_PALETTE) {
    source.palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {200, 100, 0}};
    source.palette_alpha = {0, 128};
  }
  return encode_png(source);
}

std::string jpeg(bool progressive, bool arithmetic) {
  pascaline::testing::JpegSource source;
  source.height = 12;
  source.width = 17;
  source.pixels.assign(12 * 17 * 3, 90);
  source.progressive = progressive;
  source.arithmetic = arithmetic;
  source.subsampled = true;
  return encode_jpeg(source);
}

std::string webp(bool lossy, bool animated) {
  pascaline::testing::WebpSource source{12, 17, std::vector<std::uint8_t>(12 * 17 * 4, 90)};
  source.lossy = lossy;
  source.animated = animated;
  return encode_webp(source);
}

// A tokenizer.json of bytes, from `first` on, and a few merges.
std::string tokenizer(int first, const json& normalizer, const json& splitting, const json& beginning, bool whole) {
  json vocabulary = json::object();
  for (int byte = first; byte < 256; ++byte) {
    vocabulary[pascaline::spelling_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocabulary["he"] = 256;
  vocabulary["hel"] = 257;
  const json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", splitting.empty()}};
  json steps = splitting;
  steps.push_back(bytes);
  const json added{{"id", 258}, {"content", "<|im_end|>"}, {"special", true}};
  return json{
      {"version", "1.0"},
      {"added_tokens", json::array({added})},
      {"normalizer", normalizer},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
      {"post_processor", beginning},
      {"decoder", bytes},
      {"model",
       {{"type", "BPE"}, {"ignore_merges", whole}, {"vocab", vocabulary}, {"merges", json::array({"h e", "he l"})}}}}
      .dump();
}

// Those of Qwen, Llama 3 and SmolLM, and what a GGUF file says of one.
std::vector<std::string> tokenizers() {
  const json nothing;
  const json split{{"type", "Split"},
                   {"pattern", {{"Regex", "\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"}}},
                   {"behavior", "Isolated"},
                   {"invert", false}};
  const json token{{"SpecialToken", {{"id", "<|im_end|>"}, {"type_id", 0}}}};
  const json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json beginning{{"type", "TemplateProcessing"},
                       {"single", json::array({token, text})},
                       {"special_tokens", {{"<|im_end|>", {{"ids", json::array({258})}}}}}};
  const json digits{{"type", "Digits"}, {"individual_digits", true}};
  return {tokenizer(0, {{"type", "NFC"}}, json::array({split}), nothing, false),
          tokenizer(0, nothing, json::array({split}),
                    {{"type", "Sequence"}, {"processors", json::array({{{"type", "ByteLevel"}}, beginning})}}, true),
          tokenizer(32, nothing, json::array({digits}), nothing, false),
          tokenizer(9, nothing, json::array(), beginning, false),
          "\1"
          "3<|im_end|>\n1he\nmh e\nb256\ntext 12\n"};
}

void write_all(const fs::path& folder, const std::vector<std::string>& seeds, const std::string& ending = "") {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    pascaline::write_file_atomically(folder / (std::to_string(i) + ending), seeds[i]);
  }
}

}  // namespace

/// Writes small files that the fuzzers begin with: `write_fuzz_seeds FOLDER`.
int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("write_fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  const fs::path folder = arguments[1];
  write_all(folder / "gguf",
            {gguf_of_all_types(), gguf_model("qwen3", false), gguf_model("qwen3", true), gguf_model("llama", false),
             gguf_model("llama", true), GgufBuilder().bytes(), pascaline::fuzzing::vision_text_model(),
             pascaline::fuzzing::vision_projector()},
            ".gguf");
  for (const char* model : {"1.gguf", "2.gguf"}) {  // mutations of what is refused would find little
    const fs::path file = folder / "gguf" / model;
    (void)pascaline::Checkpoint::open(file, pascaline::load_model_config(file));
  }
  const pascaline::ModelLocation vision(folder / "gguf" / "6.gguf", folder / "gguf" / "7.gguf");
  (void)pascaline::Checkpoint::open(vision, pascaline::load_model_config(vision));
  write_all(folder / "tokenizer", tokenizers());
  write_all(folder / "bundle", {small_bundle()});
  write_all(folder / "image", {png(PNG_COLOR_TYPE_GRAY, 16, true), png(PNG_COLOR_TYPE_RGB, 8, false),
                               png(PNG_COLOR_TYPE_PALETTE, 2, true), png(PNG_COLOR_TYPE_RGB_ALPHA, 8, false),
                               jpeg(false, false), jpeg(true, false), jpeg(false, true), jpeg(true, true),
                               webp(false, false), webp(true, false), webp(false, true), webp(true, true)});
  fs::create_directories(folder / "safetensors");
  const std::vector<std::byte> bytes(24);
  const std::span<const std::byte> all(bytes);
  const std::vector<pascaline::StoredTensor> tensors{{"a", pascaline::StoredType::F32, {2}, all.first(8)},
                                                     {"b", pascaline::StoredType::BF16, {1, 2}, all.subspan(8, 4)},
                                                     {"c", pascaline::StoredType::U8, {12}, all.subspan(12, 12)}};
  pascaline::write_safetensors(folder / "safetensors" / "0", tensors, {{"format", "pt"}});
  return 0;
}
