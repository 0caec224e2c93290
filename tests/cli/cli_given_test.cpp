#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// Sweeps of the toy kernel with contents of its buffers.
class CliGivenTest : public CliTest {
 protected:
  [[nodiscard]] std::string contents(const std::string& name, float value, std::size_t count = 1000) const {
    const std::vector<float> numbers(count, value);
    const std::filesystem::path file = folder_ / name;
    write_file_atomically(file, {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
    return file.string();
  }
  [[nodiscard]] std::vector<std::string> problems() const {
    std::vector<std::string> texts;
    for (const StoredTrial& trial : Store(database_, OpenMode::read_only).trials({})) {
      if (texts.empty() || texts.back() != trial.trial.problem.text()) {
        texts.push_back(trial.trial.problem.text());
      }
    }
    return texts;
  }
  [[nodiscard]] std::vector<std::string> resuming(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"sweep", "--resume", "--db", database_, "--kernels", kernels_, "--spaces", kernels_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(CliGivenTest, ContentsAreAPartOfTheShape) {
  const std::string one = "x=" + contents("one.bin", 1);
  tune({"--problem", "N=1000", "--trials", "2"});
  tune({"--problem", "N=1000", "--trials", "2", "--input", one});
  tune({"--problem", "N=1000", "--trials", "2", "--input", "x=" + contents("two.bin", 2)});
  const std::vector<std::string> texts = problems();
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0], "toy N=1000");
  EXPECT_TRUE(texts[1].starts_with("toy N=1000 DATA=")) << texts[1];
  EXPECT_NE(texts[1], texts[2]);
  const ProgramResult again = simulate(sweep({"--problem", "N=1000", "--trials", "2", "--input", one, "--json"}));
  EXPECT_NE(again.out.find("\"reused\": 2"), std::string::npos) << again.out;
  const ProgramResult explained =
      run(on_toy("explain", {"--problem", "N=1000", "--db", database_, "--device", "emulator"}));
  EXPECT_NE(explained.out.find("exact: tuned on this kind of device with given contents"), std::string::npos)
      << explained.out << "although there is a winner of random contents";
}

TEST_F(CliGivenTest, ALaunchUsesAWinnerOfGivenContents) {
  tune({"--problem", "N=1000", "--trials", "2", "--input", "x=" + contents("one.bin", 1)});
  const ProgramResult explained =
      run(on_toy("explain", {"--problem", "N=1000", "--db", database_, "--device", "emulator"}));
  EXPECT_NE(explained.out.find("exact: tuned on this kind of device with given contents"), std::string::npos)
      << explained.out;
}

TEST_F(CliGivenTest, AResumedSweepNeedsTheSameContents) {
  const std::string one = "x=" + contents("one.bin", 1);
  tune({"--problem", "N=1000", "--trials", "2", "--input", one});
  const ProgramResult without = run(resuming({"--trials", "1"}));
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_NE(without.error.find("other contents; give the original files with --input and --answer"), std::string::npos)
      << without.error;
  const ProgramResult other = run(resuming({"--trials", "1", "--input", "x=" + contents("two.bin", 2)}));
  EXPECT_EQ(other.exit_code, 1) << other.error;
  const ProgramResult same = simulate(resuming({"--trials", "1", "--input", one}));
  EXPECT_EQ(same.exit_code, 0) << same.error << same.out;
  EXPECT_EQ(problems().size(), 1U);
  const ProgramResult named = run(sweep({"--problem", "N=1000,DATA=0123456789abcdef", "--trials", "1"}));
  EXPECT_EQ(named.exit_code, 1) << "nothing has such contents";
}

TEST_F(CliGivenTest, WrongFilesAreRefusedBeforeTheSweep) {
  const std::string small = contents("small.bin", 1, 10);
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--input", "x=" + small}, "it has 10 elements of float32"},
           {{"--input", "x"}, "expected NAME=FILE"},
           {{"--input", "x=" + (folder_ / "gone").string()}, "gone: cannot open"},
           {{"--answer", "x=" + small}, "no output buffer of that name (it has: out)"},
           {{"--input", "x=" + small, "--workload", (folder_ / "toy.json").string()}, "shapes of one kernel"}}) {
    const ProgramResult result = run(sweep(words));
    EXPECT_NE(result.exit_code, 0) << part;
    EXPECT_NE(result.error.find(part), std::string::npos) << result.error;
    EXPECT_FALSE(std::filesystem::exists(database_));
  }
}

// With real workers.
TEST_F(CliGivenTest, TheAnswerDecides) {
  const std::string x = "x=" + contents("x.bin", 2);
  const std::string y = "y=" + contents("y.bin", 1);
  const std::vector<std::string> once{"--problem", "N=1000", "--trials", "1", "--input", x, "--input", y, "--answer"};
  const auto with_answer = [&](const std::string& file) {
    std::vector<std::string> words = sweep(once);
    words.push_back("out=" + file);
    return run(words);
  };
  const ProgramResult right = with_answer(contents("right.bin", 3 * 2 + 1));
  EXPECT_EQ(right.exit_code, 0) << right.error << right.out;
  const ProgramResult wrong = with_answer(contents("wrong.bin", 8));
  EXPECT_EQ(wrong.exit_code, 3) << wrong.out;
  EXPECT_NE(wrong.out.find("7 instead of 8"), std::string::npos) << wrong.out;
}

}  // namespace
}  // namespace pascaline::testing
