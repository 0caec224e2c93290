#include "app/model/answer_json.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "app/model/llama_bench.hpp"
#include "app/model/thermal_text.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline {

using nlohmann::json;

json answer_json(const Answer& answer, const ModelSession& session, std::int64_t depth) {
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
  const std::string text = value.dump(on_one_line ? -1 : 2, ' ', false, json::error_handler_t::replace);
  std::string out;  // JSON allows these as they are, but a terminal takes some of them for commands
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (text[i] == '\x7f') {
      out += "\\u007f";
    } else if (text[i] == '\xc2' && next >= 0x80U && next < 0xa0U) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

void print_piece(std::string_view piece) {
  static const bool on_terminal = ::isatty(STDOUT_FILENO) != 0;
  fmt::print("{}", on_terminal ? terminal_text(piece) : piece);
  std::fflush(stdout);
}

}  // namespace pascaline
