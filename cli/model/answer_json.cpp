#include "cli/model/answer_json.hpp"

#include "cli/model/llama_bench.hpp"
#include "cli/model/thermal_text.hpp"

namespace pascaline::cli {

using nlohmann::json;

json answer_json(const Answer& answer, const Session& session, std::int64_t depth) {
  const std::uint64_t launches = session.model().launches_of_step();
  return {{"text", answer.text},
          {"tokens", answer.tokens},
          {"end", name_of(answer.end)},
          {"depth", depth},
          {"prompt_tokens", answer.prompt_tokens},
          {"answer_tokens", answer.tokens.size()},
          {"prompt_ms", answer.prompt_ms},
          {"decode_ms", answer.decode_ms},
          {"tokens_per_s", answer.tokens_per_second()},
          {"launches_per_token", launches > 0 ? json(launches) : json(nullptr)},
          {"attention", session.model().options().attention.name()},
          {"llama_bench", answer_tests(answer, depth)},
          {"thermal", thermal_json(session)},
          {"device", session.device_name()}};
}

std::string json_text(const json& value, bool on_one_line) {
  return value.dump(on_one_line ? -1 : 2, ' ', false, json::error_handler_t::replace);
}

}  // namespace pascaline::cli
