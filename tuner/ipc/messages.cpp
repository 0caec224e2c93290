#include "tuner/ipc/messages.hpp"

#include <string>

#include "core/error.hpp"
#include "tuner/compile/compile_protocol.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

template <typename Enum>
Enum known(std::optional<Enum> value, const json& text) {
  if (!value) {
    throw Error("a message holds the unknown word " + text.dump());
  }
  return *value;
}

}  // namespace

void to_json(json& out, const Binary& binary) {
  out = {{"kind", static_cast<int>(binary.kind)}, {"target", binary.target},
         {"function", binary.function},           {"code", json::binary({binary.code.begin(), binary.code.end()})},
         {"resources", binary.resources},         {"compile_ms", binary.compile_ms},
         {"from_cache", binary.from_cache},       {"max_registers", binary.max_registers}};
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

void to_json(json& out, const Trial& trial) {
  out = {{"config", trial.config.json()},    {"status", name_of(trial.status)},
         {"stage", name_of(trial.stage)},    {"is_default", trial.is_default},
         {"reason", trial.reason},           {"resources", trial.resources},
         {"occupancy", trial.occupancy},     {"binary_hash", trial.binary_hash},
         {"max_error", trial.max_error},     {"time", trial.time},
         {"samples", trial.samples},         {"canary_us", trial.canary_us},
         {"clock_scale", trial.clock_scale}, {"energy_mj", trial.energy_mj},
         {"compile_ms", trial.compile_ms},   {"verify_ms", trial.verify_ms},
         {"measure_ms", trial.measure_ms},   {"started_unix_ms", trial.started_unix_ms}};
}

void from_json(const json& in, Trial& trial) {
  trial.config = Config::from_json(in.at("config"));
  trial.status = known(trial_status_from(in.at("status").get<std::string>()), in.at("status"));
  trial.stage = known(trial_stage_from(in.at("stage").get<std::string>()), in.at("stage"));
  in.at("is_default").get_to(trial.is_default);
  in.at("reason").get_to(trial.reason);
  in.at("resources").get_to(trial.resources);
  in.at("occupancy").get_to(trial.occupancy);
  in.at("binary_hash").get_to(trial.binary_hash);
  in.at("max_error").get_to(trial.max_error);
  in.at("time").get_to(trial.time);
  in.at("samples").get_to(trial.samples);
  in.at("canary_us").get_to(trial.canary_us);
  in.at("clock_scale").get_to(trial.clock_scale);
  in.at("energy_mj").get_to(trial.energy_mj);
  in.at("compile_ms").get_to(trial.compile_ms);
  in.at("verify_ms").get_to(trial.verify_ms);
  in.at("measure_ms").get_to(trial.measure_ms);
  in.at("started_unix_ms").get_to(trial.started_unix_ms);
}

std::vector<std::uint8_t> packed(const Binary& binary) { return json::to_cbor(json(binary)); }

Binary unpacked(const std::vector<std::uint8_t>& bytes) { return json::from_cbor(bytes).get<Binary>(); }

}  // namespace pascaline
