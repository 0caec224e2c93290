#include "tests/runtime/device/sm61/code_fixture.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/util/paths.hpp"

namespace pascaline::testing {
namespace {

std::filesystem::path data_file(const std::string& name) { return std::filesystem::path(PASCALINE_SM61_DATA) / name; }

}  // namespace

std::string stored_cubin(const std::string& name) { return read_file(data_file(name + ".cubin")); }

std::vector<std::string> stored_lines(const std::string& name) {
  std::istringstream text(read_file(data_file(name + ".txt")));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::string golden_line(const sm61::Instruction& instruction) {
  const sm61::Control& control = instruction.control;
  return fmt::format("{:04x} {} {} {} {:02x} {}", instruction.offset, control.stall, control.write_barrier,
                     control.read_barrier, control.wait_mask, instruction.text());
}

std::string assemble(const std::vector<Word>& words) {
  std::vector<Word> padded = words;
  padded.resize((words.size() + 2) / 3 * 3, Word{kNop, 0x7e0});
  std::string code;
  for (std::size_t i = 0; i < padded.size(); i += 3) {
    const std::uint64_t group[4] = {
        padded[i].control | std::uint64_t{padded[i + 1].control} << 21U | std::uint64_t{padded[i + 2].control} << 42U,
        padded[i].word, padded[i + 1].word, padded[i + 2].word};
    code.append(reinterpret_cast<const char*>(group), sizeof group);
  }
  return code;
}

std::uint64_t offset_of(std::size_t index) { return index / 3 * 32 + 8 * (index % 3 + 1); }

std::uint64_t jump(std::uint16_t opcode, std::size_t from, std::size_t to) {
  const bool guarded = opcode == kBranch;
  const std::uint64_t distance = (offset_of(to) - offset_of(from) - 8) & 0xffffff;
  return std::uint64_t{opcode} << 48U | distance << 20U | (guarded ? 0x7000fU : 0x40U);
}

}  // namespace pascaline::testing
