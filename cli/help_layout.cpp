#include "cli/help_layout.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pascaline::cli {
namespace {

// A heading and the options below it, in this order, as far as the command has them.
struct OptionGroup {
  std::string heading;
  std::vector<std::string> options;  // none named: all that no group names, in the order they were added
};
using OptionGroups = std::vector<OptionGroup>;

constexpr const char* kRest = "Options";

OptionGroup folder_group() { return {"Files and folders", {"--kernels", "--spaces", "--nvrtc", "--cache"}}; }
OptionGroup output_group() { return {"Output", {"--output", "--emit", "--log", "--quiet", "--json"}}; }

OptionGroups sweep_groups() {
  return {
      {"Most used", {"--model", "--mmproj", "--until", "--budget", "--db", "--resume", "--shards"}},
      {"What to tune", {"--workload", "--kernel", "--problem", "--input", "--answer", "--phase", "--type", "--symbol"}},
      {"With --model",
       {"--prompt-tokens", "--image-size", "--weights", "--kv-cache", "--context", "--chunk", "--attention"}},
      {"On which devices", {"--device", "--devices", "--target", "--shard", "--fleet"}},
      {"How to search",
       {"--trials", "--searcher", "--seed", "--retry-failed", "--objective", "--finalists", "--rounds"}},
      {kRest, {}},
      {"Limits of a configuration", {"--jobs", "--compile-timeout", "--compile-memory", "--kernel-timeout"}},
      {"How exactly to measure",
       {"--precision", "--min-samples", "--max-samples", "--sample-budget-ms", "--race-error", "--warm-cache"}},
      {"When the card is fit to be measured",
       {"--max-temperature", "--preheat", "--drift", "--pause-limit", "--tolerate", "--polite", "--sensors"}},
      folder_group(),
      output_group()};
}

// Those of `generate`, `chat`, `bench-model`, `profile`, `workload` and `validate`.
OptionGroups model_groups() {
  return {{"Most used",
           {"--model", "--mmproj", "--prompt", "--image", "--system", "--template", "--reference", "--text", "--device",
            "--db"}},
          {kRest, {}},
          {"How the answer is drawn",
           {"--max-tokens", "--greedy", "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty",
            "--presence-penalty", "--seed"}},
          {"Memory and types",
           {"--weights", "--kv-cache", "--attention", "--memory-limit", "--context", "--chunk", "--max-image-tokens",
            "--random-weights"}},
          {"A model that does not fit the device", {"--gpu-layers", "--vision", "--offload", "--plan"}},
          {"Which kernels",
           {"--bundle", "--any-device", "--untuned", "--target", "--fusion", "--thermal", "--sensors", "--no-graph"}},
          folder_group(),
          output_group()};
}

OptionGroups other_groups() { return {{kRest, {}}, folder_group(), output_group()}; }

OptionGroups groups_of(const CLI::App& command) {
  // What fits a screen needs no headings.
  constexpr std::size_t kFew = 9;
  if (command.get_name() == "sweep" || command.get_name() == "plan") {
    return sweep_groups();
  }
  if (command.get_option_no_throw("--kv-cache") != nullptr) {
    return model_groups();
  }
  return command.get_options().size() > kFew ? other_groups() : OptionGroups{{kRest, {}}};
}

std::vector<const CLI::Option*> named_in(const CLI::App& app, const OptionGroup& group) {
  std::vector<const CLI::Option*> options;
  for (const std::string& name : group.options) {
    if (const CLI::Option* const option = app.get_option_no_throw(name); option != nullptr) {
      options.push_back(option);
    }
  }
  return options;
}

std::vector<const CLI::Option*> rest_of(const CLI::App& app, const OptionGroups& groups) {
  std::vector<const CLI::Option*> named{app.get_help_ptr()};
  for (const OptionGroup& group : groups) {
    const auto more = named_in(app, group);
    named.insert(named.end(), more.begin(), more.end());
  }
  return app.get_options([&](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty() &&
           std::find(named.begin(), named.end(), option) == named.end();
  });
}

class GroupedFormatter : public CLI::Formatter {
 public:
  GroupedFormatter() { column_width(34); }

  // As the formatter's own, but for the groups, which that would print in the order their options were added in.
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string groups;
    for (const ShownGroup& group : shown_groups(*app)) {
      groups += make_group(group.heading, false, group.options);
    }
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) + groups +
           make_subcommands(app, mode) + "\n" + make_footer(app);
  }
};

}  // namespace

std::vector<ShownGroup> shown_groups(const CLI::App& command) {
  const OptionGroups groups = groups_of(command);
  std::vector<ShownGroup> shown;
  for (const OptionGroup& group : groups) {
    auto options = group.options.empty() ? rest_of(command, groups) : named_in(command, group);
    if (!options.empty()) {
      shown.push_back({group.heading, std::move(options)});
    }
  }
  if (const CLI::Option* const help = command.get_help_ptr(); help != nullptr) {
    if (shown.empty()) {
      shown.push_back({kRest, {}});
    }
    shown.back().options.push_back(help);
  }
  return shown;
}

void arrange_help(CLI::App& app) {
  app.formatter(std::make_shared<GroupedFormatter>());
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    arrange_help(*command);
  }
}

}  // namespace pascaline::cli
