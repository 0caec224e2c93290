#include "tuner/ipc/messages.hpp"

#include <string>

#include "core/error.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

template <typename Enum>
Enum known(std::optional<Enum> value, const json& text) {
  if (!value) {
    throw Error("a message has the unknown name " + text.dump());
  }
  return *value;
}

}  // namespace

void to_json(json& out, const Binary& binary) {
  out = {{"kind", static_cast<int>(binary.kind)},
         {"target", binary.target},
         {"function", binary.function},
         {"code", json::binary({binary.code.begin(), binary.code.end()})},
         {"resources", binary.resources},
         {"compile_ms", binary.compile_ms},
         {"from_cache", binary.from_cache},
         {"max_registers", binary.max_registers},
         {"translated", json::binary({binary.translated.begin(), binary.translated.end()})},
         {"then", binary.then}};
}

void from_json(const json& in, Binary& binary) {
  binary.kind = static_cast<BinaryKind>(in.at("kind").get<int>());
  in.at("target").get_to(binary.target);
  in.at("function").get_to(binary.function);
  const auto& code = in.at("code").get_binary();
  binary.code.assign(code.begin(), code.end());
  in.at("resources").get_to(binary.resources);
  in.at("compile_ms").get_to(binary.compile_ms);
  in.at("from_cache").get_to(binary.from_cache);
  in.at("max_registers").get_to(binary.max_registers);
  const auto& translated = in.at("translated").get_binary();
  binary.translated.assign(translated.begin(), translated.end());
  in.at("then").get_to(binary.then);
}

void to_json(json& out, const Sample& sample) {
  out = json::array(
      {sample.time_us, static_cast<int>(sample.mark), sample.temperature_c, sample.sm_clock_mhz, sample.power_w});
}

void from_json(const json& in, Sample& sample) {
  in.at(0).get_to(sample.time_us);
  sample.mark = static_cast<SampleMark>(in.at(1).get<int>());
  in.at(2).get_to(sample.temperature_c);
  in.at(3).get_to(sample.sm_clock_mhz);
  in.at(4).get_to(sample.power_w);
}

void to_json(json& out, const Config& config) { out = config.json(); }

void from_json(const json& in, Config& config) { config = Config::from_json(in); }

void to_json(json& out, TrialStatus status) { out = name_of(status); }

void from_json(const json& in, TrialStatus& status) { status = known(trial_status_from(in.get<std::string>()), in); }

void to_json(json& out, Objective objective) { out = name_of(objective); }

void from_json(const json& in, Objective& objective) { objective = known(objective_from(in.get<std::string>()), in); }

void to_json(json& out, TrialStage stage) { out = name_of(stage); }

void from_json(const json& in, TrialStage& stage) { stage = known(trial_stage_from(in.get<std::string>()), in); }

void to_json(json& out, const Trial& trial) {
  out = {{"samples", trial.samples}};
  for_each_field(trial, [&](const char* name, const auto& value) { out[name] = value; });
}

void from_json(const json& in, Trial& trial) {
  in.at("samples").get_to(trial.samples);
  for_each_field(trial, [&](const char* name, auto& value) { in.at(name).get_to(value); });
}

}  // namespace pascaline
