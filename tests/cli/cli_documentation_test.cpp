#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "report/document_json.hpp"
#include "report/fields.hpp"
#include "report/report.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kOfFleets{"plan", "submit", "run", "status", "gather"};

/// A command line in a page, from `pascaline` on.
struct WrittenCommand {
  std::string place;   ///< "report.md: ", and the line as it stands there
  std::string words;   ///< after `pascaline`, without what belongs to the shell
  bool whole = false;  ///< a line of a block of code, not a mention in running text
};

/// What README and documentation tell people to type.
class CliDocumentationTest : public CliTest {
 protected:
  static std::vector<fs::path> pages() {
    std::vector<fs::path> files{PASCALINE_TEST_DOCS "/../README.md", PASCALINE_TEST_DOCS "/../CONTRIBUTING.md"};
    for (const auto& entry : fs::recursive_directory_iterator(PASCALINE_TEST_DOCS)) {
      // Examples in docs/reference are those of the help.
      const bool written_by_hand = entry.path().parent_path().filename() != "reference";
      if (entry.path().extension() == ".md" && written_by_hand) {
        files.push_back(entry.path());
      }
    }
    return files;
  }
  // Each command as its words, those of `fleet` after all others.
  [[nodiscard]] std::vector<std::vector<std::string>> commands_and_those_below() const {
    std::vector<std::vector<std::string>> all;
    for (const std::string& name : commands()) {
      all.push_back({name});
    }
    for (const std::string& below : kOfFleets) {
      all.push_back({"fleet", below});
    }
    return all;
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

TEST_F(CliDocumentationTest, ReferenceIsWhatTheProgramSays) {
  for (const std::string page : {"cli", "kernels", "report"}) {
    std::ifstream file(PASCALINE_TEST_DOCS "/reference/" + page + ".md");
    const std::string written{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    ProgramSetting elsewhere;  // what is here on one machine only does not belong into the page
    elsewhere.environment = {{"PASCALINE_DB", database_}, {"HOME", folder_.path().string()}};
    const ProgramResult result = run({"reference", page}, elsewhere);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_TRUE(result.out == written) << "docs/reference/" << page
                                       << ".md is stale. Write it again: build/dev/bin/pascaline reference " << page
                                       << " > docs/reference/" << page << ".md";
  }
}

TEST_F(CliDocumentationTest, ReferenceHasEveryCommandAndOption) {
  const std::string page = run({"reference", "cli"}).out;
  for (const std::vector<std::string>& words : commands_and_those_below()) {
    const std::string name = fmt::format("{}", fmt::join(words, " "));
    const std::size_t begin = page.find("\n## " + name + "\n");
    ASSERT_NE(begin, std::string::npos) << name;
    const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
    for (const std::string& option : option_names(words)) {
      EXPECT_TRUE(option == "-h" || option == "--help" || section.find("`" + option) != std::string::npos)
          << option << " of " << name;
    }
    const std::size_t examples = section.find("\n```sh\n");
    EXPECT_NE(section.find("pascaline " + words.front(), examples), std::string::npos) << "examples of " << name;
  }
  for (const std::string hidden : {"reference", "compile-worker", "measure-worker"}) {
    EXPECT_EQ(page.find("\n## " + hidden + "\n"), std::string::npos);
  }
}

TEST_F(CliDocumentationTest, ReferenceHasEveryKernel) {
  const std::string page = run({"reference", "kernels"}).out;
  for (const auto& entry : fs::directory_iterator(PASCALINE_TEST_DOCS "/../search_spaces")) {
    if (entry.path().extension() == ".json") {
      EXPECT_NE(page.find("\n## " + entry.path().stem().string() + "\n"), std::string::npos) << entry.path();
    }
  }
  EXPECT_EQ(run({"reference", "nothing"}).exit_code, 2);
}

TEST_F(CliDocumentationTest, ReferenceHasEveryKeyAndColumnOfAReport) {
  const std::string page = run({"reference", "report"}).out;
  for (const FieldTable* table : report_tables()) {
    EXPECT_NE(page.find("\n### " + table->name() + "\n"), std::string::npos) << table->name();
    for (const FieldText& field : table->fields()) {
      EXPECT_TRUE(field.meaning.ends_with('.')) << table->name() << ": " << field.name;
      EXPECT_NE(page.find("\n| `" + field.name + "` | " + field.type.text + " | " + field.unit + " | "),
                std::string::npos)
          << table->name() << ": " << field.name;
      for (const auto& [ending, unit] : {std::pair("_us", "µs"), std::pair("_ms", "ms"), std::pair("_mj", "mJ"),
                                         std::pair("_bytes", "bytes"), std::pair("_mhz", "MHz")}) {
        EXPECT_TRUE(!field.name.ends_with(ending) || field.unit.starts_with(unit)) << field.name << ": " << field.unit;
      }
    }
  }
  for (const FieldText& column : csv_columns()) {
    EXPECT_NE(page.find("\n| `" + column.name + "` | " + column.type.text, page.find("## CSV")), std::string::npos);
  }
}

TEST_F(CliDocumentationTest, GuidesAreShort) {
  std::size_t guides = 0;
  for (const auto& entry : fs::directory_iterator(PASCALINE_TEST_DOCS "/guides")) {
    EXPECT_LE(entry.file_size(), 8192U) << entry.path();
    ++guides;
  }
  EXPECT_GT(guides, 4U);
}

TEST_F(CliDocumentationTest, EveryCommandLineNamesCommandsAndOptionsThatThereAre) {
  std::set<std::string> known = commands();
  known.insert("reference");  // for who changes the program: not in the list of commands
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
  for (const std::vector<std::string>& words : commands_and_those_below()) {
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
