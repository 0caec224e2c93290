#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "cli/command.hpp"
#include "cli/command_words.hpp"
#include "cli/help_layout.hpp"
#include "core/element_type.hpp"
#include "core/error.hpp"
#include "report/document_json.hpp"
#include "report/fields.hpp"
#include "report/report.hpp"

namespace pascaline::cli {
namespace {

constexpr const char* kGenerated = "<!-- Written by `pascaline reference {}`: change the program, not this page. -->\n";

std::string anchor_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

// A text in a cell of a table. Within backticks nothing but the cell's border means anything.
std::string cell_text(std::string_view text) {
  std::string escaped;
  bool in_code = false;
  for (const char c : text) {
    in_code = in_code != (c == '`');
    if (c == '|' || (!in_code && (c == '<' || c == '*'))) {
      escaped += '\\';
    }
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string code_text(const std::string& text) { return text.empty() ? text : cell_text("`" + text + "`"); }

// The option holds them in an order that changes from run to run.
std::string sorted_names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) {
    names.push_back("`" + option->get_name() + "`");
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string value_text(const CLI::Option& option) {
  if (option.get_type_size() == 0) {
    return {};  // a flag
  }
  std::string text = option.get_type_name();
  if (option.get_expected_max() >= CLI::detail::expected_max_vector_size) {
    text += " …";
  } else if (option.get_expected_max() > 1) {
    text += fmt::format(" × {}", option.get_expected_max());
  }
  return text;
}

std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("`-" + name + "`");
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("`--" + name + "`");
  }
  return names.empty() ? "`" + option.get_name(true) + "`" : fmt::format("{}", fmt::join(names, ", "));
}

std::string option_row(const CLI::Option& option) {
  std::string meaning = cell_text(option.get_description());
  if (option.get_required()) {
    meaning += ". Required";
  }
  if (!option.get_needs().empty()) {
    meaning += ". Needs " + sorted_names(option.get_needs());
  }
  if (!option.get_excludes().empty()) {
    meaning += ". Not with " + sorted_names(option.get_excludes());
  }
  return fmt::format("| {} | {} | {} | {} |\n", names_of(option), code_text(value_text(option)),
                     code_text(option.get_default_str()), meaning);
}

std::string option_table(const std::string& heading, const std::vector<const CLI::Option*>& options) {
  std::string text = fmt::format("\n| {} | value | default | meaning |\n|---|---|---|---|\n", heading);
  for (const CLI::Option* option : options) {
    text += option_row(*option);
  }
  return text;
}

// The text below a command's options; its examples as code.
std::string footer_text(const std::string& footer) {
  if (footer.empty()) {
    return {};
  }
  const std::size_t examples = footer.rfind("Example");
  std::string text = footer.substr(0, examples);
  text.erase(text.find_last_not_of('\n') + 1);
  std::string page = text.empty() ? "" : "\n" + text + "\n";
  if (examples != std::string::npos) {
    page += "\n```sh\n";
    std::size_t begin = footer.find('\n', examples);
    while (begin != std::string::npos) {
      const std::size_t end = footer.find('\n', begin + 1);
      const std::string line = footer.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
      page += line.starts_with("  ") ? line.substr(2) + "\n" : line + "\n";
      begin = end;
    }
    page += "```\n";
  }
  return page;
}

std::string command_section(const CLI::App& command) {
  std::string text = fmt::format("\n## {}\n\n{}.\n", full_name(command), command.get_description());
  const auto positionals = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (!positionals.empty()) {
    text += option_table("Argument", positionals);
  }
  for (const ShownGroup& group : shown_groups(command)) {
    std::vector<const CLI::Option*> options = group.options;
    std::erase(options, command.get_help_ptr());
    if (!options.empty()) {
      text += option_table(group.heading, options);
    }
  }
  return text + footer_text(command.get_footer());
}

// For every command that help lists, and those below it.
void visit_commands(const CLI::App& app, const std::function<void(const CLI::App&)>& visit) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    visit(*command);
    visit_commands(*command, visit);
  }
}

std::string cli_page(const CLI::App& app) {
  std::string page = fmt::format(kGenerated, "cli");
  page += fmt::format("# Commands and options\n\n{}\n\n{}\n", app.get_description(), app.get_footer());
  page += "\n| group | command | does |\n|---|---|---|\n";
  visit_commands(app, [&](const CLI::App& command) {
    const std::string name = full_name(command);
    const CLI::App& first = command.get_parent() == &app ? command : *command.get_parent();
    page += fmt::format("| {} | [`{}`](#{}) | {} |\n", first.get_group(), name, anchor_of(name),
                        cell_text(command.get_description()));
  });
  visit_commands(app, [&](const CLI::App& command) { page += command_section(command); });
  return page;
}

std::string parameter_row(const nlohmann::ordered_json& parameter) {
  std::string values;
  for (const nlohmann::ordered_json& value : parameter.at("values")) {
    values += (values.empty() ? "" : " ") + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  const nlohmann::ordered_json& usual = parameter.at("default");
  return fmt::format("| `{}` | {} | {} | {} |\n", parameter.at("name").get<std::string>(), code_text(values),
                     code_text(usual.is_string() ? usual.get<std::string>() : usual.dump()),
                     cell_text(parameter.at("description").get<std::string>()));
}

std::string dimension_row(const nlohmann::ordered_json& dimension) {
  const nlohmann::ordered_json& usual = dimension.at("default");
  return fmt::format("| `{}` | {} | {} |\n", dimension.at("name").get<std::string>(),
                     usual.is_string() ? code_text(usual.get<std::string>()) : "",
                     cell_text(dimension.at("description").get<std::string>()));
}

std::string type_row(const nlohmann::ordered_json& type) {
  std::string values = fmt::format("{}", fmt::join(type.at("values").get<std::vector<std::string>>(), ", "));
  const std::string packed = names_of(packed_formats());
  if (const std::size_t at = values.find(packed); at != std::string::npos) {
    values.replace(at, packed.size(), "[packed formats](../formats.md)");
  }
  return fmt::format("| `{}` | {} |\n", type.at("name").get<std::string>(), values);
}

// A table of a list; nothing of an empty one.
std::string table_of(const std::string& head, const nlohmann::ordered_json& list,
                     std::string (*row)(const nlohmann::ordered_json&)) {
  std::string text = list.empty() ? "" : "\n" + head + "\n";
  for (const nlohmann::ordered_json& entry : list) {
    text += row(entry);
  }
  return text;
}

std::string kernel_section(const nlohmann::ordered_json& kernel) {
  return fmt::format("\n## {}\n\n{}\n", kernel.at("kernel").get<std::string>(),
                     cell_text(kernel.at("description").get<std::string>())) +
         table_of("| dimension | default | meaning |\n|---|---|---|", kernel.at("dimensions"), dimension_row) +
         table_of("| type | values |\n|---|---|", kernel.at("types"), type_row) +
         table_of("| parameter | values | default | meaning |\n|---|---|---|---|", kernel.at("parameters"),
                  parameter_row);
}

std::string kernels_page() {
  std::string page = fmt::format(kGenerated, "kernels");
  page += "# Kernels and their parameters\n";
  const auto stop = [](const Error& error) { throw Error(error); };
  for (const nlohmann::ordered_json& kernel : kernels_document({}, stop)) {
    page += kernel_section(kernel);
  }
  return page;
}

std::string field_table(const char* head, const std::vector<FieldText>& fields) {
  std::string text = fmt::format("\n| {} | type | unit | meaning |\n|---|---|---|---|\n", head);
  for (const FieldText& field : fields) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", field.name, field.type.text, field.unit, cell_text(field.meaning));
  }
  return text;
}

std::string report_page() {
  std::string page = fmt::format(kGenerated, "report");
  page +=
      "# Keys and columns of a report\n\n## JSON\n\n"
      "Written by `pascaline report --format json`. Null stands for an unknown value. Text is plain, never markup. "
      "`pascaline reference report.schema` prints the same as JSON Schema 2020-12.\n";
  for (const FieldTable* table : report_tables()) {
    page += fmt::format("\n### {}\n\n{}\n", table->name(), table->meaning()) + field_table("key", table->fields());
  }
  return page + "\n## CSV\n\nWritten by `pascaline report --format csv`, a line for each trial.\n" +
         field_table("column", csv_columns());
}

nlohmann::ordered_json schema_of(const FieldTable& table) {
  nlohmann::ordered_json schema{{"type", "object"}, {"additionalProperties", false}};
  for (const FieldText& field : table.fields()) {
    schema["properties"][field.name] = field.type.schema;
    if (!field.type.may_be_absent) {
      schema["required"].push_back(field.name);
    }
  }
  return schema;
}

// A line for each object.
std::string report_schema() {
  const std::vector<const FieldTable*> tables = report_tables();
  std::string text = fmt::format(
      "{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n \"$ref\": \"#/$defs/{}\",\n \"$defs\": {{",
      tables.front()->name());
  for (const FieldTable* table : tables) {
    text +=
        fmt::format("{}\n  \"{}\": {}", table == tables.front() ? "" : ",", table->name(), schema_of(*table).dump());
  }
  return text + "}}\n";
}

}  // namespace

// Run by developers, who keep docs/reference: no help entry.
namespace {

void add_reference_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("reference", "Print a page of docs/reference")->group("");
  const auto page = std::make_shared<std::string>();
  command->add_option("page", *page, "Which page")
      ->required()
      ->check(one_of({"cli", "kernels", "report", "report.schema"}));
  command->callback([&action, &app, page] {
    action = [&app, page] {
      fmt::print("{}", *page == "cli"       ? cli_page(app)
                       : *page == "kernels" ? kernels_page()
                       : *page == "report"  ? report_page()
                                            : report_schema());
      return kSuccess;
    };
  });
}

const Command kReferenceCommand(Heading::hidden, 2, add_reference_command);

}  // namespace

}  // namespace pascaline::cli
