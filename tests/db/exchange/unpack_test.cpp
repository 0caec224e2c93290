#include "db/exchange/unpack.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/db/exchange/samples.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline {
namespace {

using testing::csv_sample;
using testing::expect_same_space;
using testing::kernel_tuner_sample;
using testing::packed;
using testing::t4_sample;

std::string unpack_refusal(const std::string& bytes, std::size_t most = kMaxRecordedBytes) {
  return testing::message_of<SpaceError>([&] { (void)unpack_gzip(bytes, "file", most); });
}

TEST(Unpack, WhatWasPackedComesBack) {
  EXPECT_EQ(unpack_gzip(packed(""), "file"), "");
  const std::string large(1'000'000, 'x');
  EXPECT_EQ(unpack_gzip(packed(large), "file"), large);
  EXPECT_EQ(unpack_gzip(packed("one ") + packed("two"), "file"), "one two");
}

TEST(Unpack, DamagedAndCutOffFilesAreRefused) {
  const std::string whole = packed(kernel_tuner_sample());
  for (std::size_t cut = 2; cut < whole.size(); cut += 11) {
    EXPECT_EQ(unpack_refusal(whole.substr(0, cut)), "file: is cut off: its gzip data end too early") << cut;
  }
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  EXPECT_EQ(unpack_refusal(damaged), "file: is damaged: its gzip data cannot be unpacked");
  EXPECT_EQ(unpack_refusal(whole + "more"), "file: is damaged: its gzip data cannot be unpacked");
}

TEST(Unpack, ABombIsStoppedAtTheLimit) {
  EXPECT_EQ(unpack_refusal(packed(std::string(5'000'000, '\0')), 4'000'000),
            "file: unpacks to more than 4000000 bytes");
  EXPECT_EQ(unpack_gzip(packed(std::string(4'000'000, '\0')), "file", 4'000'000).size(), 4'000'000U);
}

TEST(ReadRecordedSpace, WhatAFileIsItsContentsTellNotItsName) {
  const testing::TemporaryFolder folder;
  for (const std::string& text : {kernel_tuner_sample(), t4_sample().dump(), csv_sample()}) {
    const RecordedSpace space = parse_recorded_space(text, "x");
    testing::write_bytes(folder / "plain.txt", text);
    testing::write_bytes(folder / "packed.csv", packed(text));
    const RecordedSpace plain = read_recorded_space(folder / "plain.txt");
    expect_same_space(plain, space);
    expect_same_space(read_recorded_space(folder / "packed.csv"), space);
    EXPECT_EQ(plain.format, space.format);
    EXPECT_EQ(plain.name, "plain");
  }
}

TEST(ReadRecordedSpace, OtherFilesAreRefused) {
  const testing::TemporaryFolder folder;
  const auto message = [&](const std::string& bytes) -> std::string {
    testing::write_bytes(folder / "file", bytes);
    try {
      (void)read_recorded_space(folder / "file");
    } catch (const Error& error) {
      return testing::with(error.what(), (folder / "file").string(), "FILE");
    }
    ADD_FAILURE() << "was read: " << bytes;
    return {};
  };
  EXPECT_EQ(message(""), "FILE: the file is empty");
  EXPECT_EQ(message(" \n\t"), "FILE: the file is empty");
  EXPECT_EQ(message(packed("")), "FILE: the file is empty");
  EXPECT_EQ(message("SQLite format 3"), "FILE: this is a database, not a recorded space of another tuner");
  EXPECT_EQ(message("{"), "FILE: not valid JSON at line 1, column 2");
  EXPECT_EQ(
      message("{}"),
      "FILE: this JSON is neither a cache of Kernel Tuner ('tune_params_keys' and 'cache'), T4 results "
      "('schema_version' and 'results'), nor results of CLBlast ('kernel_family' and 'results') or KTT ('Metadata' "
      "and 'Results')");
  EXPECT_EQ(message(R"({"ConfigurationSpace": {}})"),
            "FILE: this is a T1 input, a search space without results; `python -m pascaline.import_t1` takes it over");
  EXPECT_THROW((void)read_recorded_space(folder / "none"), Error);
  EXPECT_THROW((void)read_recorded_space(folder.path()), Error);
}

}  // namespace
}  // namespace pascaline
