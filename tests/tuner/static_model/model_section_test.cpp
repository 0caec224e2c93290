#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/tuner/static_model/modelled_space.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::modelled_space;

std::string complaint(const json& model) {
  try {
    (void)Space::parse(modelled_space(model).dump(), "modelled.json");
  } catch (const SpaceError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelSectionTest, IsOptionalAndSoIsAllInIt) {
  EXPECT_FALSE(Space::parse(modelled_space(nullptr).dump(), "modelled.json").model);
  const Space space = Space::parse(modelled_space(json::object()).dump(), "modelled.json");
  ASSERT_TRUE(space.model);
  for (const auto& [key, member] : kModelMembers) {
    EXPECT_FALSE((*space.model).*member) << key;
  }
}

TEST(ModelSectionTest, EveryKeyIsRead) {
  for (const auto& [key, member] : kModelMembers) {
    const std::string name(key);
    const Space space = Space::parse(modelled_space({{name, "7 * X + BLOCKS"}}).dump(), "modelled.json");
    ASSERT_TRUE(space.model && (*space.model).*member) << name;
    EXPECT_EQ(((*space.model).*member)->text(), "7 * X + BLOCKS") << name;
    EXPECT_NE(complaint({{name, "7 * Y"}}).find("modelled.json:/model/" + name), std::string::npos) << name;
  }
}

TEST(ModelSectionTest, HasDefinitionsOfItsOwn) {
  const json model{{"definitions", {{{"name", "TWICE"}, {"value", "2 * X"}}}}, {"registers", "TWICE + 1"}};
  EXPECT_EQ(complaint(model), "");
  json taken = model;
  taken["definitions"][0]["name"] = "BLOCKS";
  EXPECT_NE(complaint(taken).find("/model/definitions/0/name"), std::string::npos);
}

TEST(ModelSectionTest, MistakesAreToldWithTheirPlace) {
  EXPECT_NE(complaint({{"flop", 1}}).find("unknown key 'flop'"), std::string::npos);
  EXPECT_NE(complaint({{"flops", 1.5}}).find("/model/flops"), std::string::npos);
  EXPECT_NE(complaint({{"flops", "1 +"}}).find("/model/flops"), std::string::npos);
  EXPECT_NE(complaint(json::array()).find("/model"), std::string::npos);
  EXPECT_NE(complaint("fast").find("/model"), std::string::npos);
}

}  // namespace
}  // namespace pascaline
