#include "model/checkpoint/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/elements.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;

class ConvertTest : public ::testing::TestWithParam<HalfPath> {
 protected:
  void SetUp() override {
    if (GetParam() == HalfPath::f16c && best_half_path() != HalfPath::f16c) {
      GTEST_SKIP() << "this processor has no F16C";
    }
  }

  template <typename To, typename From>
  std::vector<To> convert(StoredType from, const std::vector<From>& in, ElementType to) {
    std::vector<To> out(in.size());
    unfit_ =
        convert_weights(from, std::as_bytes(std::span(in)), to, std::as_writable_bytes(std::span(out)), GetParam());
    return out;
  }

  std::optional<UnfitWeight> unfit_;
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

// All finite numbers of 16 bits; those of the type with `infinity` as its positive infinity.
std::vector<std::uint16_t> finite_numbers(std::uint16_t infinity) {
  std::vector<std::uint16_t> numbers;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    if ((bits & infinity) != infinity) {
      numbers.push_back(static_cast<std::uint16_t>(bits));
    }
  }
  return numbers;
}

TEST_P(ConvertTest, EveryHalfIsExact) {
  const std::vector<std::uint16_t> halves = finite_numbers(0x7C00);
  const auto widened = convert<float>(StoredType::F16, halves, ElementType::float32);
  ASSERT_FALSE(unfit_.has_value());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), std::bit_cast<std::uint32_t>(float_from_half(halves[i])))
        << halves[i];
  }
  EXPECT_EQ((convert<std::uint16_t>(StoredType::F32, widened, ElementType::float16)), halves);
  EXPECT_EQ((convert<std::uint16_t>(StoredType::F16, halves, ElementType::float16)), halves);
}

TEST_P(ConvertTest, EveryBfloatIsExactOrRoundedOrRefused) {
  const std::vector<std::uint16_t> bfloats = finite_numbers(0x7F80);
  const auto widened = convert<float>(StoredType::BF16, bfloats, ElementType::float32);
  ASSERT_FALSE(unfit_.has_value());
  for (std::size_t i = 0; i < bfloats.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), std::uint32_t{bfloats[i]} << 16U);
    const auto half =
        convert<std::uint16_t>(StoredType::BF16, std::vector<std::uint16_t>{bfloats[i]}, ElementType::float16);
    const std::uint16_t expected = half_from_float(widened[i]);
    ASSERT_EQ(unfit_.has_value(), (expected & 0x7FFFU) == 0x7C00U) << widened[i];
    if (!unfit_) {
      ASSERT_EQ(half[0], expected) << widened[i];
    }
  }
  EXPECT_EQ((convert<std::uint16_t>(StoredType::F32, widened, ElementType::bfloat16)), bfloats);
}

TEST_P(ConvertTest, FloatsAreRoundedToTheNearestEven) {
  std::vector<float> floats;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    const std::uint32_t bits = i * 2654435761U;
    // Exponents of both types' whole range, subnormal halves among them.
    const std::uint32_t exponent = 90U + (bits >> 24U) % 52U;
    floats.push_back(std::bit_cast<float>((bits & 0x807FFFFFU) | (exponent << 23U)));
    floats.push_back(std::bit_cast<float>((bits & 0x807FE000U) | 0x1000U | (exponent << 23U)));  // ties of a half
  }
  const auto halves = convert<std::uint16_t>(StoredType::F32, floats, ElementType::float16);
  ASSERT_FALSE(unfit_.has_value());
  const auto bfloats = convert<std::uint16_t>(StoredType::F32, floats, ElementType::bfloat16);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i], half_from_float(floats[i])) << floats[i];
    ASSERT_EQ(bfloats[i], bfloat_from_float(floats[i])) << floats[i];
  }
  EXPECT_EQ(bits_of(convert<float>(StoredType::F32, floats, ElementType::float32)), bits_of(floats));
}

TEST_P(ConvertTest, SubnormalFloatsAreKept) {
  const std::vector<float> floats{
      std::numeric_limits<float>::denorm_min(), -1e-40F, 0.0F, -0.0F, 1e-45F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F};
  EXPECT_EQ(bits_of(convert<float>(StoredType::F32, floats, ElementType::float32)), bits_of(floats));
  const auto bfloats = convert<std::uint16_t>(StoredType::F32, floats, ElementType::bfloat16);
  EXPECT_EQ(bfloats[1], bfloat_from_float(-1e-40F));
  EXPECT_NE(bfloats[1] & 0x7FFFU, 0U);
  const auto halves = convert<std::uint16_t>(StoredType::F32, floats, ElementType::float16);
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0, 0x8000, 0, 0x8000, 0, 1, 0, 1}));
}

TEST_P(ConvertTest, OverflowIsRefusedAtTheFirstElement) {
  const auto unfit_at = [&](float value, ElementType to, std::size_t place, std::size_t count) {
    std::vector<float> floats(count, 1.0F);
    floats[place] = value;
    to == ElementType::float32 ? (void)convert<float>(StoredType::F32, floats, to)
                               : (void)convert<std::uint16_t>(StoredType::F32, floats, to);
    return unfit_.has_value() && unfit_->index == place;
  };
  const float below_half = std::nextafter(65520.0F, 0.0F);
  const float bfloat_limit = std::bit_cast<float>(0x7F7F8000U);
  for (const std::size_t place :
       {std::size_t{0}, std::size_t{7}, std::size_t{2047}, std::size_t{2048}, std::size_t{5000}}) {
    EXPECT_TRUE(unfit_at(65520.0F, ElementType::float16, place, 5001));
    EXPECT_TRUE(unfit_at(-65520.0F, ElementType::float16, place, 5001));
    EXPECT_FALSE(unfit_at(below_half, ElementType::float16, place, 5001));
    EXPECT_FALSE(unfit_at(-below_half, ElementType::float16, place, 5001));
    EXPECT_TRUE(unfit_at(bfloat_limit, ElementType::bfloat16, place, 5001));
    EXPECT_FALSE(unfit_at(std::nextafter(bfloat_limit, 0.0F), ElementType::bfloat16, place, 5001));
    EXPECT_FALSE(unfit_at(std::numeric_limits<float>::max(), ElementType::float32, place, 5001));
  }
}

TEST_P(ConvertTest, NothingButFiniteNumbersIsAccepted) {
  for (const ElementType to : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
    const auto check = [&](StoredType from, std::vector<std::byte> bytes) {
      std::vector<std::byte> out(bytes.size() / size_of(from) * size_of(to));
      const auto unfit = convert_weights(from, bytes, to, out, GetParam());
      ASSERT_TRUE(unfit.has_value()) << name_of(from) << " to " << name_of(to);
      EXPECT_EQ(unfit->index, 9U);
      EXPECT_FALSE(std::isfinite(unfit->value));
    };
    for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF}) {
      std::vector<std::byte> bytes(20);
      std::memcpy(bytes.data() + 18, &bits, sizeof bits);
      check(StoredType::F16, bytes);
    }
    for (const std::uint32_t bits : {0x7F800000U, 0xFF800000U, 0x7F800001U, 0x7FC00000U, 0xFFFFFFFFU}) {
      std::vector<std::byte> bytes(40);
      std::memcpy(bytes.data() + 36, &bits, sizeof bits);
      check(StoredType::F32, bytes);
      std::vector<std::byte> narrow(20);
      const auto upper = static_cast<std::uint16_t>((bits >> 16U) | (bits & 1U));
      std::memcpy(narrow.data() + 18, &upper, sizeof upper);
      check(StoredType::BF16, narrow);
    }
  }
}

TEST_P(ConvertTest, NeitherSideNeedsAlignment) {
  for (const StoredType from : {StoredType::F32, StoredType::F16, StoredType::BF16}) {
    for (const ElementType to : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
      constexpr std::size_t kCount = 37;
      std::vector<std::byte> in(kCount * size_of(from) + 1);
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<std::byte>(i % 0x30);
      }
      std::vector<std::byte> out(kCount * size_of(to) + 2, std::byte{0xAB});
      const auto odd_in = std::span(in).subspan(1);
      ASSERT_FALSE(convert_weights(from, odd_in, to, std::span(out).subspan(1, kCount * size_of(to)), GetParam()));
      EXPECT_EQ(out.front(), std::byte{0xAB});
      EXPECT_EQ(out.back(), std::byte{0xAB});
      std::vector<std::byte> aligned_in(odd_in.begin(), odd_in.end());
      std::vector<std::byte> aligned(kCount * size_of(to));
      ASSERT_FALSE(convert_weights(from, aligned_in, to, aligned, GetParam()));
      EXPECT_TRUE(std::equal(aligned.begin(), aligned.end(), out.begin() + 1));
    }
  }
}

std::string path_name(const ::testing::TestParamInfo<HalfPath>& path) {
  return path.param == HalfPath::f16c ? "f16c" : "portable";
}

INSTANTIATE_TEST_SUITE_P(Paths, ConvertTest, ::testing::Values(HalfPath::portable, HalfPath::f16c), path_name);

TEST(ConvertRequestTest, OtherTypesAndCountsAreRefused) {
  std::vector<std::byte> eight(8);
  EXPECT_THROW((void)convert_weights(StoredType::I32, eight, ElementType::float32, eight), Error);
  EXPECT_THROW((void)convert_weights(StoredType::F32, eight, ElementType::int32, eight), Error);
  EXPECT_THROW((void)convert_weights(StoredType::F32, eight, ElementType::float16, eight), Error);
  EXPECT_THROW((void)convert_weights(StoredType::F32, std::span(eight).first(7), ElementType::float32,
                                     std::span(eight).first(4)),
               Error);
  EXPECT_FALSE(convert_weights(StoredType::F32, {}, ElementType::float16, {}).has_value());
}

TEST(ReadWeightsTest, PartsAndThreadsGiveTheSame) {
  std::vector<float> floats(3'000'000);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    floats[i] = static_cast<float>(i % 2048);
  }
  const StoredTensor tensor{"w", StoredType::F32, {3'000'000}, std::as_bytes(std::span(floats))};
  std::vector<std::uint16_t> halves(2'500'000);
  read_weights(tensor, 400'001, ElementType::float16, std::as_writable_bytes(std::span(halves)));
  for (std::size_t i = 0; i < halves.size(); i += 997) {
    ASSERT_EQ(halves[i], half_from_float(floats[i + 400'001])) << i;
  }
  floats[2'900'000] = -1e6F;
  PASCALINE_EXPECT_SAYS(
      complaint_of(
          [&] { read_weights(tensor, 400'001, ElementType::float16, std::as_writable_bytes(std::span(halves))); }),
      "tensor 'w': its element 2900000, -1000000, is beyond the range of float16");
  floats[2'900'000] = std::numeric_limits<float>::quiet_NaN();
  PASCALINE_EXPECT_SAYS(
      complaint_of(
          [&] { read_weights(tensor, 400'001, ElementType::float16, std::as_writable_bytes(std::span(halves))); }),
      "tensor 'w': its element 2900000 is nan; the checkpoint is damaged");
  const auto out = std::as_writable_bytes(std::span(halves)).first(4);
  EXPECT_THROW(read_weights(tensor, 2'999'999, ElementType::float16, out), Error);
  EXPECT_THROW(read_weights(tensor, -1, ElementType::float16, out), Error);
  EXPECT_THROW(read_weights(tensor, INT64_MAX, ElementType::float16, out), Error);
  EXPECT_NO_THROW(read_weights(tensor, 2'999'998, ElementType::float16, out));
}

}  // namespace
}  // namespace pascaline
