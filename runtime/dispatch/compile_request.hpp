#pragma once

#include <string>

#include "core/space/space.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {

/// The request that compiles a configuration's kernel function; `source` must outlive it.
[[nodiscard]] CompileRequest compile_request(const BoundSpace& bound, const Config& config, const KernelSource& source,
                                             BinaryKind kind, const std::string& architecture);

}  // namespace pascaline
