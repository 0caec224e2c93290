#include "core/composite_type.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace pascaline::testing {
namespace {

struct alignas(16) Four {
  float x, y, z, w;
};
struct Three {
  float x, y, z;
};
struct Inner {
  double mass;
  std::uint8_t flags[3];
};
struct Outer {
  bool alive;
  Three position;
  Inner inner[2];
  std::int16_t id;
  Four color;
  std::uint8_t last;
};

TEST(CompositeTypeTest, StructuresLieAsTheCompilerLaysThem) {
  CompositeType inner;
  inner.name = "Inner";
  inner.add("mass", ElementType::float64);
  for (const char* name : {"flags[0]", "flags[1]", "flags[2]"}) {
    inner.add(name, ElementType::uint8);
  }
  CompositeType outer;
  outer.name = "Outer";
  outer.add("alive", ElementType::boolean);
  outer.add("position", *CompositeType::vector("float3"));
  outer.add("inner[0]", inner);
  outer.add("inner[1]", inner);
  outer.add("id", ElementType::int16);
  outer.add("color", *CompositeType::vector("float4"));
  outer.add("last", ElementType::uint8);
  EXPECT_EQ(inner.bytes(), sizeof(Inner));
  EXPECT_EQ(outer.bytes(), sizeof(Outer));
  EXPECT_EQ(outer.alignment, alignof(Outer));
  const auto offset = [&](std::string_view name) {
    for (const CompositeType::Member& member : outer.members) {
      if (member.name == name) {
        return member.offset;
      }
    }
    return std::size_t{9999};
  };
  EXPECT_EQ(offset("position.z"), offsetof(Outer, position.z));
  EXPECT_EQ(offset("inner[1].mass"), offsetof(Outer, inner[1].mass));
  EXPECT_EQ(offset("inner[1].flags[2]"), offsetof(Outer, inner[1].flags[2]));
  EXPECT_EQ(offset("id"), offsetof(Outer, id));
  EXPECT_EQ(offset("color.w"), offsetof(Outer, color.w));
  EXPECT_EQ(offset("last"), offsetof(Outer, last));
  EXPECT_FALSE(outer.is_uniform());
}

TEST(CompositeTypeTest, VectorsHaveTheSizesAndAlignmentsOfCuda) {
  const struct {
    const char* name;
    ElementType type;
    std::size_t members, bytes, alignment;
  } known[] = {{"char1", ElementType::int8, 1, 1, 1},        {"uchar4", ElementType::uint8, 4, 4, 4},
               {"short2", ElementType::int16, 2, 4, 4},      {"ushort3", ElementType::uint16, 3, 6, 2},
               {"int2", ElementType::int32, 2, 8, 8},        {"uint3", ElementType::uint32, 3, 12, 4},
               {"float2", ElementType::float32, 2, 8, 8},    {"float3", ElementType::float32, 3, 12, 4},
               {"float4", ElementType::float32, 4, 16, 16},  {"double2", ElementType::float64, 2, 16, 16},
               {"double4", ElementType::float64, 4, 32, 16}, {"ulonglong4", ElementType::uint64, 4, 32, 16},
               {"half2", ElementType::float16, 2, 4, 4},     {"nv_bfloat162", ElementType::bfloat16, 2, 4, 4},
               {"complex64", ElementType::float32, 2, 8, 8}, {"complex128", ElementType::float64, 2, 16, 16}};
  for (const auto& wanted : known) {
    const auto vector = CompositeType::vector(wanted.name);
    ASSERT_TRUE(vector) << wanted.name;
    EXPECT_EQ(vector->members.size(), wanted.members) << wanted.name;
    EXPECT_EQ(vector->members.back().type, wanted.type) << wanted.name;
    EXPECT_EQ(vector->bytes(), wanted.bytes) << wanted.name;
    EXPECT_EQ(vector->alignment, wanted.alignment) << wanted.name;
    EXPECT_TRUE(vector->is_uniform()) << wanted.name;
  }
  for (const char* name : {"float", "float5", "float0", "half3", "long2", "bool2", "float32", ""}) {
    EXPECT_FALSE(CompositeType::vector(name)) << name;
  }
}

}  // namespace
}  // namespace pascaline::testing
