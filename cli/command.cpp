#include "cli/command.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace pascaline::cli {
namespace {

constinit const Command* g_last = nullptr;  // of those that there are, which are constants of other files

constexpr std::array kHeadings{"Tune", "Models", "Data", "Shell", ""};

}  // namespace

Command::Command(Heading heading, int rank, void (*add)(CLI::App& app, Action& action)) noexcept
    : heading_(heading), rank_(rank), add_(add), next_(g_last) {
  g_last = this;
}

void Command::add_all(CLI::App& app, Action& action) {
  std::vector<const Command*> all;
  for (const Command* one = g_last; one != nullptr; one = one->next_) {
    all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const Command* one, const Command* other) {
    return one->heading_ != other->heading_ ? one->heading_ < other->heading_ : one->rank_ < other->rank_;
  });
  const std::string none = app.get_group();  // what a command has that was not put into a group
  for (const Command* one : all) {
    one->add_(app, action);
    for (CLI::App* command : app.get_subcommands([&](const CLI::App* added) { return added->get_group() == none; })) {
      command->group(kHeadings.at(static_cast<std::size_t>(one->heading_)));
    }
  }
}

}  // namespace pascaline::cli
