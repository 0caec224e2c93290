#pragma once

#include <vector>

#include "core/space/space.hpp"
#include "core/util/json_reader.hpp"

namespace pascaline {

/// An element type's name.
[[nodiscard]] ElementType read_element_type(const JsonNode& node);

/// The structures of a space: `[{"name": "Particle", "members": [["x", "float32"], ["tags", "uint8", 4]]}]`, of which
/// later ones may have earlier ones as members. Their names must not be those of `taken`.
[[nodiscard]] std::vector<CompositeType> read_structs(const JsonNode& list, const std::vector<TypeVariable>& taken);

/// Arguments in the order of the kernel's signature, over the types and symbols `space` has so far.
[[nodiscard]] std::vector<Argument> read_arguments(const JsonNode& list, const Space& space);

/// Function, block, grid, dynamic shared memory and arguments of a launch, over the arguments and symbols `space` has
/// so far; without a list of its own it takes all arguments that are passed.
[[nodiscard]] Launch read_launch(const JsonNode& node, const Space& space);

/// The launch of a kernel, or a list of those of a pipeline, which together take every argument that is passed.
[[nodiscard]] std::vector<Launch> read_launches(const JsonNode& node, const Space& space);

/// How outputs are summed, over the arguments and symbols `space` has so far.
[[nodiscard]] Summation read_summation(const JsonNode& node, const Space& space);

}  // namespace pascaline
