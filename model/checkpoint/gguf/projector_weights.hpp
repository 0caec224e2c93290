#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/gguf/gguf_weights.hpp"

namespace pascaline {

/// What official names of a vision tower's tensors begin with.
inline constexpr std::string_view kVisionPrefix = "model.visual.";

/// A projector's name of the tensor with that official name; empty if it has none. Of the patches' embedding, which a
/// projector has in one tensor a frame, it is the name of frame 0.
[[nodiscard]] std::string projector_tensor_name(std::string_view official, const VisionConfig& config);
/// The name of a frame's tensor of the patches' embedding.
[[nodiscard]] std::string patch_frame_name(std::int64_t frame);
/// Whether the tensor with that official name is the patches' embedding, [outputs, colours, frames, side, side].
[[nodiscard]] bool is_patch_embedding(std::string_view official) noexcept;

/// The patches' embedding of its frames, [outputs, colours, side, side] each; a plane is side x side elements.
[[nodiscard]] std::vector<std::byte> joined_frames(std::span<const std::span<const std::byte>> frames,
                                                   std::size_t plane_bytes);
/// One of its `frames` frames of the patches' embedding.
[[nodiscard]] std::vector<std::byte> patch_frame(std::span<const std::byte> all, std::size_t frames, std::size_t frame,
                                                 std::size_t plane_bytes);

/// The tensors of `specs`, in that order, in a projector's file. Throws as `match_gguf_weights`; ModelError too if the
/// frames of the patches' embedding are of different types.
[[nodiscard]] std::vector<GgufWeight> match_projector_weights(const GgufFile& file,
                                                              const std::vector<TensorSpec>& specs,
                                                              const VisionConfig& config);

}  // namespace pascaline
