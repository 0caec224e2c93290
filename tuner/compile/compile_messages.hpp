#pragma once

#include <cstdint>

#include "runtime/device/compile.hpp"
#include "tuner/ipc/messages.hpp"

// What goes between a sweep and its compile workers, as frames (`frames.hpp`). A worker is told
//
//   source    file, text, hash, headers [[path, text]]      before the first request that uses it
//   compile   id, source (a hash), function, defines, options, kind, architecture, compiler, address_sanitizer,
//             translate_for, translator
//
// and answers each `compile` with one of
//
//   compiled  id, key, compile_ms, from_cache; result {ok, reason, log, binary} if the cache could not keep it
//   crashed   id, reason: the compiler crashed or memory was short
//   fault     id, reason: of the machine or of the compiler's installation
namespace pascaline {

[[nodiscard]] nlohmann::json source_message(const KernelSource& source);
[[nodiscard]] nlohmann::json request_message(std::uint64_t id, const CompileRequest& request);

/// Of a `source` and of a `compile` message; that one's `source` member is left to the caller.
[[nodiscard]] KernelSource source_of(const nlohmann::json& message);
[[nodiscard]] CompileRequest request_of(const nlohmann::json& message);

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CompileResult, ok, reason, log, binary)

}  // namespace pascaline
