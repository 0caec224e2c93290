#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/error.hpp"
#include "runtime/device/sm61/encodings.hpp"
#include "runtime/device/sm61/instruction.hpp"
#include "tests/runtime/device/sm61/code_fixture.hpp"

namespace pascaline::sm61 {
namespace {

using testing::assemble;
using testing::Word;

Instruction decoded(std::uint64_t word, std::uint32_t control = 0x7e1) {
  return decode(assemble({{word, control}})).front();
}

// The lines were compared with those of NVIDIA's disassembler when they were stored.
TEST(Sm61Decode, StoredKernelsAreDecodedAsBefore) {
  for (const char* name : testing::kStoredKernels) {
    SCOPED_TRACE(name);
    const KernelCode kernel = read_kernel(testing::stored_cubin(name), name);
    const std::vector<std::string> lines = testing::stored_lines(name);
    ASSERT_EQ(kernel.instructions.size(), lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(testing::golden_line(kernel.instructions[i]), lines[i]);
    }
  }
}

TEST(Sm61Decode, FormsOfOneOpcode) {
  EXPECT_EQ(decoded(0x59807f8000470702).text(), "FFMA R2, R7, R4, RZ");
  EXPECT_EQ(decoded(0x4980028800170404).text(), "FFMA R4, R4, c[0x2][0x4], R5");
  EXPECT_EQ(decoded(0x5180020800370205).text(), "FFMA R5, R2, R4, c[0x2][0xc]");
  EXPECT_EQ(decoded(0x33800242fe070504).text(), "FFMA R4, R5, -127, R4");
  EXPECT_EQ(decoded(0x5998050000970702).text(), "FFMA.RZ R2, R7, R9, R10");
  EXPECT_EQ(decoded(0x367207400007160e).text(), "DFMA R14, R22, 2, R14");
  EXPECT_EQ(decoded(0x3910007fff877676).text(), "IADD R118, R118, -0x8");
  EXPECT_EQ(decoded(0x4f107f800577000d).text(), "XMAD.MRG R13, R0, c[0x0][0x15c], RZ");
  EXPECT_EQ(decoded(0x5b29030000373404).text(), "XMAD.S16.U16.CHI R4, R52, R3, R6");
  EXPECT_EQ(decoded(0x02f8020800670202).text(), "LOP3.LUT R2, R2, c[0x2][0x18], R4, 0xf8");
  EXPECT_EQ(decoded(0x5cb0118000870a08).text(), "F2I.FTZ.U32.F32.TRUNC R8, R8");
  EXPECT_EQ(decoded(0x3b34036061e71f04).text(), "VMNMX.UD.U32.U32.MX.MAX R4, R31, R30, R6");
  EXPECT_EQ(decoded(0x5b6528800ff7151f).text(), "ISETP.EQ.X.OR P3, PT, R21, RZ, P1");
  EXPECT_EQ(decoded(0xef17007cf1070204).text(), "SHFL.BFLY PT, R4, R2, 0x10, 0x1f");
  EXPECT_EQ(decoded(0xf0c8000002170018).text(), "S2R R24, SR_TID.X");
  EXPECT_EQ(decoded(0xf0a81b8000070000).text(), "BAR.SYNC 0x0");
  EXPECT_EQ(decoded(0x5ca8018002070600).text(), "F2F.F32.F16.RZ R0, R32");
  EXPECT_EQ(decoded(0x1c00ffffffe70405).text(), "IADD32I R5, R4, 0xffffffe");
}

TEST(Sm61Decode, MemoryHasSpaceWidthAndRegisters) {
  const Instruction load = decoded(0xeed6200000081418);
  EXPECT_EQ(load.text(), "@!P0 LDG.E.128 R24, [R20]");
  EXPECT_EQ(load.kind, Kind::load);
  EXPECT_EQ(load.space, Space::global);
  EXPECT_EQ(load.bytes, 16);
  EXPECT_EQ(load.operands[0].registers, 4);
  EXPECT_TRUE(load.operands[0].written);
  EXPECT_EQ(load.operands[1].registers, 2);  // an address of 64 bits
  EXPECT_TRUE(load.guard_negated);
  EXPECT_TRUE(load.conditional);
  const Instruction store = decoded(0xef5d000450070812);
  EXPECT_EQ(store.text(), "STS.64 [R8+0x4500], R18");
  EXPECT_EQ(store.space, Space::shared);
  EXPECT_EQ(store.bytes, 8);
  EXPECT_EQ(store.operands[0].registers, 1);
  EXPECT_EQ(store.operands[1].registers, 2);
  EXPECT_FALSE(store.operands[1].written);
  const Instruction narrow = decoded(0xeed0a000000a040e);
  EXPECT_EQ(narrow.text(), "@!P2 LDG.E.CI.U8 R14, [R4]");
  EXPECT_EQ(narrow.bytes, 1);
  EXPECT_EQ(decoded(0xef44000000470112).space, Space::local);
  EXPECT_EQ(decoded(0x80d0000000070204).bytes, 16);
  EXPECT_EQ(decoded(0x80d0000000070204).space, Space::generic);
  EXPECT_EQ(decoded(0xef95003000070204).text(), "LDC.64 R4, c[0x3][0x0], R2");
  const Instruction atomic = decoded(0xed01000000770403);
  EXPECT_EQ(atomic.text(), "ATOM.E.ADD R3, [R4], R7");
  EXPECT_EQ(atomic.kind, Kind::atomic);
  EXPECT_EQ(atomic.bytes, 4);
  EXPECT_EQ(decoded(0xebf9000000670204).text(), "RED.E.ADD.F64.RN [R2], R4");
  EXPECT_EQ(decoded(0xebf9000000670204).bytes, 8);
  EXPECT_EQ(decoded(0xeef3000000670204).text(), "ATOM.E.CAS.64 R4, [R2], R6, R8");
}

TEST(Sm61Decode, WideOperandsTakeTwoRegisters) {
  const Instruction multiply = decoded(0x5371070800c7080a);
  EXPECT_EQ(multiply.text(), "DFMA R10, R8, R14, c[0x2][0x30]");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(multiply.operands[static_cast<std::size_t>(i)].registers, 2) << i;
  }
  EXPECT_EQ(multiply.operands[2].slot, 1);  // at the third place in the word, but in the second slot
  const Instruction narrowed = decoded(0x5ca8000000e70e18);
  EXPECT_EQ(narrowed.text(), "F2F.F32.F64 R24, R14");
  EXPECT_EQ(narrowed.operands[0].registers, 1);
  EXPECT_EQ(narrowed.operands[1].registers, 2);
}

TEST(Sm61Decode, SchedulingWord) {
  // Stall 13, yield, write barrier 2, read barrier 5, waits for 0 and 3, keeps slots 0 and 2.
  const std::uint32_t control = 13U | 1U << 4U | 2U << 5U | 5U << 8U | 0b001001U << 11U | 0b0101U << 17U;
  const Instruction instruction = decoded(testing::ffma(1, 2, 3, 4), control);
  EXPECT_EQ(instruction.control.stall, 13);
  EXPECT_TRUE(instruction.control.yield);
  EXPECT_EQ(instruction.control.write_barrier, 2);
  EXPECT_EQ(instruction.control.read_barrier, 5);
  EXPECT_EQ(instruction.control.wait_mask, 0b001001);
  EXPECT_EQ(instruction.control.reuse, 0b0101);
  EXPECT_EQ(instruction.text(), "FFMA R1, R2.reuse, R3, R4.reuse");
  // Each instruction of a group has its own.
  const std::vector<Instruction> group =
      decode(assemble({{testing::kNop, 0x7e1}, {testing::kNop, 0x7e5}, {testing::kNop, 0x7ef}}));
  EXPECT_EQ(group[0].control.stall, 1);
  EXPECT_EQ(group[1].control.stall, 5);
  EXPECT_EQ(group[2].control.stall, 15);
  // An addition has its second operand in the third slot.
  EXPECT_EQ(decoded(0x5c58000000770601, 0x7e1 | 4U << 17U).text(), "FADD R1, R6, R7.reuse");
  EXPECT_EQ(decoded(0x5c58000000770601, 0x7e1 | 2U << 17U).text(), "FADD R1, R6, R7");
}

TEST(Sm61Decode, TargetsAreRelativeToTheNextWord) {
  const std::vector<Instruction> code = decode(
      assemble({{testing::jump(testing::kPushSync, 0, 5)}, {testing::jump(testing::kBranch, 1, 0)}, {testing::kExit}}));
  EXPECT_EQ(code[0].target(), static_cast<std::int64_t>(testing::offset_of(5)));
  EXPECT_EQ(code[1].target(), static_cast<std::int64_t>(testing::offset_of(0)));
  EXPECT_EQ(code[0].flow, Flow::push_sync);
  EXPECT_FALSE(code[1].conditional);
  EXPECT_EQ(code[2].target(), -1);
  EXPECT_EQ(decoded(0xe24000004b88000d).text(), "@!P0 BRA CC.NEU, 0x4c8");
  EXPECT_TRUE(decoded(0xe24000004b87000d).conditional);  // by the condition code alone
  // From constant memory.
  const Instruction indirect = decoded(0xe24000312347002f);
  EXPECT_EQ(indirect.text(), "BRA c[0x3][0x1234]");
  EXPECT_EQ(indirect.flow, Flow::indirect);
  EXPECT_EQ(indirect.target(), -1);
}

TEST(Sm61Decode, UnknownWordsAreNotGuessed) {
  for (const std::uint64_t word : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0xc038000000070000}}) {
    const Instruction instruction = decoded(word);
    EXPECT_EQ(instruction.kind, Kind::unknown);
    EXPECT_EQ(instruction.opcode(), "unknown");
    EXPECT_EQ(instruction.count, 0);
    EXPECT_NE(instruction.text().find("unknown 0x"), std::string::npos);
  }
}

TEST(Sm61Decode, IncompleteGroupsAreIgnoredAndHugeCodeIsRefused) {
  const std::string code = assemble({{testing::kNop}, {testing::kNop}, {testing::kExit}, {testing::kExit}});
  EXPECT_EQ(decode("").size(), 0U);
  EXPECT_EQ(decode(code.substr(0, 31)).size(), 0U);
  EXPECT_EQ(decode(code.substr(0, 33)).size(), 3U);
  EXPECT_EQ(decode(code).size(), 6U);
  EXPECT_THROW((void)decode(std::string((4U << 20U) + 1, '\0')), Error);
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, by);) {
    parts.push_back(part);
  }
  return parts;
}

TEST(Sm61Encodings, TableIsWellFormed) {
  for (const Encoding& encoding : encodings()) {
    SCOPED_TRACE(std::string(encoding.opcode) + " " + std::to_string(encoding.value));
    EXPECT_EQ(encoding.value & ~encoding.mask, 0);
    EXPECT_EQ(encoding.mask & 7U, 0U) << "finer than the table that is searched";
    EXPECT_LE(encoding.operands.size(), Instruction::kMaxOperands);
    for (const std::string& part : split(encoding.modifiers, ' ')) {
      EXPECT_TRUE(part.front() == '=' || part.find('/') != std::string::npos) << part;
    }
    const std::uint64_t word = std::uint64_t{encoding.value} << 48U;
    ASSERT_EQ(find_encoding(word), &encoding) << "another encoding takes its place";
    // All bits set give a name or a question mark, and no more operands than there is room for.
    const Instruction instruction = decoded(word | 0xffffffffffff | (~std::uint64_t{encoding.mask} << 48U));
    EXPECT_LE(instruction.count, Instruction::kMaxOperands);
    EXPECT_EQ(instruction.name().find('@'), std::string::npos) << instruction.name();
    EXPECT_FALSE(instruction.text().empty());
  }
}

}  // namespace
}  // namespace pascaline::sm61
