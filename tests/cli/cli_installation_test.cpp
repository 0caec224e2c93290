#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/util/process.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

// Copies of the program in trees of the test's own.
class CliInstallationTest : public CliTest {
 protected:
  // What a program prints that is started there, both streams.
  [[nodiscard]] ProcessResult start(const fs::path& program, const std::vector<std::string>& words) const {
    std::vector<std::string> command{"env", "-u", "PASCALINE_DATA_DIR", "-u", "PASCALINE_NVRTC", program.string()};
    command.insert(command.end(), words.begin(), words.end());
    return run_process(command, std::chrono::minutes(1),
                       {{"PASCALINE_CACHE_DIR", test_cache().string()}, {"CUDA_HOME", ""}, {"CUDA_PATH", ""}});
  }
  [[nodiscard]] fs::path copy_program_to(const fs::path& folder) const {
    fs::create_directories(folder);
    fs::copy_file(PASCALINE_TEST_PROGRAM, folder / "pascaline");
    return folder / "pascaline";
  }
  // The data of the program, with one kernel.
  void write_data(const fs::path& templates, const fs::path& spaces, const fs::path& shim) const {
    for (const fs::path& folder : {templates, spaces, shim}) {
      fs::create_directories(folder);
    }
    fs::copy_file(folder_ / "toy.cu", templates / "toy.cu");
    fs::copy_file(folder_ / "toy.json", spaces / "toy.json");
  }
  // A source tree at `tree` with a program in its build folder, configured when it was `configured_at`.
  [[nodiscard]] fs::path write_tree(const fs::path& tree, const std::string& configured_at) const {
    write_data(tree / "kernel_templates", tree / "search_spaces", tree / "runtime" / "device" / "shim");
    write_bytes(tree / "CMakeLists.txt", "");
    fs::path program = copy_program_to(tree / "build" / "dev" / "bin");
    write_bytes(tree / "build" / "dev" / "CMakeCache.txt",
                "CMAKE_CACHEFILE_DIR:INTERNAL=" + configured_at +
                    "/build/dev\nPascaline_SOURCE_DIR:STATIC=" + configured_at + "\n");
    return program;
  }
};

TEST_F(CliInstallationTest, ABuildTreeMayBeMoved) {
  const fs::path program = write_tree(folder_ / "moved", (folder_ / "before").string());
  const ProcessResult result = start(program, {"kernels"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("1 kernel in " + (folder_ / "moved" / "search_spaces").string()), std::string::npos)
      << result.output;
}

TEST_F(CliInstallationTest, AnInstallationMayBeMovedAndKnowsNoSources) {
  const fs::path data = folder_ / "prefix" / "share" / "pascaline";
  write_data(data / "kernel_templates", data / "search_spaces", data / "shim");
  const fs::path program = copy_program_to(folder_ / "prefix" / "bin");
  const ProcessResult result = start(program, {"kernels"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("1 kernel in " + (data / "search_spaces").string()), std::string::npos) << result.output;
  const ProcessResult none = start(program, {"compile", "--kernel", "toy", "--arch", "sm_61", "--nvrtc", "1.0"});
  EXPECT_EQ(none.exit_code, 1) << none.output;
  EXPECT_NE(none.output.find("PASCALINE_NVRTC"), std::string::npos) << none.output;
  EXPECT_EQ(none.output.find("setup.sh"), std::string::npos) << none.output;
}

TEST_F(CliInstallationTest, ACopyLooksNotWhereItWasBuilt) {
  const fs::path built = write_tree(folder_ / "tree", (folder_ / "tree").string());
  fs::create_directories(folder_ / "elsewhere" / "bin");
  fs::copy_file(built, folder_ / "elsewhere" / "bin" / "pascaline");
  const ProcessResult result = start(folder_ / "elsewhere" / "bin" / "pascaline", {"kernels"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("cannot find Pascaline's folder"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find((folder_ / "elsewhere" / "share").string()), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find((folder_ / "tree").string()), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find(PASCALINE_TEST_SOURCES), std::string::npos) << result.output;
  // Nor does one that is installed somewhere below the build folder.
  const fs::path below = copy_program_to(folder_ / "tree" / "build" / "dev" / "made" / "prefix" / "bin");
  EXPECT_EQ(start(below, {"kernels"}).exit_code, 1);
}

TEST_F(CliInstallationTest, DataThatOthersCanChangeIsNotUsed) {
  const fs::path data = folder_ / "prefix" / "share" / "pascaline";
  write_data(data / "kernel_templates", data / "search_spaces", data / "shim");
  const fs::path program = copy_program_to(folder_ / "prefix" / "bin");
  fs::permissions(data / "search_spaces", fs::perms{0777});
  const ProcessResult result = start(program, {"kernels"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("but everybody can write it"), std::string::npos) << result.output;
  fs::permissions(data / "search_spaces", fs::perms{0775});
  EXPECT_EQ(start(program, {"kernels"}).exit_code, 0) << "a group's, as source trees often are";
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((data / "search_spaces").c_str(), 4321, 4321), 0);
    EXPECT_NE(start(program, {"kernels"}).output.find("but user 4321 owns it"), std::string::npos);
  }
}

// What a program and a Python module are, without what debuggers read.
TEST_F(CliInstallationTest, NoPlaceOfTheSourcesIsCompiledIn) {
  for (const std::string file : {PASCALINE_TEST_PROGRAM, PASCALINE_TEST_MODULE}) {
    if (file.empty() || !fs::exists(file)) {
      continue;  // the Python module is not built everywhere
    }
    const fs::path plain = folder_ / "plain";
    const ProcessResult made = run_process({"strip", "-o", plain.string(), file}, std::chrono::minutes(1));
    if (made.exit_code != 0) {
      GTEST_SKIP() << "there is no strip: " << made.output;
    }
    EXPECT_EQ(bytes_of(plain).find(PASCALINE_TEST_SOURCES), std::string::npos) << file;
  }
}

}  // namespace
}  // namespace pascaline::testing
