#include "model/checkpoint/gguf/projector_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

using TowerNames = std::pair<std::string_view, std::string_view>;  // official, the projector's

constexpr std::string_view kPatchEmbedding = "patch_embed.proj.weight";
constexpr std::string_view kPatchName = "v.patch_embd.weight";

// Without `.weight` and `.bias`, but where there is only one.
constexpr std::array<TowerNames, 5> kTowerNames{{{"patch_embed.proj", "v.patch_embd"},
                                                 {"pos_embed", "v.position_embd"},
                                                 {"merger.norm", "v.post_ln"},
                                                 {"merger.linear_fc1", "mm.0"},
                                                 {"merger.linear_fc2", "mm.2"}}};

constexpr std::array<TowerNames, 6> kBlockNames{{{"norm1", "ln1"},
                                                 {"attn.qkv", "attn_qkv"},
                                                 {"attn.proj", "attn_out"},
                                                 {"norm2", "ln2"},
                                                 {"mlp.linear_fc1", "ffn_up"},
                                                 {"mlp.linear_fc2", "ffn_down"}}};

constexpr std::array<TowerNames, 3> kDeepstackNames{{{"norm", "norm"}, {"linear_fc1", "fc1"}, {"linear_fc2", "fc2"}}};

std::string_view tower_name(std::span<const TowerNames> names, std::string_view official) {
  const auto found =
      std::find_if(names.begin(), names.end(), [official](const TowerNames& pair) { return pair.first == official; });
  return found == names.end() ? std::string_view() : found->second;
}

// The number that the text begins with, which is taken off with the dot after it; -1 without one.
std::int64_t take_number(std::string_view& text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') {
    return -1;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

// `specs` with the patches' embedding as the tensors that a projector has for it, each of one frame.
std::vector<TensorSpec> specs_by_frame(const std::vector<TensorSpec>& specs) {
  std::vector<TensorSpec> all;
  for (const TensorSpec& spec : specs) {
    if (!is_patch_embedding(spec.name)) {
      all.push_back(spec);
      continue;
    }
    TensorSpec frame = spec;
    frame.shape.erase(frame.shape.begin() + 2);
    for (std::int64_t i = 0; i < spec.shape[2]; ++i) {
      frame.name = i == 0 ? spec.name : fmt::format("{}.{}", spec.name, i);
      all.push_back(frame);
    }
  }
  return all;
}

// The patches' embedding of what was found for its frames.
GgufWeight join_patches(const GgufFile& file, const TensorSpec& spec, std::span<GgufWeight> frames) {
  std::vector<std::span<const std::byte>> bytes;
  for (const GgufWeight& frame : frames) {
    if (frame.tensor.type != frames.front().tensor.type || frame.format) {
      throw ModelError(fmt::format("{}: tensor {}: it must be of numbers, of the same type as {}", file.path().string(),
                                   quoted_name(frame.tensor.name), frames.front().tensor.name));
    }
    bytes.push_back(frame.tensor.bytes);
  }
  GgufWeight joined;
  joined.tensor = {std::string(kPatchName), frames.front().tensor.type, spec.shape, {}};
  joined.bytes = joined_frames(
      bytes, static_cast<std::size_t>(spec.shape[3] * spec.shape[4]) * size_of(frames.front().tensor.type));
  joined.tensor.bytes = joined.bytes;
  return joined;
}

}  // namespace

bool is_patch_embedding(std::string_view official) noexcept {
  return official.starts_with(kVisionPrefix) && official.substr(kVisionPrefix.size()) == kPatchEmbedding;
}

std::string patch_frame_name(std::int64_t frame) {
  return frame == 0 ? std::string(kPatchName) : fmt::format("{}.{}", kPatchName, frame);
}

std::string projector_tensor_name(std::string_view official, const VisionConfig& config) {
  constexpr std::string_view kBlocks = "blocks.";
  constexpr std::string_view kDeepstack = "deepstack_merger_list.";
  if (!official.starts_with(kVisionPrefix)) {
    return {};
  }
  official.remove_prefix(kVisionPrefix.size());
  if (official.starts_with(kPatchEmbedding)) {
    return std::string(kPatchName).append(official.substr(kPatchEmbedding.size()));
  }
  const std::size_t last = official.rfind('.');
  const std::string_view kind = last == std::string_view::npos ? std::string_view() : official.substr(last);
  std::string_view stem = official.substr(0, official.size() - kind.size());
  if (stem.starts_with(kBlocks)) {
    stem.remove_prefix(kBlocks.size());
    const std::int64_t block = take_number(stem);
    const std::string_view name = tower_name(kBlockNames, stem);
    return block < 0 || name.empty() ? std::string() : fmt::format("v.blk.{}.{}{}", block, name, kind);
  }
  if (stem.starts_with(kDeepstack)) {
    stem.remove_prefix(kDeepstack.size());
    const std::int64_t feature = take_number(stem);
    const std::string_view name = tower_name(kDeepstackNames, stem);
    const auto count = static_cast<std::int64_t>(config.deepstack_indexes.size());
    return feature < 0 || feature >= count || name.empty()
               ? std::string()
               : fmt::format("v.deepstack.{}.{}{}", config.deepstack_indexes[static_cast<std::size_t>(feature)], name,
                             kind);
  }
  const std::string_view name = tower_name(kTowerNames, stem);
  return name.empty() ? std::string() : fmt::format("{}{}", name, kind);
}

std::vector<std::byte> joined_frames(std::span<const std::span<const std::byte>> frames, std::size_t plane_bytes) {
  std::vector<std::byte> all;
  all.reserve(frames.size() * frames.front().size());
  for (std::size_t plane = 0; plane < frames.front().size(); plane += plane_bytes) {
    for (const std::span<const std::byte> frame : frames) {
      const auto part = frame.subspan(plane, plane_bytes);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

std::vector<std::byte> patch_frame(std::span<const std::byte> all, std::size_t frames, std::size_t frame,
                                   std::size_t plane_bytes) {
  std::vector<std::byte> one;
  one.reserve(all.size() / frames);
  for (std::size_t at = frame * plane_bytes; at < all.size(); at += frames * plane_bytes) {
    const auto part = all.subspan(at, plane_bytes);
    one.insert(one.end(), part.begin(), part.end());
  }
  return one;
}

std::vector<GgufWeight> match_projector_weights(const GgufFile& file, const std::vector<TensorSpec>& specs,
                                                const VisionConfig& config) {
  std::vector<GgufWeight> found = match_gguf_weights(
      file, specs_by_frame(specs), [&](std::string_view official) { return projector_tensor_name(official, config); });
  std::vector<GgufWeight> weights;
  std::size_t next = 0;
  for (const TensorSpec& spec : specs) {
    if (is_patch_embedding(spec.name)) {
      const auto frames = static_cast<std::size_t>(spec.shape[2]);
      weights.push_back(join_patches(file, spec, std::span(found).subspan(next, frames)));
      next += frames;
    } else {
      weights.push_back(std::move(found[next++]));
    }
  }
  return weights;
}

}  // namespace pascaline
