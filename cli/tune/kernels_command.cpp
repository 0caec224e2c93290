#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/tunable_constants.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;
using KernelJson = nlohmann::ordered_json;

struct KernelsCommandOptions {
  KernelOptions kernel;
  std::string name;  ///< empty: all
  bool as_json = false;
  bool preamble = false;
};

// Products of many counts are beyond every integer.
std::string count_text(double count) {
  return count < 1e6 ? fmt::format("{:.0f}", count) : fmt::format("{:.1e}", count);
}

// "none" if there are none.
std::string joined(const std::vector<std::string>& texts) {
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string type_names(const TypeVariable& variable) {
  std::vector<std::string_view> names;
  for (const ElementType type : variable.allowed) {
    names.push_back(name_of(type));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// What a result is checked against.
std::string reference_text(const ListedKernel& listed) {
  const Reference& reference = listed.space.reference;
  return reference.kernel ? fmt::format("{} in {}", reference.kernel->function, listed.source.filename().string())
                          : "what its default configuration computes";
}

void print_brief(const ListedKernel& listed) {
  const Space& space = listed.space;
  std::vector<std::string> dimensions;
  for (const Dimension& dimension : space.dimensions) {
    dimensions.push_back(dimension.name);
  }
  std::vector<std::string> types;
  for (const TypeVariable& variable : space.types) {
    types.push_back(fmt::format("{} ({})", variable.name, type_names(variable)));
  }
  fmt::print("{}: {}\n", space.kernel, clean_line(space.description));
  fmt::print("  dimensions {}; types {}\n", joined(dimensions), joined(types));
  fmt::print("  {} with {} combinations; checked against {}\n", counted(space.parameters.size(), "parameter"),
             count_text(space.raw_size()), reference_text(listed));
}

std::string dimension_text(const Dimension& dimension) {
  std::string text = clean_line(dimension.description);
  text += dimension.default_value ? fmt::format("; default {}", dimension.default_value->text())
                                  : fmt::format("; e.g. {}", dimension.example);
  if (dimension.maximum < std::numeric_limits<std::int64_t>::max()) {
    text += fmt::format("; from {} to {}", dimension.minimum, dimension.maximum);
  } else if (dimension.minimum != 1) {
    text += fmt::format("; at least {}", dimension.minimum);
  }
  return text;
}

void print_portfolio(const Space& space, const std::vector<std::vector<std::uint16_t>>& members,
                     const std::string& heading) {
  if (members.empty()) {
    return;
  }
  fmt::print("\n{}, after the default\n", heading);
  for (const std::vector<std::uint16_t>& indices : members) {
    fmt::print("  {}\n", clean_line(space.config_at(indices).text()));
  }
}

void print_detail(const ListedKernel& listed) {
  const Space& space = listed.space;
  fmt::print("{}: {}\n{}\n{}\n", space.kernel, clean_line(space.description), clean_line(space.file),
             clean_line(listed.source.string()));
  fmt::print("checked against {}\n\ndimensions{}\n", reference_text(listed), space.dimensions.empty() ? ": none" : "");
  for (const Dimension& dimension : space.dimensions) {
    fmt::print("  {:<20}  {}\n", dimension.name, dimension_text(dimension));
  }
  fmt::print("\nelement types{}\n", space.types.empty() ? ": fixed" : ", the first by default");
  for (const TypeVariable& variable : space.types) {
    fmt::print(
        "  {:<20}  {}{}\n", variable.name, type_names(variable),
        variable.like ? fmt::format("; that of {} where it is not given", space.types[*variable.like].name) : "");
  }
  fmt::print("\n{} with {} combinations, before constraints; the default in brackets\n",
             counted(space.parameters.size(), "parameter"), count_text(space.raw_size()));
  for (const Parameter& parameter : space.parameters) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < parameter.values.size(); ++i) {
      const std::string value = clean_line(setting_text(parameter.values[i]));
      values.push_back(i == parameter.default_index ? "[" + value + "]" : value);
    }
    fmt::print("  {:<20}  {}\n  {:<20}  {}\n", parameter.name, fmt::join(values, " "), "",
               clean_line(parameter.description));
  }
  for (const ArchitectureDefaults& own : space.defaults) {
    fmt::print("\ndefault for {}: {}\n", own.name(), clean_line(space.config_at(own.indices).text()));
  }
  print_portfolio(space, space.portfolio, "searches begin with");
  for (const ArchitecturePortfolio& own : space.portfolios) {
    print_portfolio(space, own.members, "searches for " + own.architecture() + " begin with");
  }
  fmt::print("\n{}\n", counted(space.constraints.size(), "constraint"));
  for (const Constraint& constraint : space.constraints) {
    fmt::print("  {}\n      {}\n", clean_line(constraint.reason), clean_line(constraint.require.text()));
  }
}

// What a macro is for: the parameter's description, or how it is computed.
std::string meaning_of(const Space& space, const std::string& macro) {
  for (const Parameter& parameter : space.parameters) {
    if (parameter.name == macro) {
      return parameter.description;
    }
  }
  for (const DerivedMacro& derived : space.derived) {
    if (derived.name == macro) {
      return derived.value.text();
    }
  }
  return "element type";
}

// A condition that one of a parameter's values is given; empty where they are no numbers.
std::string check_of(const Space& space, const std::string& macro) {
  std::vector<std::string> equal;
  for (const Parameter& parameter : space.parameters) {
    for (const Value& value : parameter.name == macro ? parameter.values : std::vector<Value>()) {
      if (!std::holds_alternative<std::int64_t>(value)) {
        return {};
      }
      equal.push_back(fmt::format("{} == {}", macro, to_text(value)));
    }
  }
  return equal.empty() ? std::string()
                       : fmt::format("static_assert({}, \"no value of {}\");\n", fmt::join(equal, " || "), macro);
}

// The lines that stand in front of the kernel when it is compiled, as text for an editor or another compiler: there
// they define what is not given.
void print_preamble(const ListedKernel& listed) {
  const Space& space = listed.space;
  const BoundSpace bound(space, space.example_problem(), limits_of_architecture("sm_61").value());
  for (const std::string& define : bound.defines(bound.default_config())) {
    const std::size_t equals = define.find('=');
    const std::string name = define.substr(0, equals);
    const std::string value = define.substr(equals + 1);
    fmt::print("#ifndef {0}\n#define {0} {1}  // {2}\n#endif\n", name, value, clean_line(meaning_of(space, name)));
    if (value.find_first_not_of("-0123456789") == std::string::npos) {
      fmt::print("constexpr int {} = {};\n{}", constant_name(name), name, check_of(space, name));
    }
  }
}

int show_one(const KernelsCommandOptions& options) {
  if (options.preamble) {
    print_preamble(listed_kernel(options.kernel, options.name));
  } else if (options.as_json) {
    fmt::print("{}\n",
               kernel_document(options.kernel, options.name).dump(2, ' ', false, KernelJson::error_handler_t::replace));
  } else {
    print_detail(listed_kernel(options.kernel, options.name));
  }
  return kSuccess;
}

int show_all(const KernelsCommandOptions& options) {
  bool wrong = false;
  const auto tell = [&wrong](const Error& error) {
    fmt::print(stderr, "pascaline: {}\n", clean_line(error.what()));
    wrong = true;
  };
  if (options.as_json) {
    fmt::print("{}\n",
               kernels_document(options.kernel, tell).dump(2, ' ', false, KernelJson::error_handler_t::replace));
    return wrong ? kFault : kSuccess;
  }
  const std::vector<ListedKernel> found = all_kernels(options.kernel, tell);
  for (const ListedKernel& listed : found) {
    print_brief(listed);
  }
  fmt::print("\n{} in {}; `pascaline kernels NAME` shows parameters and constraints of one\n",
             counted(found.size(), "kernel"), clean_line(options.kernel.spaces().string()));
  return wrong ? kFault : kSuccess;
}

void add_kernels_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("kernels", "List the kernels that can be tuned, or show one of them");
  const auto options = std::make_shared<KernelsCommandOptions>();
  CLI::Option* name = command->add_option("name", options->name,
                                          "Kernel to show with its parameters and constraints (default: list all)");
  options->kernel.add_folders_to(*command);
  CLI::Option* as_json = command->add_flag("--json", options->as_json, "Print JSON");
  command->add_flag("--preamble", options->preamble, "Print macros and constants that go in front of its code")
      ->needs(name)
      ->excludes(as_json);
  command->footer(
      "A kernel is a NAME.cu and a NAME.json. Combinations are counted before constraints rule some out.\n\n"
      "Examples:\n  pascaline kernels\n  pascaline kernels matmul\n"
      "  pascaline kernels --kernels my --spaces my\n"
      "  pascaline kernels softmax --preamble > preamble.h\n"
      "  pascaline kernels matmul --json | jq -r '.parameters[].name'");
  command->callback([&action, options] {
    action = [options] { return options->name.empty() ? show_all(*options) : show_one(*options); };
  });
}

const Command kKernelsCommand(Heading::tune, 3, add_kernels_command);

}  // namespace

}  // namespace pascaline::cli
