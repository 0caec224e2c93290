#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "app/options.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;
using KernelJson = nlohmann::ordered_json;

KernelJson value_json(const Value& value) {
  return std::visit([](const auto& held) { return KernelJson(held); }, value);
}

KernelJson dimension_json(const Dimension& dimension) {
  KernelJson object{{"name", dimension.name},       {"description", dimension.description},
                    {"example", dimension.example}, {"minimum", dimension.minimum},
                    {"maximum", nullptr},           {"default", nullptr},
                    {"fixed", dimension.fixed},     {"varies", dimension.varies}};
  if (dimension.maximum < std::numeric_limits<std::int64_t>::max()) {
    object["maximum"] = dimension.maximum;
  }
  if (dimension.default_value) {
    object["default"] = dimension.default_value->text();
  }
  return object;
}

KernelJson type_json(const Space& space, const TypeVariable& variable) {
  KernelJson object{{"name", variable.name}, {"values", KernelJson::array()}, {"like", nullptr}};
  for (const ElementType type : variable.allowed) {
    object["values"].push_back(name_of(type));
  }
  if (variable.like) {
    object["like"] = space.types[*variable.like].name;
  }
  return object;
}

KernelJson parameter_json(const Parameter& parameter) {
  KernelJson object{{"name", parameter.name},
                    {"description", parameter.description},
                    {"values", KernelJson::array()},
                    {"default", value_json(parameter.values[parameter.default_index])}};
  for (const Value& value : parameter.values) {
    object["values"].push_back(value_json(value));
  }
  if (!parameter.option.empty()) {
    object["option"] = parameter.option;
  }
  return object;
}

KernelJson settings_json(const Space& space, const std::vector<std::uint16_t>& indices) {
  KernelJson settings = KernelJson::object();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    settings[space.parameters[i].name] = value_json(space.parameters[i].values[indices[i]]);
  }
  return settings;
}

KernelJson members_json(const Space& space, const std::vector<std::vector<std::uint16_t>>& members) {
  KernelJson list = KernelJson::array();
  for (const std::vector<std::uint16_t>& indices : members) {
    list.push_back(settings_json(space, indices));
  }
  return list;
}

KernelJson kernel_json(const ListedKernel& listed) {
  const Space& space = listed.space;
  KernelJson object{{"kernel", space.kernel},
                    {"description", space.description},
                    {"space", space.file},
                    {"source", listed.source.string()},
                    {"configurations", space.raw_size()},
                    {"reference", space.reference.kernel ? "in_file" : "default"},
                    {"dimensions", KernelJson::array()},
                    {"types", KernelJson::array()},
                    {"parameters", KernelJson::array()},
                    {"defaults", KernelJson::object()},
                    {"portfolio", KernelJson::array()},
                    {"portfolios", KernelJson::object()},
                    {"constraints", KernelJson::array()}};
  for (const Dimension& dimension : space.dimensions) {
    object["dimensions"].push_back(dimension_json(dimension));
  }
  for (const TypeVariable& variable : space.types) {
    object["types"].push_back(type_json(space, variable));
  }
  for (const Parameter& parameter : space.parameters) {
    object["parameters"].push_back(parameter_json(parameter));
  }
  for (const ArchitectureDefaults& own : space.defaults) {
    object["defaults"][own.name()] = settings_json(space, own.indices);
  }
  object["portfolio"] = members_json(space, space.portfolio);
  for (const ArchitecturePortfolio& own : space.portfolios) {
    object["portfolios"][own.architecture()] = members_json(space, own.members);
  }
  for (const Constraint& constraint : space.constraints) {
    object["constraints"].push_back({{"require", constraint.require.text()}, {"reason", constraint.reason}});
  }
  return object;
}

}  // namespace

ListedKernel listed_kernel(KernelOptions kernel, const std::string& name) {
  kernel.kernel = name;
  ListedKernel listed{kernel.load_space(), kernel_file(kernel.kernels(), name, ".cu")};
  if (!fs::exists(listed.source)) {
    throw Error(fmt::format("{} does not exist; give its folder with --kernels", listed.source.string()));
  }
  return listed;
}

std::vector<ListedKernel> all_kernels(const KernelOptions& kernel, const std::function<void(const Error&)>& wrong) {
  const fs::path spaces = kernel.spaces();
  const fs::path kernels = kernel.kernels();
  std::vector<ListedKernel> found;
  bool any_wrong = false;
  for (const std::string& name : kernel_names(spaces)) {
    fs::path source = kernel_file(kernels, name, ".cu");
    if (!fs::exists(source)) {
      continue;  // other JSON may lie there, too
    }
    try {
      found.push_back({Space::load(kernel_file(spaces, name, ".json")), std::move(source)});
    } catch (const Error& error) {
      wrong(error);
      any_wrong = true;
    }
  }
  if (found.empty() && !any_wrong) {
    throw Error(
        fmt::format("no NAME.json in {} has a NAME.cu in {}; give the folders of a kernel with --spaces and --kernels",
                    spaces.string(), kernels.string()));
  }
  return found;
}

nlohmann::ordered_json kernel_document(const KernelOptions& kernel, const std::string& name) {
  return kernel_json(listed_kernel(kernel, name));
}

nlohmann::ordered_json kernels_document(const KernelOptions& kernel, const std::function<void(const Error&)>& wrong) {
  KernelJson list = KernelJson::array();
  for (const ListedKernel& listed : all_kernels(kernel, wrong)) {
    list.push_back(kernel_json(listed));
  }
  return list;
}

}  // namespace pascaline
