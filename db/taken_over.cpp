#include "db/taken_over.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/util/counted.hpp"

namespace pascaline {
namespace {

constexpr const char* kKey = "other_devices";

std::string text_in(const nlohmann::json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_true(const nlohmann::json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

nlohmann::json taken_over_json(const std::vector<TakenOver>& taken_over) {
  nlohmann::json entries = nlohmann::json::array();
  for (const TakenOver& one : taken_over) {
    nlohmann::json& entry = entries.emplace_back(nlohmann::json{{"problem", one.problem},
                                                                {"device", one.device},
                                                                {"measured", one.measured},
                                                                {"trials", one.trials},
                                                                {"winner", one.winner}});
    if (one.other_types) {
      entry["other_types"] = true;
    }
  }
  return entries;
}

std::vector<TakenOver> taken_over_of(const std::string& options_json, const std::string& problem) {
  const nlohmann::json options = nlohmann::json::parse(options_json, nullptr, false);
  std::vector<TakenOver> taken_over;
  if (!options.is_object() || !options.contains(kKey) || !options[kKey].is_array()) {
    return taken_over;
  }
  for (const nlohmann::json& entry : options[kKey]) {
    if (!entry.is_object() || text_in(entry, "problem") != problem) {
      continue;
    }
    TakenOver one{problem, text_in(entry, "device"), text_in(entry, "measured")};
    const auto trials = entry.find("trials");
    one.trials = trials != entry.end() && trials->is_number_unsigned() ? trials->get<std::int64_t>() : 0;
    one.winner = is_true(entry, "winner");
    one.other_types = is_true(entry, "other_types");
    if (!one.device.empty() && (one.trials > 0 || one.winner)) {
      taken_over.push_back(std::move(one));
    }
  }
  return taken_over;
}

std::string taken_over_text(const TakenOver& taken_over) {
  if (taken_over.trials == 0) {
    return fmt::format("the winner of {} among the first",
                       taken_over.other_types ? taken_over.measured : taken_over.device);
  }
  return fmt::format("what {} measured of {} ({}){}", taken_over.device,
                     taken_over.measured == taken_over.problem ? "this shape" : taken_over.measured,
                     counted(taken_over.trials, "trial"), taken_over.winner ? ", its winner among the first" : "");
}

}  // namespace pascaline
