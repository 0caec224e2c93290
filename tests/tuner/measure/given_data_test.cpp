#include "tuner/measure/given_data.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/argument_error.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

std::string bytes_of_numbers(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

// A file like those of numpy.save.
std::string numpy_file(const std::string& header, const std::string& contents) {
  std::string text = header + "\n";
  return "\x93NUMPY" + std::string("\x01\x00", 2) + static_cast<char>(text.size() % 256) +
         static_cast<char>(text.size() / 256) + text + contents;
}

std::string numpy_file(const std::vector<float>& numbers) {
  return numpy_file(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", numbers.size()),
                    bytes_of_numbers(numbers));
}

class GivenDataTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 1000;

  [[nodiscard]] static std::vector<float> numbers(float first) {
    std::vector<float> found;
    for (std::size_t i = 0; i < kCount; ++i) {
      found.push_back(first + static_cast<float>(i));
    }
    return found;
  }
  std::filesystem::path write(const std::string& name, const std::string& contents) {
    std::ofstream(bench_.folder() / name, std::ios::binary) << contents;
    return bench_.folder() / name;
  }
  [[nodiscard]] std::string fault(const GivenFiles& files) const {
    try {
      (void)GivenData(files, bench_.bound());
      return "";
    } catch (const ArgumentError& error) {
      return error.what();
    }
  }
  [[nodiscard]] Trial run(const GivenFiles& files, Fault what = kRight) {
    RelayDevice device;
    DeviceMonitor monitor(device, {.passive = true});
    TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
    runner.give(GivenData(files, bench_.bound()));
    const Config config = toy_config(64, what);
    return runner.run(config, bench_.compile(config), 0);
  }

  ToyBench bench_{toy_json({kRight, kLastElementLeftOut, kWriteInput})};
};

TEST_F(GivenDataTest, TakesNumpysFilesAndBytesAlone) {
  const auto numpy = write("x.npy", numpy_file(numbers(1)));
  const auto bytes = write("x.bin", bytes_of_numbers(numbers(1)));
  const GivenData one({.inputs = {{"x", numpy}}}, bench_.bound());
  const GivenData other({.inputs = {{"x", bytes}}}, bench_.bound());
  EXPECT_EQ(one.hash(), other.hash());
  EXPECT_EQ(one.hash().size(), 16U);
  EXPECT_EQ(one.input("x").size(), kCount * sizeof(float));
  EXPECT_TRUE(one.input("y").empty());
  EXPECT_TRUE(one.answer("x").empty());
  EXPECT_EQ(GivenData().hash(), "");
  const GivenData moved({.inputs = {{"y", bytes}}}, bench_.bound());
  EXPECT_NE(moved.hash(), one.hash()) << "the argument is part of it";
}

TEST_F(GivenDataTest, RefusesInOneLineWhatDoesNotFit) {
  const auto right = write("right.bin", bytes_of_numbers(numbers(0)));
  const auto with = [&](const std::string& name, const std::string& contents) {
    return fault({.inputs = {{"x", write(name, contents)}}});
  };
  EXPECT_EQ(fault({.inputs = {{"x", right}}, .answers = {{"out", right}}}), "");
  EXPECT_NE(with("short.bin", "1234").find("it has 1 elements of float32 (4 bytes), where toy N=1000 needs 1000"),
            std::string::npos);
  const std::string doubles = numpy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }", "");
  EXPECT_NE(with("double.npy", doubles).find("its dtype is '<f8', float32 needs '<f4'"), std::string::npos);
  const std::string big = numpy_file("{'descr': '>f4', 'fortran_order': False, 'shape': (1000,), }", "");
  EXPECT_NE(with("big.npy", big).find("its dtype is '>f4'"), std::string::npos);
  const std::string columns =
      numpy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (10, 100), }", bytes_of_numbers(numbers(0)));
  EXPECT_NE(with("columns.npy", columns).find("ascontiguousarray"), std::string::npos);
  EXPECT_NE(with("text.npy", "no numbers").find("not a valid .npy file"), std::string::npos);
  EXPECT_NE(with("cut.npy", numpy_file(numbers(0)).substr(0, 30)).find("not a valid .npy file"), std::string::npos);
  EXPECT_NE(fault({.inputs = {{"z", right}}}).find("kernel 'toy' has no input buffer of that name (it has: x, y"),
            std::string::npos);
  EXPECT_NE(fault({.answers = {{"x", right}}}).find("no output buffer of that name"), std::string::npos);
  EXPECT_NE(fault({.inputs = {{"x", right}, {"x", right}}}).find("given twice"), std::string::npos);
  EXPECT_NE(fault({.inputs = {{"x", bench_.folder() / "gone"}}}).find("gone"), std::string::npos);
}

TEST_F(GivenDataTest, AKernelRunsOnThem) {
  const auto x = write("x.bin", bytes_of_numbers(numbers(1)));
  const auto y = write("y.bin", bytes_of_numbers(numbers(5)));
  std::vector<float> sums;
  for (std::size_t i = 0; i < kCount; ++i) {
    sums.push_back(3 * numbers(1)[i] + numbers(5)[i]);
  }
  const GivenFiles inputs{.inputs = {{"x", x}, {"y", y}}};
  EXPECT_EQ(run(inputs).status, TrialStatus::ok);
  GivenFiles answered = inputs;
  answered.answers = {{"out", write("out.npy", numpy_file(sums))}};
  EXPECT_EQ(run(answered).status, TrialStatus::ok);
  EXPECT_EQ(run(answered, kLastElementLeftOut).status, TrialStatus::wrong_result);
  EXPECT_EQ(run(answered, kWriteInput).reason, "wrote to the input buffer 'x'");
  sums[7] += 1;
  answered.answers = {{"out", write("other.npy", numpy_file(sums))}};
  const Trial other = run(answered);
  EXPECT_EQ(other.status, TrialStatus::wrong_result);
  EXPECT_NE(other.reason.find("out[7]: 36 instead of 37"), std::string::npos) << other.reason;
}

TEST_F(GivenDataTest, AFileThatChangesIsNoticed) {
  const auto x = write("x.bin", bytes_of_numbers(numbers(1)));
  const GivenData given({.inputs = {{"x", x}}}, bench_.bound());
  EXPECT_NO_THROW(given.require_unchanged());
  write("x.bin", bytes_of_numbers(numbers(2)));
  std::filesystem::last_write_time(x, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_THROW(given.require_unchanged(), ArgumentError);
  std::filesystem::remove(x);
  EXPECT_THROW(given.require_unchanged(), ArgumentError);
}

}  // namespace
}  // namespace pascaline::testing
