#include "core/problem.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pascaline {
namespace {

const Problem kProblem{"matmul", {{"M", 512}, {"N", 2048}}, {{"STORAGE", ElementType::float16}}};

TEST(ProblemTest, TextKeepsTheSpacesOrder) { EXPECT_EQ(kProblem.text(), "matmul M=512 N=2048 STORAGE=float16"); }

TEST(ProblemTest, LooksUpByName) {
  EXPECT_EQ(kProblem.dimension("N"), 2048);
  EXPECT_EQ(kProblem.type("STORAGE"), ElementType::float16);
  EXPECT_THROW((void)kProblem.dimension("K"), Error);
  EXPECT_THROW((void)kProblem.type("OUTPUT"), Error);
}

TEST(ProblemTest, EqualityTakesEverythingIn) {
  Problem other = kProblem;
  EXPECT_EQ(other, kProblem);
  other.dimensions[0].second = 513;
  EXPECT_NE(other, kProblem);
  other = kProblem;
  other.types[0].second = ElementType::float32;
  EXPECT_NE(other, kProblem);
  other = kProblem;
  other.kernel = "gemv";
  EXPECT_NE(other, kProblem);
}

TEST(ElementTypeTest, NamesRoundTripAndSizesAreRight) {
  const std::pair<ElementType, std::size_t> sizes[] = {
      {ElementType::float32, 4}, {ElementType::float16, 2}, {ElementType::bfloat16, 2}, {ElementType::float64, 8},
      {ElementType::int32, 4},   {ElementType::int64, 8},   {ElementType::uint32, 4},   {ElementType::int8, 1},
      {ElementType::uint8, 1},   {ElementType::int16, 2},   {ElementType::uint16, 2},   {ElementType::uint64, 8},
      {ElementType::boolean, 1}};
  for (const auto& [type, bytes] : sizes) {
    EXPECT_EQ(size_of(type), bytes) << name_of(type);
    EXPECT_EQ(bits_of(type), 8 * bytes) << name_of(type);
    for (const std::size_t count : {0U, 1U, 7U, 9U, 1000003U}) {
      EXPECT_EQ(bytes_of(type, count), count * bytes) << name_of(type);
    }
    EXPECT_EQ(element_type_from(name_of(type)), type);
  }
  EXPECT_EQ(name_of(ElementType::boolean), "bool");
  EXPECT_FALSE(is_matrix_format(ElementType::boolean));
  EXPECT_FALSE(element_type_from("float").has_value());
  EXPECT_FALSE(element_type_from("").has_value());
}

TEST(ElementTypeTest, ElementsOfLessThanAByteShareBytes) {
  EXPECT_EQ(packed_bytes(4, 0), 0U);
  EXPECT_EQ(packed_bytes(4, 1), 1U);
  EXPECT_EQ(packed_bytes(4, 2), 1U);
  EXPECT_EQ(packed_bytes(4, 17), 9U);
  EXPECT_EQ(packed_bytes(3, 8), 3U);
  EXPECT_EQ(packed_bytes(6, 5), 4U);
  const std::size_t many = std::size_t{1} << 62;  // whose bits 64 of a count cannot hold
  EXPECT_EQ(packed_bytes(8, many), many);
  EXPECT_EQ(packed_bytes(4, many + 1), many / 2 + 1);
}

TEST(ElementTypeTest, MatricesOfFloat16xHaveAHeaderAndPlainRows) {
  EXPECT_TRUE(is_matrix_format(ElementType::float16x));
  EXPECT_FALSE(is_packed_format(ElementType::float16x));
  EXPECT_TRUE(is_packed_format(ElementType::int4_g128));
  EXPECT_FALSE(is_packed_format(ElementType::float16));
  EXPECT_EQ(size_of(ElementType::float16x), 2U);
  EXPECT_EQ(bits_of(ElementType::float16x), 16U);
  EXPECT_THROW((void)bytes_of(ElementType::float16x, 8), Error);
  EXPECT_EQ(layout_of(ElementType::float16x).bytes(3, 5), 128 + 30);
  EXPECT_EQ(layout_of(ElementType::float16).bytes(3, 5), 30);
  EXPECT_EQ(element_type_from("float16x"), ElementType::float16x);
}

TEST(ElementTypeTest, MatricesArePackedIntoTheBytesOfTheirBlocks) {
  for (const FormatTraits& format : packed_formats()) {
    const std::size_t columns = 2 * static_cast<std::size_t>(format.layout.chunk_columns);
    EXPECT_EQ(element_type_from(format.name), format.type);
    // Two zeros fill up a unit of q3_k's.
    const std::size_t block_bytes = format.block.bytes + (format.type == ElementType::q3_k ? 2 : 0);
    EXPECT_EQ(static_cast<std::size_t>(format.layout.bytes(32, 2 * format.layout.chunk_columns)),
              32 * columns / format.block.values * block_bytes + static_cast<std::size_t>(format.layout.tail_bytes))
        << format.name;
    ElementType found{};
    with_packed_format(format.type, [&]<ElementType known> { found = known; });
    EXPECT_EQ(found, format.type);
  }
}

TEST(ElementTypeTest, AValueThatIsNoneIsRefusedByItsNumber) {
  EXPECT_TRUE(is_element_type(ElementType::float16x));
  for (const int value : {static_cast<int>(kElementTypes.size()), 99, 255}) {
    const auto type = static_cast<ElementType>(value);
    EXPECT_FALSE(is_element_type(type)) << value;
    EXPECT_THROW((void)size_of(type), Error) << value;
    EXPECT_THROW((void)bits_of(type), Error) << value;
    EXPECT_THROW((void)bytes_of(type, 1), Error) << value;
    try {
      (void)name_of(type);
      ADD_FAILURE() << value << " has a name";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "no element type has the value " + std::to_string(value));
    }
  }
}

}  // namespace
}  // namespace pascaline
