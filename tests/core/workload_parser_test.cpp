#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "tests/core/small_workload.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::small_workload;

struct BadWorkload {
  const char* name;
  std::function<void(json&)> change;
  const char* pointer;
  const char* message;  // part of it
};

json& value_at(json& workload, const char* pointer) { return workload[json::json_pointer(pointer)]; }

const BadWorkload kBadWorkloads[] = {
    {"unknown key", [](json& w) { w["model"] = 1; }, "", "unknown key 'model'"},
    {"unknown key below", [](json& w) { value_at(w, "/entries/0/calls") = 1; }, "/entries/0", "unknown key 'calls'"},
    {"missing key", [](json& w) { w.erase("phases"); }, "", "'phases' is missing"},
    {"missing count", [](json& w) { value_at(w, "/entries/1").erase("count"); }, "/entries/1", "'count' is missing"},
    {"wrong schema", [](json& w) { w["schema"] = 3; }, "/schema", "schema 1"},
    {"empty name", [](json& w) { w["name"] = ""; }, "/name", "must not be empty"},
    {"types as a list", [](json& w) { w["types"] = json::array(); }, "/types", "expected an object"},
    {"unknown type", [](json& w) { value_at(w, "/types/STORAGE/1") = "half"; }, "/types/STORAGE/1", "'half'"},
    {"type twice", [](json& w) { value_at(w, "/types/STORAGE/1") = "float32"; }, "/types/STORAGE/1", "is a duplicate"},
    {"no type", [](json& w) { value_at(w, "/types/STORAGE") = json::array(); }, "/types/STORAGE", "at least one"},
    {"phase twice", [](json& w) { value_at(w, "/phases/1/name") = "prompt"; }, "/phases/1/name", "is a duplicate"},
    {"symbols as a list", [](json& w) { value_at(w, "/phases/0/symbols") = {1}; }, "/phases/0/symbols", "an object"},
    {"symbol without values", [](json& w) { value_at(w, "/phases/0/symbols/S") = json::array(); },
     "/phases/0/symbols/S", "at least one"},
    {"symbol of a float", [](json& w) { value_at(w, "/phases/0/symbols/S/0") = 1.5; }, "/phases/0/symbols/S/0",
     "integer"},
    {"value twice", [](json& w) { value_at(w, "/phases/0/symbols/S/1") = 4; }, "/phases/0/symbols/S/1",
     "is a duplicate"},
    {"symbol that is no name", [](json& w) { value_at(w, "/phases/0/symbols/2S") = {1}; }, "/phases/0/symbols/2S",
     "identifier"},
    {"kernel beyond its folder", [](json& w) { value_at(w, "/entries/0/kernel") = "../x"; }, "/entries/0/kernel",
     "'../x' is not a kernel's name"},
    {"unknown phase", [](json& w) { value_at(w, "/entries/0/phase") = "image"; }, "/entries/0/phase", "'image'"},
    {"symbol of another phase", [](json& w) { value_at(w, "/entries/5/dimensions/N") = "S"; },
     "/entries/5/dimensions/N", "unknown name 'S'"},
    {"expression that does not parse", [](json& w) { value_at(w, "/entries/0/dimensions/N") = "2 *"; },
     "/entries/0/dimensions/N", "column 4"},
    {"float dimension", [](json& w) { value_at(w, "/entries/0/dimensions/N") = 2.5; }, "/entries/0/dimensions/N",
     "integer"},
    {"dimensions as a list", [](json& w) { value_at(w, "/entries/0/dimensions") = {1}; }, "/entries/0/dimensions",
     "an object"},
    {"count of zero", [](json& w) { value_at(w, "/entries/0/count") = 0; }, "/entries/0/count", "above zero"},
    {"negative count", [](json& w) { value_at(w, "/entries/0/count") = -1; }, "/entries/0/count", "above zero"},
    {"count as text", [](json& w) { value_at(w, "/entries/0/count") = "28"; }, "/entries/0/count", "a number"},
    {"entry twice", [](json& w) { value_at(w, "/entries/1/name") = "first"; }, "/entries/1/name", "is a duplicate"},
    {"alternative of nothing", [](json& w) { value_at(w, "/entries/3/alternative_of") = json::array(); },
     "/entries/3/alternative_of", "at least one"},
    {"alternative of a stranger", [](json& w) { value_at(w, "/entries/3/alternative_of/1") = "third"; },
     "/entries/3/alternative_of/1", "no entry 'third'"},
    {"alternative of itself", [](json& w) { value_at(w, "/entries/3/alternative_of/1") = "both"; },
     "/entries/3/alternative_of/1", "no entry 'both'"},
    {"alternative of an alternative", [](json& w) { value_at(w, "/entries/2/alternative_of") = {"both"}; },
     "/entries/2/alternative_of/0", "no entry 'both' that is not an alternative itself"},
};

TEST(WorkloadParserTest, EveryMistakeIsNamedWithItsPlace) {
  for (const BadWorkload& test : kBadWorkloads) {
    json workload = small_workload();
    test.change(workload);
    try {
      (void)Workload::parse(workload.dump(), "small.json");
      ADD_FAILURE() << "accepted: " << test.name;
    } catch (const SpaceError& error) {
      EXPECT_EQ(error.file(), "small.json") << test.name;
      EXPECT_EQ(error.pointer(), test.pointer) << test.name << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(test.message), std::string::npos) << test.name << ": " << error.what();
    }
  }
}

TEST(WorkloadParserTest, ReadsWhatIsThere) {
  const Workload workload = Workload::parse(small_workload().dump(), "small.json");
  EXPECT_EQ(workload.name, "small");
  EXPECT_EQ(workload.source, "nowhere");
  ASSERT_EQ(workload.phases.size(), 2U);
  EXPECT_EQ(workload.phases[0].per, "prompt of S tokens");
  EXPECT_EQ(workload.phases[0].symbols.front().second, (std::vector<std::int64_t>{4, 8}));
  EXPECT_TRUE(workload.phases[1].symbols.empty());
  ASSERT_EQ(workload.entries.size(), 6U);
  EXPECT_EQ(workload.entries[3].alternative_of, (std::vector<std::string>{"first", "second"}));
  EXPECT_DOUBLE_EQ(workload.entries[5].count, 7);
}

TEST(WorkloadParserTest, NameMustBeTheFiles) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("pascaline_workload_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "small.json", small_workload().dump());
  write_file_atomically(folder / "other.json", small_workload().dump());
  EXPECT_EQ(Workload::load(folder / "small.json").entries.size(), 6U);
  EXPECT_THROW((void)Workload::load(folder / "other.json"), SpaceError);
  EXPECT_THROW((void)Workload::load(folder / "none.json"), SpaceError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pascaline
