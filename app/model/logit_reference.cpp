#include "app/model/logit_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kGridValues = 3;  // frames, rows, columns

[[noreturn]] void refuse(const Safetensors& file, const std::string& why) {
  throw ModelError(fmt::format("{}: {}", file.path().string(), why));
}

template <typename T>
std::vector<T> values_of(const Safetensors& file, const StoredTensor& tensor, StoredType type, std::size_t rank) {
  if (tensor.type != type || tensor.shape.size() != rank) {
    refuse(file, fmt::format("{} is {} of {} dimensions; {} of {} is needed", quoted_name(tensor.name),
                             name_of(tensor.type), tensor.shape.size(), name_of(type), rank));
  }
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  return values;
}

// Tensors that only make sense together; whether both are there.
bool has_both(const Safetensors& file, const char* a, const char* b) {
  const bool has_a = file.find(a) != nullptr;
  const bool has_b = file.find(b) != nullptr;
  if (has_a != has_b) {
    refuse(file, fmt::format("it has {0} but no {1}; record {1}, too, or leave {0} out", has_a ? a : b, has_a ? b : a));
  }
  return has_a;
}

std::vector<std::int32_t> stored_tokens(const Safetensors& file, const char* name, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens = values_of<std::int32_t>(file, file.at(name), StoredType::I32, 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      refuse(file, fmt::format("{}[{}] is {}, and the model's tokens are 0 to {}; record the reference with this model",
                               name, i, tokens[i], vocabulary - 1));
    }
  }
  return tokens;
}

// Patches of an image of that grid, of which `left` remain in pixel_values.
std::int64_t count_patches(const Safetensors& file, std::span<const std::int32_t> grid, std::size_t image,
                           std::int64_t merge, std::int64_t left) {
  const std::string what = fmt::format("image {} of image_grid_thw is {} x {} x {}", image, grid[0], grid[1], grid[2]);
  const std::int64_t rows = grid[1];
  const std::int64_t columns = grid[2];
  if (grid[0] != 1) {
    refuse(file, what + ": only still images are supported, whose first number is 1");
  }
  if (rows < 1 || columns < 1) {
    refuse(file, what + ": its sides must be positive");
  }
  if (rows % merge != 0 || columns % merge != 0) {
    refuse(file, fmt::format("{}: its sides must be multiples of {}, as the model merges {} x {} patches", what, merge,
                             merge, merge));
  }
  const std::int64_t patches = rows * columns;  // of 31 bits each
  if (patches > left) {
    refuse(file, fmt::format("{}: these are {} patches, and pixel_values has {} for it", what, patches, left));
  }
  return patches;
}

void read_images(const Safetensors& file, const VisionConfig& vision, LogitReference& reference) {
  if (!has_both(file, "pixel_values", "image_grid_thw")) {
    return;
  }
  const StoredTensor& pixels = file.at("pixel_values");
  reference.pixels = values_of<float>(file, pixels, StoredType::F32, 2);
  const StoredTensor& stored = file.at("image_grid_thw");
  const auto grids = values_of<std::int32_t>(file, stored, StoredType::I32, 2);
  if (stored.shape[1] != static_cast<std::int64_t>(kGridValues)) {
    refuse(file, fmt::format("image_grid_thw has {} numbers per image; 3 are needed", stored.shape[1]));
  }
  if (pixels.shape[1] != vision.patch_values()) {
    refuse(file, fmt::format("pixel_values has {} values per patch; the model's patches have {}", pixels.shape[1],
                             vision.patch_values()));
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i * kGridValues < grids.size(); ++i) {
    const auto grid = std::span<const std::int32_t>(grids).subspan(i * kGridValues, kGridValues);
    const std::int64_t patches = count_patches(file, grid, i + 1, vision.merge, pixels.shape[0] - first);
    reference.images.push_back({grid[1], grid[2],
                                std::span<const float>(reference.pixels)
                                    .subspan(static_cast<std::size_t>(first * vision.patch_values()),
                                             static_cast<std::size_t>(patches * vision.patch_values()))});
    first += patches;
  }
  if (first != pixels.shape[0]) {
    refuse(file, fmt::format("pixel_values has {} patches, and the images of image_grid_thw have {} in total",
                             pixels.shape[0], first));
  }
}

// Logits of so many tokens, [tokens, vocabulary].
std::vector<float> read_logits(const Safetensors& file, const char* name, std::size_t tokens, std::int64_t vocabulary) {
  const StoredTensor& stored = file.at(name);
  std::vector<float> logits = values_of<float>(file, stored, StoredType::F32, 2);
  if (stored.shape[0] != static_cast<std::int64_t>(tokens) || stored.shape[1] != vocabulary) {
    refuse(file, fmt::format("{} is of shape [{}, {}], but it must have the logits of {} tokens and a vocabulary of {}",
                             name, stored.shape[0], stored.shape[1], tokens, vocabulary));
  }
  return logits;
}

}  // namespace

LogitReference read_reference(const std::filesystem::path& name, const ModelConfig& config) {
  const Safetensors file(name);
  const std::int64_t vocabulary = config.text.vocab;
  LogitReference reference;
  reference.tokens = stored_tokens(file, "input_ids", vocabulary);
  if (reference.tokens.empty()) {
    refuse(file, "input_ids is empty; a reference needs a prompt of at least one token");
  }
  if (config.vision) {
    read_images(file, *config.vision, reference);
  } else if (has_both(file, "pixel_values", "image_grid_thw")) {
    refuse(file, "it has pixel_values, but the model only reads text; record a reference without images");
  }
  reference.logits = read_logits(file, "logits", reference.tokens.size(), vocabulary);
  if (has_both(file, "decode_ids", "decode_logits")) {
    reference.decode_tokens = stored_tokens(file, "decode_ids", vocabulary);
    reference.decode_logits = read_logits(file, "decode_logits", reference.decode_tokens.size(), vocabulary);
  }
  return reference;
}

ModelRequest request_of(const LogitReference& reference) {
  ModelRequest request;
  request.tokens = static_cast<std::int64_t>(reference.tokens.size() + reference.decode_tokens.size());
  request.all_logits = request.is_all = true;
  request.images = static_cast<std::int64_t>(reference.images.size());
  for (const PatchView& image : reference.images) {
    request.patches += image.rows * image.columns;
    request.longest_side = std::max({request.longest_side, image.rows, image.columns});
  }
  return request;
}

}  // namespace pascaline
