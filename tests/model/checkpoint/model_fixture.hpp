#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/problem.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {

/// A config.json of the test's data: `qwen3_vl_2b`, `qwen3_vl_4b`, `qwen3_vl_8b`, `tiny_a`, `tiny_b`, `qwen3_0.6b`,
/// `qwen3_1.7b`.
[[nodiscard]] std::string config_text(const std::string& name);
[[nodiscard]] nlohmann::json config_json(const std::string& name);
[[nodiscard]] ModelConfig config_of(const std::string& name);

/// All elements of a tensor.
[[nodiscard]] std::vector<std::byte> read_all(const WeightSource& source, const TensorSpec& tensor, ElementType type);

/// Tensors with bytes of their own, to be changed and written.
struct OwnedTensor {
  StoredTensor tensor;
  std::vector<std::byte> bytes;
};

/// The hashed weights of a configuration, as a checkpoint of that type holds them.
[[nodiscard]] std::vector<OwnedTensor> hashed_tensors(const ModelConfig& config, StoredType type = StoredType::BF16);

/// Writes them as a safetensors file.
void write_tensors(const std::filesystem::path& file, const std::vector<OwnedTensor>& tensors);

/// The bytes of a file with that header and data.
[[nodiscard]] std::string safetensors_bytes(const std::string& header, std::size_t data_bytes);

/// What the ModelError says that `action` throws; "accepted" if it throws nothing.
[[nodiscard]] std::string complaint_of(const std::function<void()>& action);

}  // namespace pascaline::testing

/// Expects that `text` holds `part`.
#define PASCALINE_EXPECT_SAYS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "instead: " << (text)
