// Holds the tuned configurations of bench/winners/ against the search spaces.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/space/space.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<fs::path> published_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(PASCALINE_TEST_WINNERS)) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  return files;
}

/// "A=1 B=2" as pairs.
std::vector<std::pair<std::string, std::string>> pairs_of(std::istream& text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string word; text >> word;) {
    const std::size_t equals = word.find('=');
    out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return out;
}

Config config_of(const std::string& text) {
  std::istringstream in(text);
  json object = json::object();
  for (const auto& [name, value] : pairs_of(in)) {
    object[name] = std::stoll(value);
  }
  return Config::from_json(object);
}

TEST(PublishedWinnersTest, EveryOneIsAConfigurationOfItsSpace) {
  const std::vector<fs::path> files = published_files();
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    const json content = json::parse(read_file(file));
    DeviceLimits limits = limits_of_architecture("sm_61").value();
    limits.sm_count = content.at("device").at("sm_count");
    std::map<std::string, Space> spaces;
    for (const json& winner : content.at("winners")) {
      std::istringstream problem(winner.at("problem").get<std::string>());
      std::string kernel;
      problem >> kernel;
      if (!spaces.contains(kernel)) {
        spaces.emplace(kernel, Space::load(data_folder("search_spaces") / (kernel + ".json")));
      }
      const Space& space = spaces.at(kernel);
      const BoundSpace bound(space, space.problem(pairs_of(problem)), limits);
      const Config config = config_of(winner.at("config"));
      EXPECT_EQ(bound.why_invalid(config), std::nullopt) << file << ": " << winner.dump();
      EXPECT_EQ(bound.problem().text(), winner.at("problem").get<std::string>());
    }
    for (const auto& [kernel, space] : spaces) {
      EXPECT_GT(content.at("kernels").at(kernel).at("shapes"), 0);
    }
  }
}

TEST(PublishedWinnersTest, NoneLosesToTheDefault) {
  for (const fs::path& file : published_files()) {
    const json content = json::parse(read_file(file));
    for (const json& winner : content.at("winners")) {
      EXPECT_LE(winner.at("time_us").get<double>(), winner.at("default_us").get<double>()) << winner.dump();
      const json& confidence = winner.at("confidence");  // null: the runner-up of a winner that touches local memory
      EXPECT_TRUE(confidence.is_null() || confidence.get<double>() >= 0.5) << winner.dump();
    }
  }
}

}  // namespace
}  // namespace pascaline
