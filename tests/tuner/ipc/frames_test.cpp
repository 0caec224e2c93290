#include "tuner/ipc/frames.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <limits>
#include <vector>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

json example_message() {
  json::binary_t bytes;
  for (int value = 0; value < 256; ++value) {
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
  return {
      {"is", "trial"}, {"id", 1'234'567'890'123}, {"code", json::binary(bytes)}, {"time_us", 0.1}, {"none", nullptr}};
}

std::string with_length(std::uint64_t length, const std::string& body) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>(length >> shift & 0xff));
  }
  return bytes + body;
}

TEST(FramesTest, MessagesComeOutHoweverTheStreamIsCut) {
  const json first = example_message();
  const json second{{"is", "ready"}};
  const std::string stream = frame_of(first) + frame_of(second);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader reader;
    std::vector<json> read;
    for (const std::string_view part :
         {std::string_view(stream).substr(0, cut), std::string_view(stream).substr(cut)}) {
      reader.append(part);
      while (auto message = reader.next()) {
        read.push_back(std::move(*message));
      }
    }
    ASSERT_EQ(read, (std::vector<json>{first, second})) << "cut after " << cut;
  }
}

TEST(FramesTest, MessageComesWithItsLastByteAndNotBefore) {
  const std::string stream = frame_of(example_message());
  FrameReader reader;
  for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
    reader.append(std::string_view(stream).substr(i, 1));
    ASSERT_FALSE(reader.next()) << i;
  }
  reader.append(std::string_view(stream).substr(stream.size() - 1));
  EXPECT_EQ(reader.next(), example_message());
  EXPECT_FALSE(reader.next());
}

TEST(FramesTest, DoublesAndBytesAreUnchanged) {
  const std::vector<double> values{0.1,
                                   -0.0,
                                   1.0 / 3,
                                   std::numeric_limits<double>::max(),
                                   std::numeric_limits<double>::denorm_min(),
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity()};
  json message = example_message();
  message["values"] = values;
  message["nan"] = std::nan("");
  FrameReader reader;
  reader.append(frame_of(message));
  const auto read = reader.next();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at("values").get<std::vector<double>>(), values);
  EXPECT_TRUE(std::signbit(read->at("values").at(1).get<double>()));
  EXPECT_TRUE(std::isnan(read->at("nan").get<double>()));
  EXPECT_EQ(read->at("code").get_binary(), example_message().at("code").get_binary());
}

TEST(FramesTest, AnythingElseIsAnError) {
  std::string trailing = frame_of({{"is", "ready"}});
  const std::string body = trailing.substr(8);
  for (const std::string& stream : {
           std::string("Segmentation fault (core dumped)\n"),  // a length beyond any message
           with_length(std::uint64_t{1} << 33U, ""),           // told before so much was waited for
           with_length(~std::uint64_t{0}, "x"),
           with_length(3, "\xff\xff\xff"),
           with_length(1, "\x01"),  // a number
           with_length(0, ""),
           with_length(body.size() - 1, body),  // cut short
           with_length(body.size() + 1, body + "x"),
       }) {
    FrameReader reader;
    reader.append(stream);
    EXPECT_THROW(std::ignore = reader.next(), Error) << stream.size();
  }
}

TEST(FramesTest, WritingToAReaderThatIsGoneIsNoMoreThanFalse) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_TRUE(write_all(ends[1], "some bytes"));
  std::array<char, 64> read{};
  EXPECT_EQ(::read(ends[0], read.data(), read.size()), 10);
  ::close(ends[0]);
  EXPECT_FALSE(write_all(ends[1], "some bytes"));
  ::close(ends[1]);
}

}  // namespace
}  // namespace pascaline::testing
