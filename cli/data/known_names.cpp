#include "cli/data/known_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline::cli {
namespace {

void require_known(const Store& store, const char* what, const std::string& name,
                   const std::vector<std::string>& known) {
  if (name.empty() || known.empty() || std::find(known.begin(), known.end(), name) != known.end()) {
    return;
  }
  throw Error(fmt::format("{} has nothing of a {} '{}'{}; it has {}", store.file().string(), what, name,
                          did_you_mean(name, known), fmt::join(known, ", ")));
}

}  // namespace

void require_known_kernel(const Store& store, const std::string& kernel) {
  require_known(store, "kernel", kernel, store.kernel_names());
}

void require_known_device(const Store& store, const std::string& device) {
  std::vector<std::string> names;
  for (const DeviceRow& row : store.devices()) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) {
      names.push_back(row.name);
    }
  }
  require_known(store, "device", device, names);
}

}  // namespace pascaline::cli
