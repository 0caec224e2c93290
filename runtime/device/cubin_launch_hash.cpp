#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "runtime/device/cubin_file.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/device/sm61/instruction.hpp"
#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline {
namespace {

// Attributes of `.nv.info.<kernel>` that say nothing of how the kernel runs, or begin with the number of a symbol.
constexpr std::uint8_t kToolkitVersion = 0x37;
constexpr std::uint8_t kParameterBank = 0x0a;
constexpr std::uint8_t kLongFormat = 0x04;
constexpr std::size_t kSymbolBytes = 4;

// Constants of the kernel itself and of the source: banks 0, 2 and 3. Others hold addresses.
bool is_plain_bank(std::uint8_t bank) { return bank == 0 || bank == 2 || bank == 3; }

bool depends_on_its_code_alone(const std::vector<sm61::Instruction>& instructions) {
  return std::all_of(instructions.begin(), instructions.end(), [](const sm61::Instruction& instruction) {
    const auto operands = instruction.operand_list();
    return instruction.encoding != nullptr && instruction.space != sm61::Space::constant &&
           instruction.flow != sm61::Flow::indirect &&
           std::all_of(operands.begin(), operands.end(), [](const sm61::Operand& operand) {
             return operand.type != sm61::Operand::Type::constant || is_plain_bank(operand.number);
           });
  });
}

// Attributes are a format, a number and, in the long format, a size and as many bytes; else two bytes of value.
bool add_attributes(std::string_view bytes, FieldHash& hash) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); };
  constexpr std::size_t kHead = 4;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes.size() - at < kHead) {
      return false;
    }
    const bool is_long = byte(at) == kLongFormat;
    const std::size_t size = is_long ? byte(at + 2) + 256U * byte(at + 3) : 0;
    if (bytes.size() - at - kHead < size) {
      return false;
    }
    const std::uint8_t number = byte(at + 1);
    const std::size_t symbol = number == kParameterBank && is_long ? std::min(kSymbolBytes, size) : 0;
    if (number != kToolkitVersion) {
      hash.add(bytes.substr(at, kHead)).add(bytes.substr(at + kHead + symbol, size - symbol));
    }
    at += kHead + size;
  }
  return true;
}

bool is_relocation_of(const CubinSection& section, std::string_view what) {
  return section.name.starts_with(fmt::format(".rel{}", what)) ||
         section.name.starts_with(fmt::format(".rela{}", what));
}

}  // namespace

std::optional<std::string> cubin_launch_hash(std::string_view cubin, std::string_view function) {
  const CubinFile parsed(cubin);
  const CubinSection* code = parsed.find(fmt::format(".text.{}", function));
  const CubinSymbol* symbol = parsed.find_function(function);
  if (code == nullptr || symbol == nullptr || !sm61::reads_architecture(parsed.sm()) ||
      !depends_on_its_code_alone(sm61::decode(code->bytes))) {
    return std::nullopt;
  }
  FieldHash hash;
  hash.add(std::to_string(parsed.sm())).add(function).add(code->bytes);
  hash.add(fmt::format("{} {} {} {}", parsed.registers(*code, *symbol), parsed.shared_bytes(function),
                       parsed.local_bytes(*symbol),
                       parsed.attribute(CubinAttribute::stack_bytes, symbol->index).value_or(0)));
  const std::string own_ending = fmt::format(".{}", function);
  for (const CubinSection& section : parsed.sections()) {
    for (const char* bank : {".nv.constant0", ".nv.constant2", ".nv.constant3"}) {
      if (is_relocation_of(section, bank)) {
        return std::nullopt;
      }
      if (section.name == bank || section.name == bank + own_ending) {
        hash.add(section.name).add(section.bytes).add(std::to_string(section.size));
      }
    }
    if (is_relocation_of(section, fmt::format(".text.{}", function)) ||
        (section.name == ".nv.info" + own_ending && !add_attributes(section.bytes, hash))) {
      return std::nullopt;
    }
  }
  return hash.hex();
}

}  // namespace pascaline
