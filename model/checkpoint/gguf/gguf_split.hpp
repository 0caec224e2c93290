#pragma once

#include <filesystem>
#include <vector>

#include "model/checkpoint/gguf/gguf_file.hpp"

namespace pascaline {

/// The files of a model of which `file`, with this metadata, is one, in order: of one that is not split, itself; of a
/// split one those beside it whose names end in `-00001-of-0000N.gguf` and so on. Throws ModelError if a file is
/// missing, or the name does not end like that.
[[nodiscard]] std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& file,
                                                            const GgufMetadata& metadata);

/// Adds what `part`, the file number `index` of `count`, has to the tensors of the first. Throws ModelError if it is
/// another part, or has a tensor that is there already.
void add_gguf_part(GgufContent& first, GgufContent part, std::size_t index, std::size_t count);

/// Throws ModelError unless there are as many tensors as the files together should have.
void check_gguf_parts(const GgufContent& all, std::size_t count);

}  // namespace pascaline
