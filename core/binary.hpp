#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pascaline {

/// What a compiled kernel is made of.
enum class BinaryKind : std::uint8_t { cubin, ptx, host_object };

/// Resources of one kernel function, read from the binary itself.
struct Resources {
  int registers = 0;            ///< per thread; 0 where the binary does not tell (host objects, PTX)
  int static_shared_bytes = 0;  ///< per block
  int constant_bytes = 0;       ///< parameters and user constants
  int local_bytes = 0;          ///< stack frame per thread: spills and indexed arrays live there
  int local_loads = 0;          ///< LDL instructions in the code
  int local_stores = 0;         ///< STL instructions in the code
  int instructions = 0;         ///< machine instructions without scheduling words
  int ffma = 0;                 ///< FFMA instructions among them
};

/// A kernel compiled for one target: code bytes and what they need.
struct Binary {
  BinaryKind kind = BinaryKind::cubin;
  std::string target;     ///< "sm_61", "compute_61" (PTX), or "host" (the emulator)
  std::string function;   ///< the entry point's name
  std::string code;       ///< cubin or PTX bytes; for the emulator the shared object's bytes
  Resources resources;    ///< of the native code of `target`; for PTX, of the sm code compiled beside it
  std::string log;        ///< compiler's messages, possibly empty
  double compile_ms = 0;  ///< time the compiler took, 0 when it came from the cache
  bool from_cache = false;
  int max_registers = 0;       ///< register cap that must be repeated to the driver when it translates PTX; 0 = none
  std::vector<Binary> then{};  ///< of a pipeline: the code of its further launches, in their order, each complete
  std::string translated{};  ///< of PTX, a cubin of the same for the GPU it was asked for; empty: the driver translates

  /// The code of the launch with this number.
  [[nodiscard]] const Binary& of_launch(std::size_t index) const { return index == 0 ? *this : then.at(index - 1); }
};

/// Outcome of one compilation: a binary, or the reason why there is none. A kernel that does not
/// compile is data about the configuration, not a fault.
struct CompileResult {
  bool ok = false;
  Binary binary;         ///< valid if ok
  std::string reason;    ///< first error line if not ok
  std::string log;       ///< whole log if not ok
  bool crashed = false;  ///< not ok, but for the compiler's own end (killed, out of memory): another time it may be
};

}  // namespace pascaline
