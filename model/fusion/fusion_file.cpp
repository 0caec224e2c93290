#include "model/fusion/fusion_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "model/fusion/site_space.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSites = 10'000;

// A text of a plan, refused if it is missing, of another type or longer than anything that is meant.
std::string text_at(const json& object, const char* name, const std::string& where) {
  if (!object.is_object() || !object.contains(name) || !object.at(name).is_string() ||
      object.at(name).get_ref<const std::string&>().size() > 1000) {
    throw Error(fmt::format("{}: '{}' is missing, or is not a text", where, name));
  }
  return object.at(name).get<std::string>();
}

// `site_decode_mlp HIDDEN=2048 …`
Problem site_named(const std::string& text, const std::string& where) {
  const std::string kernel = text.substr(0, text.find(' '));
  if (!is_site(kernel)) {
    throw Error(fmt::format("{}: there is no site '{}' (there are: {})", where, clean_line(kernel),
                            fmt::join(site_kernels(), ", ")));
  }
  std::vector<std::pair<std::string, std::string>> values;
  for (std::size_t at = kernel.size(); at < text.size();) {
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin == std::string::npos) {
      break;
    }
    at = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, at - begin);
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      throw Error(fmt::format("{}: '{}' is not NAME=VALUE", where, clean_line(word)));
    }
    values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  try {
    return site_space(kernel).problem(values);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", where, error.what()));
  }
}

FusionFile::Entry entry_of(const json& object, const std::string& where) {
  FusionFile::Entry entry{site_named(text_at(object, "site", where), where), text_at(object, "alternative", where)};
  std::vector<std::string> names;
  for (const AlternativeFacts& known : alternatives_of(entry.site.kernel)) {
    names.emplace_back(known.name);
    if (known.name == entry.alternative) {
      if (!known.fits(site_key(entry.site))) {
        throw Error(fmt::format("{}: {} cannot be computed as '{}'", where, entry.site.text(), entry.alternative));
      }
      return entry;
    }
  }
  throw Error(fmt::format("{}: {} has no alternative '{}' (it has: {})", where, entry.site.kernel,
                          clean_line(entry.alternative), fmt::join(names, ", ")));
}

DeviceRow device_of(const json& object, const std::string& where) {
  DeviceRow device;
  device.kind = text_at(object, "kind", where);
  device.name = text_at(object, "name", where);
  device.compute_capability = text_at(object, "compute_capability", where);
  if (!object.contains("sm_count") || !object.at("sm_count").is_number_integer()) {
    throw Error(fmt::format("{}: 'sm_count' is missing, or is not a whole number", where));
  }
  device.sm_count = object.at("sm_count").get<std::int64_t>();
  return device;
}

}  // namespace

nlohmann::ordered_json fusion_device_json(const DeviceRow& device) {
  return {{"kind", device.kind},
          {"name", device.name},
          {"compute_capability", device.compute_capability},
          {"sm_count", device.sm_count}};
}

FusionFile parse_fusion(std::string_view text, const std::string& name) {
  const json document = parse_json(text, name);
  if (!document.is_object() || !document.contains("device") || !document.contains("sites") ||
      !document.at("sites").is_array()) {
    throw Error(
        fmt::format("{}: is not a plan of fusion, a JSON object with 'device' and 'sites'; `pascaline explain "
                    "--model FOLDER --json` writes one",
                    name));
  }
  if (const auto schema = document.find("schema"); schema != document.end() && *schema != kFusionSchema) {
    throw Error(fmt::format(
        "{}: its schema is {}, and this program knows {}: write the plan again with `pascaline explain "
        "--model FOLDER --json`",
        name, clean_line(schema->dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40)), kFusionSchema));
  }
  const json& sites = document.at("sites");
  if (sites.size() > kMaxSites) {
    throw Error(fmt::format("{}: {} sites are more than any model has", name, sites.size()));
  }
  FusionFile file{name, device_of(document.at("device"), fmt::format("{}: /device", name)), {}};
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const std::string where = fmt::format("{}: /sites/{}", name, i);
    FusionFile::Entry entry = entry_of(sites.at(i), where);
    if (std::ranges::any_of(file.sites, [&](const auto& known) { return known.site == entry.site; })) {
      throw Error(fmt::format("{}: {} is a duplicate", where, entry.site.text()));
    }
    file.sites.push_back(std::move(entry));
  }
  return file;
}

FusionFile load_fusion(const std::filesystem::path& file) {
  return parse_fusion(read_file(file, 16U << 20U), file.string());
}

}  // namespace pascaline
