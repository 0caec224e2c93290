#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/json_words.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/bundle/bundle_format.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

void append_number(std::string& bytes, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
  }
}

void align(std::string& bytes) { bytes.resize(bundle_format::aligned(bytes.size()), '\0'); }

ordered_json toolkit_json(const ToolkitRow& toolkit) {
  return {{"compiler", toolkit.compiler},
          {"version", toolkit.version},
          {"target", toolkit.target},
          {"driver_version", toolkit.driver_version}};
}

ordered_json device_json(const DeviceRow& device) {
  return {{"kind", device.kind},
          {"name", device.name},
          {"compute_capability", device.compute_capability},
          {"sm_count", device.sm_count},
          {"memory_bytes", device.memory_bytes}};
}

ordered_json limits_json(const DeviceLimits& limits) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, member] : limit_members()) {
    out[std::string(name)] = limits.*member;
  }
  return out;
}

ordered_json winner_json(const BundleWinner& winner) {
  ordered_json dimensions = ordered_json::array();
  for (const auto& [name, value] : winner.problem.dimensions) {
    dimensions.push_back({name, value});
  }
  ordered_json types = ordered_json::array();
  for (const auto& [name, type] : winner.problem.types) {
    types.push_back({name, name_of(type)});
  }
  return {{"dimensions", dimensions},
          {"types", types},
          {"config", winner.config.json()},
          {"median_us", winner.time.median_us},
          {"low_us", winner.time.low_us},
          {"high_us", winner.time.high_us},
          {"samples", winner.time.count},
          {"confidence", winner.confidence},
          {"toolkit", toolkit_json(winner.toolkit)}};
}

ordered_json code_json(const BundleCode& code, std::size_t offset) {
  ordered_json resources = ordered_json::object();
  for (const auto& [name, member] : bundle_format::kResources) {
    resources[std::string(name)] = code.resources.*member;
  }
  ordered_json json{{"defines", code.defines},
                    {"options", code.options},
                    {"toolkit", code.toolkit},
                    {"resources", resources},
                    {"max_registers", code.max_registers},
                    {"offset", offset},
                    {"bytes", code.code.size()},
                    {"hash", hash_hex(code.code)}};
  if (!code.function.empty()) {
    json["function"] = code.function;
  }
  return json;
}

std::string_view kind_name(BinaryKind kind) {
  return std::find_if(bundle_format::kKinds.begin(), bundle_format::kKinds.end(),
                      [kind](const auto& known) { return known.first == kind; })
      ->second;
}

}  // namespace

std::string bundle_format::assemble(const std::string& manifest, std::string_view codes) {
  const std::uint64_t begin = aligned(kHeaderBytes + manifest.size());
  std::string bytes(kMagic);
  append_number(bytes, kVersion);
  append_number(bytes, manifest.size());
  append_number(bytes, begin + codes.size());
  bytes += hash_hex(manifest);
  bytes += manifest;
  align(bytes);
  bytes += codes;
  return bytes;
}

std::string encode_bundle(const Bundle& bundle) {
  std::string codes;
  ordered_json kernels = ordered_json::array();
  for (const BundleKernel& kernel : bundle.kernels) {
    ordered_json winners = ordered_json::array();
    for (const BundleWinner& winner : kernel.winners) {
      winners.push_back(winner_json(winner));
    }
    ordered_json entries = ordered_json::array();
    for (const BundleCode& code : kernel.codes) {
      align(codes);
      entries.push_back(code_json(code, codes.size()));
      codes += code.code;
    }
    kernels.push_back({{"name", kernel.name},
                       {"source_hash", kernel.source_hash},
                       {"space_hash", kernel.space_hash},
                       {"function", kernel.function},
                       {"winners", winners},
                       {"codes", entries}});
  }
  ordered_json toolkits = ordered_json::array();
  for (const ToolkitRow& toolkit : bundle.toolkits) {
    toolkits.push_back(toolkit_json(toolkit));
  }
  ordered_json manifest{{"program_version", bundle.program_version},
                        {"architecture", bundle.architecture},
                        {"kind", kind_name(bundle.kind)},
                        {"toolkits", toolkits},
                        {"limits", limits_json(bundle.limits)},
                        {"device", bundle.device ? device_json(*bundle.device) : ordered_json(nullptr)},
                        {"kernels", kernels}};
  try {
    return bundle_format::assemble(manifest.dump(), codes);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("cannot write a bundle: a name in it is not UTF-8 ({})", json_words(error)));
  }
}

}  // namespace pascaline
