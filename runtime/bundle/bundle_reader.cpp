#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/json_reader.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/bundle/bundle_format.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

namespace format = bundle_format;

constexpr std::int64_t kMaxOfALimit = std::int64_t{1} << 48U;

std::size_t bounded_size(const JsonNode& list, std::size_t most) {
  const std::size_t size = list.array_size();
  if (size > most) {
    list.fail(fmt::format("has {} entries; a bundle has at most {}", size, most));
  }
  return size;
}

std::int64_t integer_from(const JsonNode& node, std::int64_t least, std::int64_t most) {
  const std::int64_t value = node.integer();
  if (value < least || value > most) {
    node.fail(fmt::format("{} is not from {} to {}", value, least, most));
  }
  return value;
}

double real_from(const JsonNode& node, double least, double most) {
  const double value = node.real();
  if (!(value >= least && value <= most)) {
    node.fail(fmt::format("{} is not from {} to {}", value, least, most));
  }
  return value;
}

ToolkitRow read_toolkit(const JsonNode& node) {
  node.only_keys({"compiler", "version", "target", "driver_version"});
  return {node.at("compiler").name(), node.at("version").name(), node.at("target").name(),
          node.at("driver_version").text()};
}

/// Reads a manifest part by part; every complaint names its place. Codes are taken from `codes`, which they must fill.
class ManifestReader {
 public:
  ManifestReader(const nlohmann::json& document, const std::string& name, std::string_view codes)
      : root_(document, name), codes_(codes) {}

  Bundle read() {
    root_.only_keys({"program_version", "architecture", "kind", "toolkits", "limits", "device", "kernels"});
    bundle_.program_version = root_.at("program_version").name();
    bundle_.architecture = root_.at("architecture").name();
    read_kind();
    read_toolkits();
    read_limits();
    if (!root_.at("device").value().is_null()) {
      read_device(root_.at("device"));
    }
    const JsonNode kernels = root_.at("kernels");
    for (std::size_t i = 0; i < bounded_size(kernels, format::kMaxKernels); ++i) {
      read_kernel(kernels.at(i));
    }
    if (codes_read_ == 0) {
      kernels.fail("hold no code");
    }
    if (next_ != codes_.size()) {
      kernels.fail(fmt::format("account for {} of {} bytes of code", next_, codes_.size()));
    }
    return std::move(bundle_);
  }

 private:
  void read_kind() {
    const JsonNode node = root_.at("kind");
    const std::string text = node.name();
    const auto known = std::find_if(format::kKinds.begin(), format::kKinds.end(),
                                    [&](const auto& kind) { return kind.second == text; });
    if (known == format::kKinds.end()) {
      node.fail(fmt::format("'{}' is not a kind of code", text));
    }
    bundle_.kind = known->first;
    if ((bundle_.kind == BinaryKind::host_object) != (bundle_.architecture == kStoredEmulatorName)) {
      node.fail(fmt::format("there is no code of kind '{}' for {}", text, shown_architecture(bundle_.architecture)));
    }
  }

  void require_target(const JsonNode& node, const ToolkitRow& toolkit) const {
    if (toolkit.target != target_of(bundle_)) {
      node.at("target").fail(fmt::format("is {}, not {}", toolkit.target, target_of(bundle_)));
    }
  }

  void read_toolkits() {
    const JsonNode list = root_.at("toolkits");
    for (std::size_t i = 0; i < bounded_size(list, format::kMaxToolkits); ++i) {
      ToolkitRow toolkit = read_toolkit(list.at(i));
      require_target(list.at(i), toolkit);
      if (std::find(bundle_.toolkits.begin(), bundle_.toolkits.end(), toolkit) != bundle_.toolkits.end()) {
        list.at(i).fail("is a duplicate of an earlier toolkit");
      }
      bundle_.toolkits.push_back(std::move(toolkit));
    }
    if (bundle_.toolkits.empty()) {
      list.fail("names none");
    }
  }

  void read_limits() {
    const JsonNode node = root_.at("limits");
    for (const auto& [name, member] : limit_members()) {
      bundle_.limits.*member = integer_from(node.at(name), 1, kMaxOfALimit);
    }
    if (node.value().size() != limit_members().size()) {
      node.fail(fmt::format("has {} entries, not {}", node.value().size(), limit_members().size()));
    }
  }

  void read_device(const JsonNode& node) {
    node.only_keys({"kind", "name", "compute_capability", "sm_count", "memory_bytes"});
    DeviceRow device;
    device.kind = node.at("kind").name();
    device.name = node.at("name").name();
    device.compute_capability = node.at("compute_capability").text();
    device.sm_count = integer_from(node.at("sm_count"), 1, kMaxOfALimit);
    device.memory_bytes = static_cast<std::uint64_t>(integer_from(node.at("memory_bytes"), 0, INT64_MAX));
    if (device.kind != (bundle_.kind == BinaryKind::host_object ? kStoredEmulatorName : "cuda")) {
      node.at("kind").fail(fmt::format("'{}' devices do not run this code", device.kind));
    }
    if (device.sm_count != bundle_.limits.sm_count) {
      node.at("sm_count").fail("differs from the number in the limits");
    }
    bundle_.device = std::move(device);
  }

  void read_kernel(const JsonNode& node) {
    node.only_keys({"name", "source_hash", "space_hash", "function", "winners", "codes"});
    BundleKernel kernel;
    kernel.name = node.at("name").name();
    if (!names_.insert(kernel.name).second) {
      node.at("name").fail(fmt::format("kernel '{}' is a duplicate", kernel.name));
    }
    kernel.source_hash = node.at("source_hash").name();
    kernel.space_hash = node.at("space_hash").name();
    kernel.function = node.at("function").name();
    const JsonNode winners = node.at("winners");
    std::set<std::string> problems;
    for (std::size_t i = 0; i < bounded_size(winners, format::kMaxWinners); ++i) {
      kernel.winners.push_back(read_winner(winners.at(i), kernel.name));
      if (!problems.insert(kernel.winners.back().problem.text()).second) {
        winners.at(i).fail("its problem has a winner already");
      }
    }
    if (!kernel.winners.empty() && !bundle_.device) {
      winners.fail("are there, but the bundle names no device");
    }
    const JsonNode codes = node.at("codes");
    std::set<std::tuple<std::vector<std::string>, std::vector<std::string>, std::size_t>> keys;
    for (std::size_t i = 0; i < bounded_size(codes, format::kMaxCodes); ++i) {
      kernel.codes.push_back(read_code(codes.at(i), kernel));
      if (!keys.emplace(kernel.codes.back().defines, kernel.codes.back().options, kernel.codes.back().toolkit).second) {
        codes.at(i).fail("is a duplicate of earlier code");
      }
    }
    bundle_.kernels.push_back(std::move(kernel));
  }

  BundleWinner read_winner(const JsonNode& node, const std::string& kernel) const {
    node.only_keys(
        {"dimensions", "types", "config", "median_us", "low_us", "high_us", "samples", "confidence", "toolkit"});
    BundleWinner winner;
    winner.problem.kernel = kernel;
    const JsonNode dimensions = node.at("dimensions");
    for (std::size_t i = 0; i < bounded_size(dimensions, format::kMaxSettings); ++i) {
      const JsonNode pair = pair_at(dimensions, i);
      winner.problem.dimensions.emplace_back(pair.at(std::size_t{0}).name(), pair.at(std::size_t{1}).integer());
    }
    const JsonNode types = node.at("types");
    for (std::size_t i = 0; i < bounded_size(types, format::kMaxSettings); ++i) {
      const JsonNode pair = pair_at(types, i);
      const auto type = element_type_from(pair.at(std::size_t{1}).name());
      if (!type) {
        pair.fail("names no element type");
      }
      winner.problem.types.emplace_back(pair.at(std::size_t{0}).name(), *type);
    }
    try {
      winner.config = Config::from_json(node.at("config").value());
    } catch (const SpaceError&) {
      throw;
    } catch (const Error& error) {
      node.at("config").fail(error.what());
    }
    read_time(node, winner);
    winner.toolkit = read_toolkit(node.at("toolkit"));
    require_target(node.at("toolkit"), winner.toolkit);
    return winner;
  }

  static JsonNode pair_at(const JsonNode& list, std::size_t index) {
    JsonNode pair = list.at(index);
    if (pair.array_size() != 2) {
      pair.fail("expected a name and a value");
    }
    return pair;
  }

  static void read_time(const JsonNode& node, BundleWinner& winner) {
    winner.time.median_us = real_from(node.at("median_us"), 0, 1e15);
    winner.time.low_us = real_from(node.at("low_us"), 0, winner.time.median_us);
    winner.time.high_us = real_from(node.at("high_us"), winner.time.median_us, 1e15);
    winner.time.count = static_cast<int>(integer_from(node.at("samples"), 1, INT32_MAX));
    winner.confidence = real_from(node.at("confidence"), 0, 1);
  }

  static std::vector<std::string> read_texts(const JsonNode& list) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < bounded_size(list, format::kMaxSettings); ++i) {
      texts.push_back(list.at(i).name());
    }
    return texts;
  }

  BundleCode read_code(const JsonNode& node, const BundleKernel& kernel) {
    node.only_keys(
        {"defines", "options", "resources", "max_registers", "offset", "bytes", "hash", "toolkit", "function"});
    BundleCode code;
    code.function = node.has("function") ? node.at("function").name() : "";
    const auto last = static_cast<std::int64_t>(bundle_.toolkits.size()) - 1;
    code.toolkit = static_cast<std::size_t>(integer_from(node.at("toolkit"), 0, last));
    code.defines = read_texts(node.at("defines"));
    code.options = read_texts(node.at("options"));
    const JsonNode resources = node.at("resources");
    for (const auto& [name, member] : format::kResources) {
      code.resources.*member = static_cast<int>(integer_from(resources.at(name), 0, INT32_MAX));
    }
    if (resources.value().size() != format::kResources.size()) {
      resources.fail(fmt::format("has {} entries, not {}", resources.value().size(), format::kResources.size()));
    }
    code.max_registers = static_cast<int>(integer_from(node.at("max_registers"), 0, 255));
    code.code = take_code(node);
    check_cubin(node, code, function_in(kernel, code));
    return code;
  }

  // The next bytes of code, if the entry describes them.
  std::string take_code(const JsonNode& node) {
    const std::uint64_t begin = format::aligned(next_);
    const auto offset = static_cast<std::uint64_t>(integer_from(node.at("offset"), 0, INT64_MAX));
    if (offset != begin) {
      node.at("offset").fail(fmt::format("is {}, but the code before it ends at {}", offset, next_));
    }
    const auto size = static_cast<std::uint64_t>(integer_from(node.at("bytes"), 1, INT64_MAX));
    if (begin > codes_.size() || size > codes_.size() - begin) {
      node.at("bytes").fail(fmt::format("{} bytes of code at {} go beyond the file's end", size, offset));
    }
    format::require_zeros(codes_.substr(next_, begin - next_));
    const std::string_view bytes = codes_.substr(begin, size);
    if (node.at("hash").name() != hash_hex(bytes)) {
      node.at("hash").fail("does not match the code: the file is damaged");
    }
    next_ = begin + size;
    ++codes_read_;
    return std::string(bytes);
  }

  // A cubin says itself what it needs.
  void check_cubin(const JsonNode& node, const BundleCode& code, const std::string& function) const {
    if (bundle_.kind != BinaryKind::cubin) {
      return;
    }
    Resources needed;
    std::string architecture;
    try {
      architecture = fmt::format("sm_{}", cubin_architecture(code.code));
      needed = cubin_resources(code.code, function);
    } catch (const Error& error) {
      node.fail(error.what());
    }
    if (architecture != bundle_.architecture) {
      node.fail(fmt::format("is code for {}, not for {}", architecture, shown_architecture(bundle_.architecture)));
    }
    for (const auto& [name, member] : format::kResources) {
      if (needed.*member != code.resources.*member) {
        node.at("resources")
            .at(name)
            .fail(fmt::format("is {}, the code itself says {}", code.resources.*member, needed.*member));
      }
    }
  }

  JsonNode root_;
  std::string_view codes_;
  std::uint64_t next_ = 0;
  std::size_t codes_read_ = 0;
  std::set<std::string> names_;
  Bundle bundle_;
};

}  // namespace

Bundle bundle_format::read_manifest(std::string_view manifest, std::string_view codes) {
  const std::string name = "its manifest";
  const nlohmann::json document = parse_json(manifest, name);
  return ManifestReader(document, name, codes).read();
}

std::string target_of(const Bundle& bundle) { return target_name(bundle.architecture, bundle.kind); }

std::vector<Winner> winners_of(const Bundle& bundle) {
  std::vector<Winner> winners;
  for (const BundleKernel& kernel : bundle.kernels) {
    for (const BundleWinner& from : kernel.winners) {
      Winner winner;
      winner.trial.problem = from.problem;
      winner.trial.config = from.config;
      winner.trial.stage = TrialStage::finals;
      winner.trial.time = from.time;
      winner.confidence = from.confidence;
      winner.kernel = {kernel.name, kernel.source_hash};
      winner.toolkit = from.toolkit;
      winner.device = *bundle.device;
      winner.space_hash = kernel.space_hash;
      winners.push_back(std::move(winner));
    }
  }
  return winners;
}

}  // namespace pascaline
