#include "model/checkpoint/hf/quantization_config.hpp"

#include <fmt/format.h>

#include <array>

#include "core/util/config_keys.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

using Keys = std::string_view;

constexpr std::array kRead{Keys("quant_method"), Keys("modules_to_not_convert"), Keys("ignored_layers")};

constexpr std::array kFp8Limited{
    LimitedKey{"activation_scheme", R"(["dynamic"])"}, LimitedKey{"fmt", R"(["e4m3"])"},
    LimitedKey{"kv_cache_scheme", "[null]"},           LimitedKey{"scale_fmt", R"(["float"])"},
    LimitedKey{"weight_block_size", "[[128, 128]]"},
};
constexpr std::array kFp8Unused{Keys("dequantize"), Keys("modules_to_convert")};

constexpr std::array kAwqLimited{
    LimitedKey{"bits", "[4]"},          LimitedKey{"desc_act", "[false]"},
    LimitedKey{"group_size", "[128]"},  LimitedKey{"kv_cache_scheme", "[null]"},
    LimitedKey{"sym", "[false]"},       LimitedKey{"version", R"(["gemm"])"},
    LimitedKey{"zero_point", "[true]"},
};
// How other programs would compute.
constexpr std::array kAwqUnused{Keys("backend"), Keys("do_fuse"), Keys("exllama_config"), Keys("fuse_max_seq_len"),
                                Keys("modules_to_fuse")};

// Names of layers that are stored as numbers, as their tensors show; null stands for none.
void check_names(const JsonNode& quantization, std::string_view key) {
  if (quantization.has_value(key)) {
    const JsonNode names = quantization.at(key);
    for (std::size_t i = 0; i < names.array_size(); ++i) {
      (void)names.at(i).text();
    }
  }
}

}  // namespace

FolderQuantization read_quantization(const JsonNode& quantization) {
  const std::string method = quantization.at("quant_method").text();
  check_names(quantization, "modules_to_not_convert");
  check_names(quantization, "ignored_layers");
  if (method == "fp8") {
    check_keys(quantization, {kRead, kFp8Limited, kFp8Unused});
    (void)quantization.at("weight_block_size");  // without it there is one scale for a whole matrix
    return FolderQuantization::fp8_blocks;
  }
  if (method == "awq") {
    check_keys(quantization, {kRead, kAwqLimited, kAwqUnused});
    return FolderQuantization::awq;
  }
  quantization.at("quant_method")
      .fail(fmt::format("models quantized by {} are not supported, only by fp8 and awq; take the bfloat16 checkpoint",
                        quoted_name(method)));
}

}  // namespace pascaline
