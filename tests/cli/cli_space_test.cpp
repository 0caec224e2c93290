#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// Every case first stores some trials, and ends by looking whether they are still there.
class CliSpaceTest : public CliTest {
 protected:
  std::vector<std::string> before_;

  void SetUp() override {
    CliTest::SetUp();
    tune();
    before_ = stored();
    ASSERT_FALSE(before_.empty());
  }
  void TearDown() override { EXPECT_EQ(stored(), before_); }

  // Every command that reads a space refuses this one in the same way.
  void expect_refused(const std::function<void(nlohmann::json&)>& spoil, const std::vector<std::string>& parts) {
    nlohmann::json json = toy_json({kRight, kNotANumber});
    spoil(json);
    expect_refused(json.dump(2), parts);
  }
  void expect_refused(const std::string& text, std::vector<std::string> parts) {
    write_bytes(folder_ / "toy.json", text);
    parts.push_back((folder_ / "toy.json").string());
    expect_fault(run(sweep()), 1, parts);
    expect_fault(run(on_toy("compile", {"--arch", "emulator", "--limit", "1"})), 1, parts);
    expect_fault(run(on_toy("check")), 1, parts);
    expect_fault(run(on_toy("explain", {"--device", "emulator", "--db", database_})), 1, parts);
  }
};

TEST_F(CliSpaceTest, NoJson) { expect_refused("{\"schema\": 1,\n  kernel: toy}", {"line 2"}); }

TEST_F(CliSpaceTest, EmptyFile) { expect_refused("", {}); }

TEST_F(CliSpaceTest, MissingFile) {
  std::filesystem::remove(folder_ / "toy.json");
  const ProgramResult result = run(sweep());
  expect_fault(result, 1, {"no kernel 'toy'", (folder_ / "toy.json").string(), "pascaline kernels"});
}

TEST_F(CliSpaceTest, UnknownKey) {
  expect_refused([](auto& json) { json["parameters"][0]["valeus"] = 1; }, {":/parameters/0", "valeus"});
}

TEST_F(CliSpaceTest, TypeSlip) {
  expect_refused([](auto& json) { json["parameters"][0]["values"] = "32, 64"; }, {":/parameters/0/values"});
}

TEST_F(CliSpaceTest, DefaultOutsideItsValues) {
  expect_refused([](auto& json) { json["parameters"][0]["default"] = 65; }, {":/parameters/0/default", "65"});
}

// What is code here must never run: every command that reads the space refuses it, naming the place.
TEST_F(CliSpaceTest, CodeInAName) {
  const std::string mark = (folder_ / "mark").string();
  const std::string code = fmt::format("toy);int x=__builtin_system(\"touch {}\"", mark);
  expect_refused([&](auto& json) { json["launch"]["function"] = code; }, {":/launch/function", "identifier"});
  expect_refused([&](auto& json) { json["parameters"][0]["name"] = code; }, {":/parameters/0/name", "identifier"});
  expect_refused([](auto& json) { json["kernel"] = "../toy"; }, {":/kernel"});
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(CliSpaceTest, OptionThatReadsAFile) {
  expect_refused(
      [](auto& json) {
        json["parameters"].push_back(
            {{"name", "READ"}, {"values", {"/etc/passwd"}}, {"default", "/etc/passwd"}, {"option", "--pre-include="}});
      },
      {"/option", "'--pre-include=/etc/passwd'"});
}

TEST_F(CliSpaceTest, UnparsableConstraint) {
  expect_refused([](auto& json) { json["constraints"][0]["require"] = "BLOCK <= (64"; },
                 {":/constraints/0/require", "BLOCK <= (64"});
}

TEST_F(CliSpaceTest, ConstraintOfAnUnknownName) {
  expect_refused([](auto& json) { json["constraints"][0]["require"] = "BLOK <= 64"; },
                 {":/constraints/0/require", "BLOK"});
}

TEST_F(CliSpaceTest, ConstraintsThatLeaveNothingAtAll) {
  expect_refused(
      [](auto& json) {
        json["constraints"].push_back({{"require", "BLOCK > 128"}, {"because", "only large blocks"}});
      },
      {":/constraints"});
}

TEST_F(CliSpaceTest, ConstraintsThatLeaveNothingForTheProblem) {
  nlohmann::json json = toy_json({kRight, kNotANumber});
  json["constraints"].push_back({{"require", "N > 5000 + BLOCK"}, {"because", "small problems are for others"}});
  write_bytes(folder_ / "toy.json", json.dump());
  const std::vector<std::string> parts{(folder_ / "toy.json").string() + ":/constraints",
                                       "small problems are for others"};
  const ProgramResult swept = run(sweep({"--quiet"}));
  expect_fault(swept, 1, parts);
  expect_fault(run(on_toy("compile", {"--arch", "emulator", "--limit", "1"})), 1, parts);
}

TEST_F(CliSpaceTest, ValueOutsideItsListOnTheCommandLine) {
  for (const char* command : {"compile", "check"}) {
    expect_fault(run(on_toy(command, {"--set", "BLOCK=65"})), 1, {"65 is not among the values of BLOCK (32, 64, 128)"});
    expect_fault(run(on_toy(command, {"--set", "BLOK=64"})), 1, {"no parameter 'BLOK'"});
    expect_fault(run(on_toy(command, {"--set", "BLOCK"})), 2, {"'BLOCK' is not NAME=value"});
  }
}

// Brackets and quotes keep the commas of a text, and what is printed can be given again.
TEST_F(CliSpaceTest, TextWithCommasOnTheCommandLine) {
  nlohmann::json json = toy_json({kRight});
  json["parameters"].push_back({{"name", "SHAPE"}, {"values", {"Shape<64, 32>", "Shape<2,1>", "a"}}, {"default", "a"}});
  write_bytes(folder_ / "toy.json", json.dump());
  for (const char* given : {"SHAPE=Shape<64, 32>", "SHAPE=Shape<64, 32>,BLOCK=64", "BLOCK=64,SHAPE=\"Shape<64, 32>\"",
                            "SHAPE=\"Shape<64, 32>\",BLOCK=64"}) {
    const ProgramResult checked = run(on_toy("compile", {"--arch", "emulator", "--set", given}));
    EXPECT_EQ(checked.exit_code, 0) << given << checked.error;
    EXPECT_NE(checked.out.find("SHAPE=\"Shape<64, 32>\""), std::string::npos) << checked.out;
  }
  const ProgramResult checked = run(on_toy("check", {"--set", "SHAPE=Shape<2,1>"}));
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
  EXPECT_NE(checked.out.find("SHAPE=\"Shape<2,1>\""), std::string::npos) << checked.out;
  expect_fault(run(on_toy("check", {"--set", "SHAPE=Shape<3, 1>"})), 1,
               {R"("Shape<3, 1>" is not among the values of SHAPE ("Shape<64, 32>", "Shape<2,1>", a))"});
  expect_fault(run(on_toy("check", {"--set", "SHAPE=Shape<64, 32"})), 2, {"' 32' is not NAME=value"});
  expect_fault(run(on_toy("check", {"--set", "SHAPE=\"a"})), 2, {"a quoted value ends with a double quote"});
  expect_fault(run(on_toy("check", {"--set", "SHAPE=\"a\"b"})), 2, {"a quoted value ends with a double quote"});
}

TEST_F(CliSpaceTest, WrongProblems) {
  expect_fault(run(sweep({"--problem", "N=many"})), 1, {"'many'"});
  expect_fault(run(sweep({"--problem", "N=0"})), 1, {"N"});
  expect_fault(run(sweep({"--problem", "N=5,M=5"})), 1, {"'M'"});
  expect_fault(run(sweep({"--problem", "N=5,N=6"})), 2, {"N is given twice"});
  expect_fault(run(sweep({"--problem", "N=5", "--workload", (folder_ / "toy.json").string()})), 2,
               {"either --workload or --problem"});
}

TEST_F(CliSpaceTest, WrongWorkload) {
  write_bytes(folder_ / "work.json", "{\"schema\": 1}");
  expect_fault(run(sweep({"--workload", (folder_ / "work.json").string()})), 1, {(folder_ / "work.json").string()});
}

}  // namespace
}  // namespace pascaline::testing
