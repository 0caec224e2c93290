#include "runtime/device/cubin_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "runtime/device/cubin_file.hpp"
#include "runtime/device/sass.hpp"

namespace pascaline {
namespace {

int clamped_bytes(std::uint64_t value) { return static_cast<int>(std::min<std::uint64_t>(value, 0x7fffffff)); }

// `.nv.constant0.<kernel>` holds the parameters, 2 and others the compiler's own, `.nv.constant3` the module's
// __constant__ variables.
std::uint64_t constant_bytes(const CubinFile& cubin, std::string_view function) {
  constexpr std::string_view kPrefix = ".nv.constant";
  std::uint64_t total = 0;
  for (const CubinSection& section : cubin.sections()) {
    if (section.name.starts_with(kPrefix) && section.name.size() > kPrefix.size()) {
      const std::string_view rest = section.name.substr(kPrefix.size() + 1);
      total += rest.empty() || (rest.front() == '.' && rest.substr(1) == function) ? section.size : 0;
    }
  }
  return total;
}

}  // namespace

int cubin_architecture(std::string_view cubin) { return CubinFile(cubin).sm(); }

std::vector<std::string> cubin_kernels(std::string_view cubin) {
  const CubinFile parsed(cubin);
  std::vector<std::string> names;
  for (const CubinSymbol* kernel : parsed.kernels()) {
    names.emplace_back(kernel->name);
  }
  return names;
}

Resources cubin_resources(std::string_view cubin, std::string_view function) {
  const CubinFile parsed(cubin);
  const CubinSection* code = parsed.find(fmt::format(".text.{}", function));
  const CubinSymbol* symbol = parsed.find_function(function);
  if (code == nullptr || symbol == nullptr) {
    throw Error(fmt::format("the cubin has no kernel {}", function));
  }
  Resources resources;
  resources.registers = parsed.registers(*code, *symbol);
  resources.static_shared_bytes = parsed.shared_bytes(function);
  resources.constant_bytes = clamped_bytes(constant_bytes(parsed, function));
  resources.local_bytes = parsed.local_bytes(*symbol);
  const InstructionCounts counts = count_instructions(code->bytes, parsed.sm());
  resources.instructions = counts.instructions;
  resources.ffma = counts.ffma;
  resources.local_loads = counts.local_loads;
  resources.local_stores = counts.local_stores;
  return resources;
}

std::int64_t cubin_launch_bounds(std::string_view cubin, std::string_view function) {
  return CubinFile(cubin).launch_bounds(function);
}

std::string cubin_code_hash(std::string_view cubin) {
  FieldHash hash;
  const CubinFile parsed(cubin);
  for (const CubinSection& section : parsed.sections()) {
    const std::string_view name = section.name;
    const bool seen = name.starts_with(".text.") || name.starts_with(".rel") || name.starts_with(".nv.constant") ||
                      name.starts_with(".nv.global") || name.starts_with(".nv.shared") ||
                      (name.starts_with(".nv.info") && name != ".nv.info.notes");
    if (seen) {
      hash.add(name).add(section.bytes).add(fmt::format("{} {}", section.size, section.info));
    }
  }
  return hash.hex();
}

}  // namespace pascaline
