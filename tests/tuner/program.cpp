#include "tests/tuner/program.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

void redirect(int descriptor, const std::filesystem::path& file) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) {
    throw std::runtime_error("cannot write " + file.string());
  }
}

void take_input(const std::filesystem::path& file) {
  const int opened = ::open(file.c_str(), O_RDONLY);
  if (opened < 0 || ::dup2(opened, STDIN_FILENO) < 0) {
    throw std::runtime_error("cannot read " + file.string());
  }
}

void apply(const ProgramSetting& setting) {
  for (const auto& [name, value] : setting.environment) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  if (setting.file_size_limit) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{*setting.file_size_limit, *setting.file_size_limit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (!setting.working_folder.empty() && ::chdir(setting.working_folder.c_str()) != 0) {
    throw std::runtime_error("cannot enter " + setting.working_folder.string());
  }
  if (setting.unprivileged && ::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
    throw std::runtime_error("cannot give up root");
  }
}

}  // namespace

int start_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                  const ProgramSetting& setting) {
  if (setting.input) {
    write_bytes(folder / "stdin", *setting.input);
  }
  return fork_child([&] {
    if (setting.input) {
      take_input(folder / "stdin");
    }
    redirect(STDOUT_FILENO, folder / "stdout");
    redirect(STDERR_FILENO, folder / "stderr");
    ::setenv("PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE, 1);
    ::setenv("PASCALINE_DB", (folder / "default.db").c_str(), 1);
    apply(setting);
    std::vector<std::string> words{PASCALINE_TEST_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    throw std::runtime_error("cannot start " + words[0]);
  });
}

ProgramResult run_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                          const ProgramSetting& setting) {
  ProgramResult result;
  result.exit_code = wait_child(start_program(folder, arguments, setting));
  result.out = bytes_of(folder / "stdout");
  result.error = bytes_of(folder / "stderr");
  return result;
}

void expect_fault(const ProgramResult& result, int exit_code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.error << result.out;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_EQ(result.error.rfind("pascaline: ", 0), 0U) << result.error;
  for (const std::string& part : parts) {
    EXPECT_NE(result.error.find(part), std::string::npos) << "no '" << part << "' in: " << result.error;
  }
  EXPECT_EQ(result.out, "");
}

nlohmann::json json_of(const ProgramResult& result) {
  nlohmann::json parsed = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << result.out << result.error;
  return parsed;
}

}  // namespace pascaline::testing
