#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "model/session/session.hpp"

namespace pascaline {

/// An answer as `--json` prints it: text, tokens, why it ended, and times, those of prompt and decoding also in
/// llama-bench's terms. `depth` is how many tokens the cache held before the prompt.
[[nodiscard]] nlohmann::json answer_json(const Answer& answer, const ModelSession& session, std::int64_t depth = 0);

/// Its text, on one line or indented. Bytes that are no UTF-8 become U+FFFD; control characters are escaped.
[[nodiscard]] std::string json_text(const nlohmann::json& value, bool on_one_line);

/// Prints a piece of an answer on standard output at once. A model's tokens may hold anything: on a terminal, control
/// characters are replaced.
void print_piece(std::string_view piece);

}  // namespace pascaline
