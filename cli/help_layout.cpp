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
  return {{"Most used", {"--model", "--mmproj", "--until", "--budget", "--db", "--resume", "--shards"}},
          {"What to tune", {"--workload", "--kernel", "--problem", "--phase", "--type", "--symbol"}},
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

class GroupedFormatter : public CLI::Formatter {
 public:
  explicit GroupedFormatter(OptionGroups groups) : groups_(std::move(groups)) { column_width(34); }

  // As the formatter's own, but for the groups, which that would print in the order their options were added in.
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) + groups_text(*app) +
           make_subcommands(app, mode) + "\n" + make_footer(app);
  }

 private:
  [[nodiscard]] std::string groups_text(const CLI::App& app) const {
    std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> shown;
    for (const OptionGroup& group : groups_) {
      auto options = group.options.empty() ? rest_of(app) : named_in(app, group);
      if (!options.empty()) {
        shown.emplace_back(group.heading, std::move(options));
      }
    }
    if (const CLI::Option* const help = app.get_help_ptr(); help != nullptr) {
      if (shown.empty()) {
        shown.push_back({kRest, {}});
      }
      shown.back().second.push_back(help);
    }
    std::string text;
    for (const auto& [heading, options] : shown) {
      text += make_group(heading, false, options);
    }
    return text;
  }
  static std::vector<const CLI::Option*> named_in(const CLI::App& app, const OptionGroup& group) {
    std::vector<const CLI::Option*> options;
    for (const std::string& name : group.options) {
      if (const CLI::Option* const option = app.get_option_no_throw(name); option != nullptr) {
        options.push_back(option);
      }
    }
    return options;
  }
  [[nodiscard]] std::vector<const CLI::Option*> rest_of(const CLI::App& app) const {
    std::vector<const CLI::Option*> named{app.get_help_ptr()};
    for (const OptionGroup& group : groups_) {
      const auto more = named_in(app, group);
      named.insert(named.end(), more.begin(), more.end());
    }
    return app.get_options([&](const CLI::Option* option) {
      return option->nonpositional() && !option->get_group().empty() &&
             std::find(named.begin(), named.end(), option) == named.end();
    });
  }

  OptionGroups groups_;
};

}  // namespace

void arrange_help(CLI::App& app) {
  app.formatter(std::make_shared<GroupedFormatter>(OptionGroups{{kRest, {}}}));
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->formatter(std::make_shared<GroupedFormatter>(groups_of(*command)));
    for (CLI::App* below : command->get_subcommands([](const CLI::App*) { return true; })) {
      below->formatter(std::make_shared<GroupedFormatter>(groups_of(*below)));
    }
  }
}

}  // namespace pascaline::cli
