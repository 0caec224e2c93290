#include "runtime/device/sm61/encodings.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace pascaline::sm61 {
namespace {

// Lists of modifiers that several opcodes share, named in their modifiers by `@NAME`.
struct NamedList {
  std::string_view name;
  std::string_view names;
};

constexpr NamedList kLists[] = {
    {"@compare", "F,LT,EQ,LE,GT,NE,GE,T"},
    {"@float_compare", "F,LT,EQ,LE,GT,NE,GE,NUM,NAN,LTU,EQU,LEU,GTU,NEU,GEU,T"},
    {"@boolean", "AND,OR,XOR,?"},
    {"@rounding", ",RM,RP,RZ"},
    {"@float_types", "?,F16,F32,F64"},
    {"@integer_types", "U8,U16,U32,U64,S8,S16,S32,S64"},
    {"@widths", "U8,S8,U16,S16,,64,128,?"},
    {"@xmad_signs", ",S16.U16,U16.S16,S16.S16"},
    {"@video_types", "U8,U8,U8,U8,U16,U16,U32,?,S8,S8,S8,S8,S16,S16,,?"},
    {"@video_second_types",
     "U16,U16,U16,U16,U16,U16,U16,U16,S16,S16,S16,S16,S16,S16,S16,S16,"
     "U8,U8,U8,U8,U16,U16,U32,?,S8,S8,S8,S8,S16,S16,,?"},
    {"@atomic_operations", "ADD,MIN,MAX,INC,DEC,AND,OR,XOR,EXCH,?,SAFEADD,?,?,?,?,?"},
    {"@atomic_types", ",S32,U64,F32.FTZ.RN,F16x2.RN,S64,F64.RN,?"},
};

using enum Kind;

/// An opcode with the forms that are laid out alike. The values of the other forms follow from the register form's.
struct Family {
  std::uint16_t mask;
  std::uint16_t value;  ///< of the register form
  std::string_view
      forms;  ///< r: registers, c: constant, i, f, g: integer, float32, float64 immediate; x: constant third
  std::string_view opcode;
  Kind kind;
  std::string_view operands;
  std::string_view modifiers;
};

constexpr Family kFamilies[] = {
    {0xff80, 0x5980, "rcfx", "FFMA", ffma, "dabc", "53:2/,FTZ,FMZ,? 51:2/@rounding 50:1/,SAT"},
    {0xfff8, 0x5c58, "rcf", "FADD", float32, "daK", "44:1/,FTZ 39:2/@rounding 50:1/,SAT"},
    {0xfff8, 0x5c68, "rcf", "FMUL", float32, "dab",
     "44:2/,FTZ,FMZ,? 41:3/,D2,D4,D8,M8,M4,M2,? 39:2/@rounding 50:1/,SAT"},
    {0xfff8, 0x5c60, "rcf", "FMNMX", float32, "dabP", "44:1/,FTZ"},
    {0xfff0, 0x5bb0, "rcf", "FSETP", float32, "pqabP", "48:4/@float_compare 47:1/,FTZ 45:2/@boolean"},
    {0xff00, 0x5800, "rcf", "FSET", float32, "dabP", "52:1/,BF 48:4/@float_compare 55:1/,FTZ 45:2/@boolean"},
    {0xfff0, 0x5ba0, "rcfx", "FCMP", float32, "dabc", "48:4/@float_compare 47:1/,FTZ"},
    {0xfff8, 0x5c88, "rcf", "FCHK", float32, "pab", "39:6/DIVIDE"},
    {0xfff8, 0x5c70, "rcg", "DADD", float64, "DAV", "39:2/@rounding"},
    {0xfff8, 0x5c80, "rcg", "DMUL", float64, "DAB", "39:2/@rounding"},
    {0xfff0, 0x5b70, "rcgx", "DFMA", float64, "DABC", "50:2/@rounding"},
    {0xfff8, 0x5c50, "rcg", "DMNMX", float64, "DABP", ""},
    {0xfff0, 0x5b80, "rcg", "DSETP", float64, "pqABP", "48:4/@float_compare 45:2/@boolean"},
    {0xff80, 0x5900, "rcg", "DSET", float64, "dABP", "52:1/,BF 48:4/@float_compare 45:2/@boolean"},
    {0xfff8, 0x5c10, "rci", "IADD", integer, "dab", "48:2/,,,PO 50:1/,SAT 43:1/,X"},
    {0xfff8, 0x5c18, "rci", "ISCADD", integer, "dabu", ""},
    {0xfff8, 0x5c38, "rci", "IMUL", integer, "dab", "40:1/U32,S32 41:1/U32,S32 39:1/,HI"},
    {0xff80, 0x5a00, "rcix", "IMAD", integer, "dabc", ""},
    {0xfff8, 0x5c20, "rci", "IMNMX", integer, "dabP", "48:1/U32, 43:2/,XLO,XMED,XHI"},
    {0xfff0, 0x5b60, "rci", "ISETP", integer, "pqabP", "49:3/@compare 48:1/U32, 43:1/,X 45:2/@boolean"},
    {0xfff0, 0x5b50, "rci", "ISET", integer, "dabP", "44:1/,BF 49:3/@compare 48:1/U32, 43:1/,X 45:2/@boolean"},
    {0xfff0, 0x5b40, "rcix", "ICMP", integer, "dabc", "49:3/@compare 48:1/U32,"},
    {0xfff8, 0x5c48, "rci", "SHL", integer, "dab", "39:1/,W 43:1/,X"},
    {0xfff8, 0x5c28, "rci", "SHR", integer, "dab", "48:1/U32, 39:1/,W 44:1/,X 40:1/,BREV"},
    {0xfff8, 0x5c40, "rci", "LOP", integer, "rdab", "41:2/AND,OR,XOR,PASS_B 43:1/,X 44:2/,T,Z,NZ"},
    {0xfff8, 0x5c00, "rci", "BFE", integer, "dab", "48:1/U32, 40:1/,BREV"},
    {0xfff8, 0x5bf0, "rcix", "BFI", integer, "dabc", ""},
    {0xfff8, 0x5c08, "rci", "POPC", integer, "di", ""},
    {0xfff8, 0x5c30, "rci", "FLO", integer, "di", "48:1/U32, 41:1/,SH"},
    {0xfff8, 0x5bd0, "rci", "LEA", integer, "rdabu", "46:1/,X"},
    {0xfff0, 0x5bc0, "rcix", "PRMT", move, "dabc", "48:4/,F4E,B4E,RC8,ECL,ECR,RC16,?,?,?,?,?,?,?,?,?"},
    {0xfff8, 0x5c98, "rci", "MOV", move, "db", ""},
    {0xfff8, 0x5ca0, "rci", "SEL", move, "dabP", ""},
    {0xfff8, 0x5ce8, "rci", "P2R", move, "dab", "41:2/,B1,B2,B3"},
    {0xfff8, 0x5cf0, "rci", "R2P", move, "ab", ""},
    {0xfff8, 0x5c90, "rcf", "RRO", special, "db", "39:1/SINCOS,EX2"},
    {0xfff8, 0x5ca8, "rcf", "F2F", conversion, "ef",
     "44:1/,FTZ 8:2/@float_types 10:2/@float_types 39:2+42:1/,RM,RP,RZ,ROUND,FLOOR,CEIL,TRUNC 50:1/,SAT"},
    {0xfff8, 0x5cb0, "rcf", "F2I", conversion, "ef",
     "44:1/,FTZ 8:2+12:1/@integer_types 10:2/@float_types 39:2/,FLOOR,CEIL,TRUNC"},
    {0xfff8, 0x5cb8, "rci", "I2F", conversion, "ef", "8:2/@float_types 10:2+13:1/@integer_types 39:2/@rounding"},
    {0xfff8, 0x5ce0, "rci", "I2I", conversion, "ef", "8:2+12:1/@integer_types 10:2+13:1/@integer_types 50:1/,SAT"},
};

// The other encodings, and the forms whose modifiers lie elsewhere.
constexpr Encoding kSingles[] = {
    {0xfc00, 0x0c00, Form::registers, "FFMA32I", ffma, "daFZ", "53:2/,FTZ,FMZ,? 55:1/,SAT"},
    {0xfc00, 0x0800, Form::registers, "FADD32I", float32, "daF", "55:1/,FTZ"},
    {0xff00, 0x1e00, Form::registers, "FMUL32I", float32, "daF", "53:2/,FTZ,FMZ,? 55:1/,SAT"},
    {0xfe00, 0x1c00, Form::registers, "IADD32I", integer, "daI", "55:2/,,,PO 54:1/,SAT 53:1/,X"},
    {0xfc00, 0x1400, Form::registers, "ISCADD32I", integer, "daIu", ""},
    {0xff00, 0x1f00, Form::registers, "IMUL32I", integer, "daI", ""},
    {0xfc00, 0x1000, Form::registers, "IMAD32I", integer, "daIZ", ""},
    {0xfc00, 0x0400, Form::registers, "LOP32I", integer, "daI", "53:2/AND,OR,XOR,PASS_B 57:1/,X"},
    {0xfff0, 0x0100, Form::registers, "MOV32I", move, "dI", ""},
    {0xfff0, 0x5cc0, Form::registers, "IADD3", integer, "dabc", "37:2/,RS,LS,? 48:1/,X"},
    {0xfff0, 0x4cc0, Form::constant, "IADD3", integer, "dabc", "48:1/,X"},
    {0xfef0, 0x38c0, Form::immediate, "IADD3", integer, "dabc", "48:1/,X"},
    {0xffc0, 0x5b00, Form::registers, "XMAD", integer, "dabc",
     "48:2/@xmad_signs 36:1/,PSL 50:3/,CLO,CHI,CSFU,CBCC,?,?,? 37:1/,MRG 38:1/,X"},
    {0xfe00, 0x4e00, Form::constant, "XMAD", integer, "dabc",
     "48:2/@xmad_signs 55:1/,PSL 50:2/,CLO,CHI,CSFU 56:1/,MRG 54:1/,X"},
    {0xfec0, 0x3600, Form::immediate, "XMAD", integer, "dahc",
     "48:2/@xmad_signs 36:1/,PSL 50:3/,CLO,CHI,CSFU,CBCC,?,?,? 37:1/,MRG 38:1/,X"},
    {0xff80, 0x5100, Form::register_constant, "XMAD", integer, "dabc", "48:2/@xmad_signs 50:2/,CLO,CHI,CSFU 54:1/,X"},
    {0xfff8, 0x53f8, Form::registers, "IDP", dp4a, "dabc",
     "48:1+50:1/4A,2A.LO,4A,2A.HI 49:1+48:1/U8,S8,U16,S16 47:1/U8,S8"},
    {0xfff8, 0x53d8, Form::constant, "IDP", dp4a, "dabc",
     "48:1+50:1/4A,2A.LO,4A,2A.HI 49:1+48:1/U8,S8,U16,S16 47:1/U8,S8"},
    {0xfff8, 0x5be0, Form::registers, "LOP3", integer, "rdabcl", "=LUT 38:1/,X 36:2/,T,Z,NZ"},
    {0xfe00, 0x0200, Form::constant, "LOP3", integer, "dabcL", "=LUT 56:1/,X"},
    {0xfc00, 0x3c00, Form::immediate, "LOP3", integer, "dabcL", "=LUT 57:1/,X"},
    {0xfff8, 0x5bd8, Form::registers, "LEA", integer, "rdabcw", "=HI 38:1/,X"},
    {0xfc00, 0x1800, Form::constant, "LEA", integer, "rdabcW", "=HI 57:1/,X"},
    {0xfff8, 0x5bf8, Form::registers, "SHF", integer, "dabc", "=L 50:1/,W 37:2/,?,U64,S64 48:2/,HI,X,XHI"},
    {0xfef8, 0x36f8, Form::immediate, "SHF", integer, "daXc", "=L 50:1/,W 37:2/,?,U64,S64 48:2/,HI,X,XHI"},
    {0xfff8, 0x5cf8, Form::registers, "SHF", integer, "dabc", "=R 50:1/,W 37:2/,?,U64,S64 48:2/,HI,X,XHI"},
    {0xfef8, 0x38f8, Form::immediate, "SHF", integer, "daXc", "=R 50:1/,W 37:2/,?,U64,S64 48:2/,HI,X,XHI"},
    {0xfe00, 0x3a00, Form::registers, "VMNMX", integer, "davc",
     "54:1/UD, 36:3+48:1/@video_types 28:3+49:2/@video_second_types 56:1/,MX 55:1/,SAT "
     "51:3/MRG_16H,MRG_16L,MRG_8B0,MRG_8B2,ACC,MIN,MAX,"},
    {0xff00, 0x5f00, Form::registers, "VMAD", integer, "davc", ""},
    {0xfff8, 0x5090, Form::registers, "PSETP", integer, "pqQRP", "24:2/AND,OR,XOR,? 45:2/@boolean"},
    {0xfff8, 0x5088, Form::registers, "PSET", integer, "dQRP", "44:1/,BF 24:2/AND,OR,XOR,? 45:2/@boolean"},
    {0xfff8, 0x50a0, Form::registers, "CSETP", integer, "pqP", ""},
    {0xfff8, 0x5098, Form::registers, "CSET", integer, "dP", ""},
    {0xfff8, 0x5080, Form::registers, "MUFU", special, "dE",
     "20:4/COS,SIN,EX2,LG2,RCP,RSQ,RCP64H,RSQ64H,SQRT,?,?,?,?,?,?,? 50:1/,SAT"},
    {0xfff8, 0x50f8, Form::registers, "FSWZADD", float32, "daK", ""},
    {0xfff8, 0xf0c8, Form::registers, "S2R", move, "dx", ""},
    {0xfff8, 0x50c8, Form::registers, "CS2R", move, "dx", ""},
    {0xfff8, 0x5d00, Form::registers, "HFMA2", float16, "dabc", ""},
    {0xf880, 0x7080, Form::constant, "HFMA2", float16, "dabc", ""},
    {0xf880, 0x7000, Form::immediate, "HFMA2", float16, "dac", ""},
    {0xf880, 0x6080, Form::register_constant, "HFMA2", float16, "dabc", ""},
    {0xfe00, 0x2800, Form::registers, "HFMA2_32I", float16, "daIZ", ""},
    {0xfff8, 0x5d10, Form::registers, "HADD2", float16, "daK", ""},
    {0xfe80, 0x7a80, Form::constant, "HADD2", float16, "daK", ""},
    {0xfe80, 0x7a00, Form::immediate, "HADD2", float16, "da", ""},
    {0xfe00, 0x2c00, Form::registers, "HADD2_32I", float16, "daI", ""},
    {0xfff8, 0x5d08, Form::registers, "HMUL2", float16, "dab", ""},
    {0xfe80, 0x7880, Form::constant, "HMUL2", float16, "dab", ""},
    {0xfe80, 0x7800, Form::immediate, "HMUL2", float16, "da", ""},
    {0xfe00, 0x2a00, Form::registers, "HMUL2_32I", float16, "daI", ""},
    {0xfff8, 0x5d18, Form::registers, "HSET2", float16, "dabP", ""},
    {0xfe80, 0x7c80, Form::constant, "HSET2", float16, "dabP", ""},
    {0xfe80, 0x7c00, Form::immediate, "HSET2", float16, "daP", ""},
    {0xfff8, 0x5d20, Form::registers, "HSETP2", float16, "pqabP", ""},
    {0xfe80, 0x7e80, Form::constant, "HSETP2", float16, "pqabP", ""},
    {0xfe80, 0x7e00, Form::immediate, "HSETP2", float16, "pqaP", ""},

    {0xfff8, 0xeed0, Form::registers, "LDG", load, "nm", "45:1/,E 46:2/,CG,CI,CV 48:3/U8,S8,U16,S16,,64,128,U.128",
     Space::global},
    {0xfff8, 0xeed8, Form::registers, "STG", store, "mN", "45:1/,E 46:2/,CG,CS,WT 48:3/@widths", Space::global},
    {0xfff8, 0xef48, Form::registers, "LDS", load, "nm",
     "48:3+44:1/U8,S8,U16,S16,,64,128,?,U.U8,U.S8,U.U16,U.S16,U.32,U.64,U.128,?", Space::shared},
    {0xfff8, 0xef58, Form::registers, "STS", store, "mN", "48:3/@widths", Space::shared},
    {0xfff8, 0xef40, Form::registers, "LDL", load, "nm", "44:2/,LU,CI,CV 48:3/@widths", Space::local},
    {0xfff8, 0xef50, Form::registers, "STL", store, "mN", "44:2/,CG,CS,WT 48:3/@widths", Space::local},
    {0xfff8, 0xef90, Form::registers, "LDC", load, "nk", "44:2/,IL,IS,ISL 48:3/U8,S8,U16,S16,,64,?,?", Space::constant},
    {0xe000, 0x8000, Form::registers, "LD", load, "nMH", "52:1/,E 56:2/,CG,CI,CV 53:3/U8,S8,U16,S16,,64,128,U.128",
     Space::generic},
    {0xe000, 0xa000, Form::registers, "ST", store, "MNH", "52:1/,E 56:2/,CG,CS,WT 53:3/@widths", Space::generic},
    {0xff00, 0xed00, Form::registers, "ATOM", atomic, "ngs", "48:1/,E 52:4/@atomic_operations 49:3/@atomic_types",
     Space::global},
    {0xfff8, 0xeef0, Form::registers, "ATOM", atomic, "ngsz", "48:1/,E =CAS 49:2/,64,?,?", Space::global},
    {0xfff8, 0xebf8, Form::registers, "RED", atomic, "gN",
     "48:1/,E 23:3/ADD,MIN,MAX,INC,DEC,AND,OR,XOR 20:3/@atomic_types", Space::global},
    {0xff00, 0xec00, Form::registers, "ATOMS", atomic, "nGs", "52:4/@atomic_operations 28:2/,S32,U64,S64",
     Space::shared},
    {0xffe0, 0xee40, Form::registers, "ATOMS", atomic, "nGsz", "=CAS 52:1/,64", Space::shared},
    {0xffc0, 0xee00, Form::registers, "ATOMS", atomic, "nGsz", "=CAST 53:1/,SPIN 52:1/,64", Space::shared},
    {0xfff8, 0xef10, Form::registers, "SHFL", shuffle, "jdEoO", "30:2/IDX,UP,DOWN,BFLY"},
    {0xfff8, 0x50d8, Form::registers, "VOTE", vote, "dJP", "48:2/ALL,ANY,EQ,?"},
    {0xfff8, 0xf0a8, Form::registers, "BAR", barrier, "yY",
     "32:2+35:2/SYNC,ARV,RED.POPC,SCAN,SYNC,ARV,RED.AND,SCAN,SYNC,ARV,RED.OR,SCAN,?,?,?,?"},
    {0xfff8, 0xef98, Form::registers, "MEMBAR", fence, "", "8:2/CTA,GL,SYS,VC 0:2/,IVALLD,IVALLT,IVALLTD"},
    {0xfff8, 0xf0f0, Form::registers, "DEPBAR", fence, "", "29:1/,LE"},
    {0xfff8, 0xef60, Form::registers, "CCTL", fence, "", ""},
    {0xfff8, 0xef80, Form::registers, "CCTLL", fence, "", ""},

    {0xfff0, 0xe240, Form::registers, "BRA", control, "t", "6:1/,LMT 7:1/,U", Space::none, Flow::branch},
    {0xfff0, 0xe210, Form::registers, "JMP", control, "T", "6:1/,LMT 7:1/,U", Space::none, Flow::branch},
    {0xfff0, 0xe250, Form::registers, "BRX", control, "E", "", Space::none, Flow::indirect},
    {0xfff0, 0xe200, Form::registers, "JMX", control, "E", "", Space::none, Flow::indirect},
    {0xfff0, 0xe260, Form::registers, "CAL", control, "!t", "6:1/NOINC,", Space::none, Flow::call},
    {0xfff0, 0xe220, Form::registers, "JCAL", control, "!T", "6:1/NOINC,", Space::none, Flow::call},
    {0xfff0, 0xe290, Form::registers, "SSY", control, "!t", "", Space::none, Flow::push_sync},
    {0xfff0, 0xe2a0, Form::registers, "PBK", control, "!t", "", Space::none, Flow::push_break},
    {0xfff0, 0xe2b0, Form::registers, "PCNT", control, "!t", "", Space::none, Flow::push_loop},
    {0xfff0, 0xe230, Form::registers, "PEXIT", control, "!t", ""},
    {0xfff0, 0xe270, Form::registers, "PRET", control, "!t", ""},
    {0xfff8, 0xf0f8, Form::registers, "SYNC", control, "", "", Space::none, Flow::pop_sync},
    {0xfff0, 0xe340, Form::registers, "BRK", control, "", "", Space::none, Flow::pop_break},
    {0xfff0, 0xe350, Form::registers, "CONT", control, "", "", Space::none, Flow::pop_loop},
    {0xfff0, 0xe300, Form::registers, "EXIT", control, "", "5:1/,KEEPREFCOUNT", Space::none, Flow::exit},
    {0xfff0, 0xe320, Form::registers, "RET", control, "", "", Space::none, Flow::exit},
    {0xfff0, 0xe330, Form::registers, "KIL", control, "", "", Space::none, Flow::exit},
    {0xfff0, 0xe310, Form::registers, "LONGJMP", control, "", "", Space::none, Flow::exit},
    {0xfff0, 0xe3a0, Form::registers, "BPT", control, "!", ""},
    {0xfff8, 0x50b0, Form::registers, "NOP", nop, "", ""},
};

// The value of a form: the upper byte of the register form decides on those of the others; an immediate has its sign in
// bit 56, the lowest of that byte.
std::uint16_t value_of(std::uint16_t registers, char form) {
  switch (form) {
    case 'c':
      return static_cast<std::uint16_t>(registers - 0x1000);
    case 'x':
      return static_cast<std::uint16_t>(registers - 0x0800);
    case 'r':
      return registers;
    default:
      // 0x58 becomes 0x30, 0x59 0x32, … 0x5c 0x38.
      return static_cast<std::uint16_t>((((registers >> 8U) - 0x58U) * 2U + 0x30U) << 8U | (registers & 0xffU));
  }
}

Form form_of(char letter) {
  switch (letter) {
    case 'c':
      return Form::constant;
    case 'x':
      return Form::register_constant;
    case 'i':
      return Form::immediate;
    case 'f':
      return Form::immediate_float32;
    case 'g':
      return Form::immediate_float64;
    default:
      return Form::registers;
  }
}

struct Table {
  std::vector<Encoding> encodings;
  std::array<std::uint16_t, 8192> by_upper_bits{};  ///< place + 1 in `encodings` by the upper 13 bits; 0: unknown

  Table() {
    for (const Family& family : kFamilies) {
      for (const char letter : family.forms) {
        const Form form = form_of(letter);
        const bool immediate = form >= Form::immediate && form <= Form::immediate_float64;
        const auto mask = static_cast<std::uint16_t>(immediate ? family.mask & 0xfeffU : family.mask);
        encodings.push_back({mask, value_of(family.value, letter), form, family.opcode, family.kind, family.operands,
                             family.modifiers});
      }
    }
    encodings.insert(encodings.end(), std::begin(kSingles), std::end(kSingles));
    for (std::size_t upper = 0; upper < by_upper_bits.size(); ++upper) {
      for (std::size_t i = 0; i < encodings.size(); ++i) {
        if (((upper << 3U) & encodings[i].mask) == encodings[i].value) {
          by_upper_bits[upper] = static_cast<std::uint16_t>(i + 1);
          break;
        }
      }
    }
  }
};

const Table& table() {
  static const Table built;
  return built;
}

// The name in a comma-separated list.
std::string_view name_at(std::string_view names, std::uint64_t index) {
  for (const NamedList& list : kLists) {
    names = list.name == names ? list.names : names;
  }
  for (; index > 0; --index) {
    const std::size_t comma = names.find(',');
    if (comma == std::string_view::npos) {
      return "?";
    }
    names.remove_prefix(comma + 1);
  }
  return names.substr(0, names.find(','));
}

// The bits named by "BIT:WIDTH+BIT:WIDTH…", the first ones lowest.
std::uint64_t selected(std::string_view fields, std::uint64_t word) {
  std::uint64_t value = 0;
  unsigned shift = 0;
  unsigned numbers[2] = {0, 0};
  unsigned place = 0;
  const auto take = [&] {
    value |= ((word >> numbers[0]) & ((1U << numbers[1]) - 1U)) << shift;
    shift += numbers[1];
    numbers[0] = numbers[1] = place = 0;
  };
  for (const char letter : fields) {
    if (letter == ':') {
      place = 1;
    } else if (letter == '+') {
      take();
    } else {
      numbers[place] = numbers[place] * 10 + static_cast<unsigned>(letter - '0');
    }
  }
  take();
  return value;
}

struct SpecialRegister {
  std::uint8_t number;
  std::string_view name;
};

constexpr SpecialRegister kSpecialRegisters[] = {
    {0, "SR_LANEID"},         {2, "SR_VIRTCFG"},        {3, "SR_VIRTID"},   {32, "SR_TID"},     {33, "SR_TID.X"},
    {34, "SR_TID.Y"},         {35, "SR_TID.Z"},         {37, "SR_CTAID.X"}, {38, "SR_CTAID.Y"}, {39, "SR_CTAID.Z"},
    {40, "SR_NTID"},          {46, "SR_LWINHI"},        {47, "SR_SWINHI"},  {48, "SR_SWINLO"},  {49, "SR_SWINSZ"},
    {50, "SR_SMEMSZ"},        {52, "SR_LWINLO"},        {53, "SR_LWINSZ"},  {56, "SR_EQMASK"},  {57, "SR_LTMASK"},
    {58, "SR_LEMASK"},        {59, "SR_GTMASK"},        {60, "SR_GEMASK"},  {80, "SR_CLOCKLO"}, {81, "SR_CLOCKHI"},
    {82, "SR_GLOBALTIMERLO"}, {83, "SR_GLOBALTIMERHI"},
};

}  // namespace

std::span<const Encoding> encodings() noexcept { return table().encodings; }

const Encoding* find_encoding(std::uint64_t word) noexcept {
  const std::uint16_t place = table().by_upper_bits[word >> 51U];
  return place == 0 ? nullptr : &table().encodings[place - 1U];
}

std::string modifiers_of(const Encoding& encoding, std::uint64_t word) {
  std::string text;
  std::string_view rest = encoding.modifiers;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    const std::string_view part = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    std::string_view name = part.substr(1);
    if (part.front() != '=') {
      const std::size_t slash = part.find('/');
      name = name_at(part.substr(slash + 1), selected(part.substr(0, slash), word));
    }
    if (!name.empty()) {
      text.append(".").append(name);
    }
  }
  return text;
}

std::string special_register_name(std::uint8_t number) {
  for (const SpecialRegister& known : kSpecialRegisters) {
    if (known.number == number) {
      return std::string(known.name);
    }
  }
  return fmt::format("SR{}", number);
}

}  // namespace pascaline::sm61
