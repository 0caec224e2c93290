#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "core/util/paths.hpp"
#include "tests/core/space/template_source.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;
using testing::TemplateParameter;
using testing::TemplateSource;

std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data_folder("search_spaces"))) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Holds a kernel's search space against its template.
class TemplatesTest : public ::testing::TestWithParam<std::string> {
 protected:
  const Space space_ = Space::load(data_folder("search_spaces") / (GetParam() + ".json"));
  const TemplateSource source_{read_file(data_folder("kernel_templates") / (GetParam() + ".cu"))};
};

TEST_P(TemplatesTest, EveryParameterHasAMeaning) {
  for (const Parameter& parameter : space_.parameters) {
    EXPECT_FALSE(parameter.description.empty()) << parameter.name << " has no description in the search space";
  }
}

// The search space says what a tunable is called and what its default is.
TEST_P(TemplatesTest, TunablesAreNotDeclaredAgain) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space_.parameters) {
    names.push_back(parameter.name);
  }
  for (const DerivedMacro& macro : space_.derived) {
    names.push_back(macro.name);
  }
  for (const TypeVariable& type : space_.types) {
    names.push_back(type.name);
  }
  for (const std::string& name : names) {
    EXPECT_FALSE(source_.defines(name)) << name;
  }
}

// Whether the signature's type holds elements of the argument's. Matrices in a packed format are bytes; what may be one
// or plain elements has a name of its own.
bool types_agree(const Space& space, const Argument& argument, const std::string& type) {
  if (!argument.type_variable.empty()) {
    const auto variable = std::find_if(space.types.begin(), space.types.end(), [&](const TypeVariable& candidate) {
      return candidate.name == argument.type_variable;
    });
    const auto formats = std::count_if(variable->allowed.begin(), variable->allowed.end(), is_packed_format);
    const bool only_formats = formats == std::ssize(variable->allowed);
    return type == argument.type_variable || (formats > 0 && type == (only_formats ? "unsigned char" : "Table"));
  }
  const std::pair<ElementType, std::vector<std::string>> spellings[] = {
      {ElementType::float32, {"float", "float32", "Awaited"}},
      {ElementType::float16, {"float16"}},
      {ElementType::bfloat16, {"bfloat16"}},
      {ElementType::float64, {"double", "float64"}},
      {ElementType::int32, {"int"}},
      {ElementType::int64, {"long long"}},
      {ElementType::uint32, {"unsigned", "unsigned int"}},
      {ElementType::int8, {"signed char", "int8"}},
      {ElementType::uint8, {"unsigned char"}}};
  for (const auto& [element, names] : spellings) {
    if (element == argument.type) {
      return std::find(names.begin(), names.end(), type) != names.end();
    }
  }
  return false;
}

// References write their outputs in float64.
void check_signature(const Space& space, const TemplateSource& source, const std::string& function, bool reference) {
  const auto signature = source.signature(function);
  ASSERT_TRUE(signature.has_value()) << "no extern \"C\" __global__ function '" << function << "'";
  std::vector<std::string> more;  // a reference's arguments after the others
  if (reference && space.reference.workspace) {
    more.emplace_back("workspace");
  }
  if (reference && !space.reference.slack.empty()) {
    more.emplace_back("slack");
  }
  ASSERT_EQ(signature->size(), space.arguments.size() + more.size()) << function;
  for (std::size_t i = 0; i < more.size(); ++i) {
    const TemplateParameter& parameter = (*signature)[space.arguments.size() + i];
    EXPECT_EQ(parameter.name, more[i]) << function;
    EXPECT_EQ(parameter.type, "double") << function;
  }
  for (std::size_t i = 0; i < space.arguments.size(); ++i) {
    const TemplateParameter& parameter = (*signature)[i];
    const Argument& argument = space.arguments[i];
    const bool buffer = argument.kind == ArgumentKind::buffer;
    EXPECT_EQ(parameter.is_pointer, buffer) << function << ": " << argument.name;
    EXPECT_EQ(parameter.name, argument.name) << function;
    if (buffer) {
      EXPECT_EQ(parameter.is_const, argument.access == Access::in) << function << ": " << argument.name;
    }
    if (reference && is_output(argument)) {
      EXPECT_EQ(parameter.type, "double") << function << ": " << argument.name;
    } else {
      EXPECT_TRUE(types_agree(space, argument, parameter.type))
          << function << ": " << parameter.type << " " << argument.name;
    }
  }
}

TEST_P(TemplatesTest, SignatureAgreesWithTheArguments) {
  check_signature(space_, source_, space_.launches.front().function, false);
}

TEST_P(TemplatesTest, ReferenceKernelAgreesWithTheArguments) {
  ASSERT_TRUE(space_.reference.kernel);
  check_signature(space_, source_, space_.reference.kernel->function, true);
}

INSTANTIATE_TEST_SUITE_P(AllKernels, TemplatesTest, ::testing::ValuesIn(kernels()),
                         [](const auto& kernel) { return kernel.param; });

TEST(TemplateFoldersTest, EveryTemplateHasASearchSpaceAndTheOtherWayRound) {
  std::vector<std::string> templates;
  for (const auto& entry : fs::directory_iterator(data_folder("kernel_templates"))) {
    if (entry.path().extension() == ".cu") {
      templates.push_back(entry.path().stem().string());
    }
  }
  std::sort(templates.begin(), templates.end());
  EXPECT_EQ(templates, kernels());
}

TEST(TemplateSourceTest, ReadsDefinesAndSignatures) {
  const TemplateSource source(
      "#ifndef A\n # define A 3\n#endif\n"
      "extern \"C\" __global__ void other(int* a);\n"
      "extern \"C\" __global__ void __launch_bounds__(A, (B))\n"
      "kernel(const T* __restrict__ x, unsigned  char* y,\n   const int n, long long *z) {}\n");
  EXPECT_TRUE(source.defines("A"));
  EXPECT_FALSE(source.defines("B"));
  EXPECT_FALSE(source.signature("kern").has_value());
  const auto signature = source.signature("kernel");
  ASSERT_TRUE(signature.has_value());
  ASSERT_EQ(signature->size(), 4U);
  EXPECT_EQ((*signature)[0].type, "T");
  EXPECT_TRUE((*signature)[0].is_const);
  EXPECT_EQ((*signature)[1].type, "unsigned char");
  EXPECT_EQ((*signature)[1].name, "y");
  EXPECT_FALSE((*signature)[1].is_const);
  EXPECT_FALSE((*signature)[2].is_pointer);
  EXPECT_EQ((*signature)[3].type, "long long");
}

}  // namespace
}  // namespace pascaline
