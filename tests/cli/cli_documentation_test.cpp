#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kOfFleets{"plan", "submit", "run", "status", "gather"};

/// A command line in a page, from `pascaline` on.
struct WrittenCommand {
  std::string place;   ///< "cli.md: ", and the line as it stands there
  std::string words;   ///< after `pascaline`, without what belongs to the shell
  bool whole = false;  ///< a line of a block of code, not a mention in running text
};

/// What README and documentation tell people to type.
class CliDocumentationTest : public CliTest {
 protected:
  static std::vector<fs::path> pages() {
    std::vector<fs::path> files{PASCALINE_TEST_DOCS "/../README.md", PASCALINE_TEST_DOCS "/../CONTRIBUTING.md"};
    for (const auto& entry : fs::directory_iterator(PASCALINE_TEST_DOCS)) {
      if (entry.path().extension() == ".md") {
        files.push_back(entry.path());
      }
    }
    return files;
  }
  // Lines with a backslash at the end are one with the next.
  static std::vector<std::string> lines_of(const fs::path& file) {
    std::vector<std::string> lines;
    std::ifstream stream(file);
    bool goes_on = false;
    for (std::string line; std::getline(stream, line);) {
      const bool next_goes_on = line.ends_with("\\");
      line = next_goes_on ? line.substr(0, line.size() - 1) : line;
      if (goes_on) {
        lines.back() += line;
      } else {
        lines.push_back(line);
      }
      goes_on = next_goes_on;
    }
    return lines;
  }
  // Up to where the shell or a comment takes over. Text in quotes is a value, whatever it holds.
  static std::string without_shell(std::string words) {
    words = std::regex_replace(words, std::regex("'[^']*'"), "quoted");
    words = std::regex_replace(words, std::regex("\"[^\"]*\""), "quoted");
    return std::regex_replace(words, std::regex("( #|[|>;&`)]).*"), "");
  }
  static std::vector<WrittenCommand> written() {
    std::vector<WrittenCommand> found;
    for (const fs::path& page : pages()) {
      bool code = false;
      const std::vector<std::string> lines = lines_of(page);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string& line = lines[i];
        if (line.starts_with("```")) {
          code = !code;
          continue;
        }
        if (i + 1 < lines.size() && lines[i + 1].starts_with("pascaline: ")) {
          continue;  // shows a fault
        }
        static const std::regex in_code("(?:^|[ |])pascaline ([a-z].*)");
        static const std::regex in_text("`pascaline ([a-z][^`]*)`");
        const std::regex& pattern = code ? in_code : in_text;
        for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end; ++match) {
          found.push_back({page.filename().string() + ": " + line, without_shell((*match)[1]), code});
        }
      }
    }
    return found;
  }
  static std::vector<std::string> split(const std::string& words) {
    std::istringstream stream(words);
    std::vector<std::string> list;
    for (std::string word; stream >> word;) {
      list.push_back(word);
    }
    return list;
  }
  // False where it is shortened, names something to fill in, or needs the shell. `--help` behind the words ends the
  // command before it does anything.
  [[nodiscard]] bool expect_taken(const WrittenCommand& command) const {
    if (command.words.find_first_of("$[]*{}~") != std::string::npos ||
        command.words.find("\u2026") != std::string::npos) {
      return false;
    }
    std::vector<std::string> words = split(command.words);
    words.emplace_back("--help");
    const ProgramResult result = run(words);
    const bool lacks_a_file = result.error.find("does not exist") != std::string::npos;
    EXPECT_TRUE(result.exit_code == 0 || lacks_a_file) << result.error << "in " << command.place;
    return true;
  }
};

TEST_F(CliDocumentationTest, EveryCommandIsDocumented) {
  std::ifstream file(PASCALINE_TEST_DOCS "/cli.md");
  std::set<std::string> documented;
  std::set<std::string> sections;
  static const std::regex row(R"(\| \[`([a-z-]+)`\]\(#([a-z-]+)\) \|.*)");
  std::vector<std::string> targets;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, row)) {
      documented.insert(match[1]);
      targets.push_back(match[2]);
    }
    if (line.starts_with("## ")) {
      std::string section = line.substr(3);
      std::transform(section.begin(), section.end(), section.begin(),
                     [](unsigned char c) { return c == ' ' ? '-' : static_cast<char>(std::tolower(c)); });
      sections.insert(section);
    }
  }
  EXPECT_EQ(documented, commands());
  for (const std::string& target : targets) {
    EXPECT_TRUE(sections.contains(target)) << target;
  }
}

TEST_F(CliDocumentationTest, EveryCommandLineNamesCommandsAndOptionsThatThereAre) {
  const std::set<std::string> known = commands();
  std::map<std::string, std::set<std::string>> options;
  for (const std::string& command : known) {
    options[command] = option_names({command});
  }
  for (const std::string& below : kOfFleets) {
    options["fleet " + below] = option_names({"fleet", below});
  }
  std::size_t looked_at = 0;
  for (const WrittenCommand& command : written()) {
    const std::vector<std::string> words = split(command.words);
    ASSERT_FALSE(words.empty()) << command.place;
    ASSERT_TRUE(known.contains(words[0])) << "'" << words[0] << "' in " << command.place;
    ++looked_at;
    std::string name = words[0];
    if (name == "fleet" && words.size() > 1) {
      name += " " + words[1];
      EXPECT_TRUE(options.contains(name)) << command.place;
    }
    static const std::regex pattern("\\[?(--[a-z-]+|-[a-zA-Z])(?![a-zA-Z]).*");
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::smatch match;
      if (std::regex_match(words[i], match, pattern)) {
        EXPECT_TRUE(options[name].contains(match[1])) << match[1] << " in " << command.place;
      }
    }
  }
  EXPECT_GT(looked_at, 60U);
}

// The values, too, are such as the command takes.
TEST_F(CliDocumentationTest, EveryCommandLineIsOneThatTheProgramTakes) {
  std::size_t taken = 0;
  for (const WrittenCommand& command : written()) {
    taken += command.whole && expect_taken(command) ? 1 : 0;
  }
  EXPECT_GT(taken, 30U);
}

TEST_F(CliDocumentationTest, ExamplesOfEveryHelpAreOnesThatTheProgramTakes) {
  std::vector<std::vector<std::string>> all;
  for (const std::string& name : commands()) {
    all.push_back({name});
  }
  for (const std::string& below : kOfFleets) {
    all.push_back({"fleet", below});
  }
  for (const std::vector<std::string>& words : all) {
    const std::string name = words.back();
    std::vector<std::string> with_help = words;
    with_help.emplace_back("--help");
    std::istringstream help(run(with_help).out);
    std::size_t taken = 0;
    for (std::string line; std::getline(help, line);) {
      static const std::regex example("  (?:.* )?pascaline ([a-z].*)");
      std::smatch match;
      if (std::regex_match(line, match, example)) {
        taken += expect_taken({name + " --help: " + line, without_shell(match[1]), true}) ? 1 : 0;
      }
    }
    EXPECT_GT(taken, 0U) << name;
  }
}

}  // namespace
}  // namespace pascaline::testing
