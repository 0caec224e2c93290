#include "db/exchange/t1.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

json t1_sample() {
  return json::parse(R"({
  "ConfigurationSpace": {
    "TuningParameters": [
      {"Name": "block_size_x", "Type": "int", "Values": "[2**i for i in range(5, 8)]"},
      {"Name": "ITEMS", "Type": "uint", "Values": "[1, 2, 2]"},
      {"Name": "fast", "Type": "bool", "Values": "[True, False]"},
      {"Name": "scale", "Type": "float", "Values": "[1, 0.5]"},
      {"Name": "layout", "Type": "string", "Values": "['row']"}],
    "Conditions": [{"Parameters": ["block_size_x", "ITEMS"], "Expression": "32 <= block_size_x * ITEMS <= 128"}]},
  "KernelSpecification": {
    "Language": "CUDA", "KernelName": "stencil", "KernelFile": "stencil.cu", "ProblemSize": [4096, 64],
    "GlobalSize": {"X": "4096"}, "LocalSize": {"X": "block_size_x", "Y": 1}, "GridDivX": ["block_size_x", "ITEMS"],
    "SharedMemory": 16, "Device": {"Name": "A card"},
    "Arguments": [
      {"Name": "out", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "Size": "ProblemSize[0]"},
      {"Type": "int32", "MemoryType": "Scalar", "FillType": "Constant", "FillValue": 4096}]},
  "Search": {"Name": "random"}, "Budget": [{"Type": "ConfigurationCount", "BudgetValue": 10}]})");
}

std::string t1_refusal(const std::string& pointer, const json& value) {
  json document = t1_sample();
  document[json::json_pointer(pointer)] = value;
  try {
    (void)parse_t1(document.dump(), "in.json");
  } catch (const SpaceError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was read: " << pointer;
  return {};
}

TEST(T1Input, OtherVersionsAreRefused) {
  const json general = json::parse(R"({"FormatVersion": 99})");
  EXPECT_NE(t1_refusal("/General", general).find("/General/FormatVersion: version 99"), std::string::npos)
      << t1_refusal("/General", general);
  EXPECT_NE(t1_refusal("/schema_version", "2.0.0").find("version 2.0.0"), std::string::npos);
  EXPECT_NE(t1_refusal("/schema_version", json::array()).find("version []"), std::string::npos);
  for (const json& known : {json(1), json(1.0), json("1.0.0"), json("1"), json()}) {
    json document = t1_sample();
    document["General"]["FormatVersion"] = known;
    document["schema_version"] = known;
    EXPECT_EQ(parse_t1(document.dump(), "in.json").kernel_name, "stencil") << known;
  }
}

TEST(T1Input, EverythingIsRead) {
  const T1Input input = parse_t1(t1_sample().dump(), "in.json");
  ASSERT_EQ(input.parameters.size(), 5U);
  EXPECT_EQ(input.parameters[0].values, (std::vector<Value>{std::int64_t{32}, std::int64_t{64}, std::int64_t{128}}));
  EXPECT_EQ(input.parameters[1].values, (std::vector<Value>{std::int64_t{1}, std::int64_t{2}}));
  EXPECT_EQ(input.parameters[2].values, (std::vector<Value>{true, false}));
  EXPECT_EQ(input.parameters[3].values, (std::vector<Value>{1.0, 0.5}));
  EXPECT_EQ(input.parameters[4].values, (std::vector<Value>{std::string("row")}));
  ASSERT_EQ(input.conditions.size(), 1U);
  EXPECT_EQ(input.conditions[0].expression, "((32 <= (block_size_x * ITEMS)) && ((block_size_x * ITEMS) <= 128))");
  EXPECT_EQ(input.conditions[0].python.pointer, "/ConfigurationSpace/Conditions/0/Expression");
  EXPECT_EQ(input.language, "CUDA");
  EXPECT_EQ(input.kernel_name, "stencil");
  EXPECT_EQ(input.kernel_file, "stencil.cu");
  EXPECT_EQ(input.problem_size, (std::vector<std::int64_t>{4096, 64}));
  EXPECT_EQ(input.local_size[0].text, "block_size_x");
  EXPECT_EQ(input.local_size[1].text, "1");
  EXPECT_TRUE(input.local_size[2].text.empty());
  EXPECT_TRUE(input.has_grid_divisors);
  ASSERT_EQ(input.grid_divisors[0].size(), 2U);
  EXPECT_EQ(input.grid_divisors[0][1].text, "ITEMS");
  EXPECT_EQ(input.shared_bytes, 16);
  EXPECT_EQ(input.device, "A card");
  ASSERT_EQ(input.arguments.size(), 2U);
  EXPECT_EQ(input.arguments[0].size.text, "ProblemSize[0]");
  EXPECT_EQ(input.arguments[1].name, "argument_1");
  EXPECT_EQ(input.arguments[1].fill_value, 4096);
}

TEST(T1Input, BadInputIsRefusedWithItsPlace) {
  const std::string parameter = "/ConfigurationSpace/TuningParameters/0";
  EXPECT_EQ(
      t1_refusal(parameter + "/Values", "[1, __import__('os')]"),
      "in.json:" + parameter +
          "/Values: in '[1, __import__('os')]', column 5: the function '__import__' is not known; known are list, "
          "tuple, sorted, len, min, max, sum, abs, int, float and range");
  EXPECT_EQ(t1_refusal(parameter + "/Values", "[]"), "in.json:" + parameter + "/Values: a parameter needs a value");
  EXPECT_EQ(t1_refusal(parameter + "/Values", "[0.5]"), "in.json:" + parameter + "/Values: the value '0.5' is no int");
  EXPECT_EQ(t1_refusal(parameter + "/Values", json::array({1})),
            "in.json:" + parameter + "/Values: expected text, found array");
  EXPECT_EQ(t1_refusal(parameter + "/Values", "range(4097)"),
            "in.json:" + parameter + "/Values: has 4097 values; a search space holds 4096 of a parameter");
  EXPECT_EQ(t1_refusal(parameter + "/Type", "complex"),
            "in.json:" + parameter + "/Type: 'complex' is none of int, uint, float, bool, string");
  EXPECT_EQ(t1_refusal(parameter + "/Name", "ITEMS"),
            "in.json:/ConfigurationSpace/TuningParameters/1/Name: the parameter 'ITEMS' stands twice");
  EXPECT_EQ(t1_refusal("/ConfigurationSpace/TuningParameters/1/Values", "[-1]"),
            "in.json:/ConfigurationSpace/TuningParameters/1/Values: the value '-1' is no uint");
  const std::string condition = "/ConfigurationSpace/Conditions/0";
  EXPECT_EQ(t1_refusal(condition + "/Expression", "ITEMS > nothing"),
            "in.json:" + condition + "/Expression: in 'ITEMS > nothing', column 9: unknown name 'nothing'");
  EXPECT_EQ(t1_refusal(condition + "/Expression", "layout == 'row'"),
            "in.json:" + condition +
                "/Expression: in 'layout == 'row'', column 1: 'layout' is text, which cannot be used in conditions");
  EXPECT_EQ(t1_refusal(condition + "/Parameters", json::array({"ITEM"})),
            "in.json:" + condition + "/Parameters/0: there is no parameter 'ITEM'");
  EXPECT_EQ(t1_refusal("/ConfigurationSpace/TuningParameters", json::array()),
            "in.json:/ConfigurationSpace/TuningParameters: there is no parameter");
  EXPECT_EQ(t1_refusal("/KernelSpecification/Language", "Fortran"),
            "in.json:/KernelSpecification/Language: 'Fortran' is none of OpenCL, CUDA, Vulkan, Hypertuner");
  EXPECT_EQ(t1_refusal("/KernelSpecification/LocalSize", json::object()),
            "in.json:/KernelSpecification/LocalSize: the key 'X' is missing");
  EXPECT_EQ(t1_refusal("/KernelSpecification/ProblemSize", json::array({0})),
            "in.json:/KernelSpecification/ProblemSize: expected one to three numbers of at least 1");
  EXPECT_EQ(t1_refusal("/KernelSpecification/Arguments/0/MemoryType", "Texture"),
            "in.json:/KernelSpecification/Arguments/0/MemoryType: 'Texture' is none of Scalar, Vector, Local, Symbol");
  for (const char* key : {"ConfigurationSpace", "KernelSpecification"}) {
    json document = t1_sample();
    document.erase(key);
    EXPECT_THROW((void)parse_t1(document.dump(), "in.json"), SpaceError);
  }
  EXPECT_THROW((void)parse_t1("{", "in.json"), SpaceError);
  EXPECT_THROW((void)parse_t1("[]", "in.json"), SpaceError);
}

}  // namespace
}  // namespace pascaline
