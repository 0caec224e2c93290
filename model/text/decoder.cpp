#include "model/text/decoder.hpp"

#include <string_view>
#include <utility>

#include "model/text/utf8.hpp"

namespace pascaline {

std::string StreamDecoder::push(TokenId id) {
  held_ += tokenizer_->bytes(id, special_);
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Step step = next_utf8(rest);
    if (step.kind == Utf8Step::Kind::incomplete) {
      break;
    }
    out += step.kind == Utf8Step::Kind::character ? rest.substr(0, step.bytes) : kReplacement;
    rest.remove_prefix(step.bytes);
  }
  held_ = std::string(rest);
  return out;
}

std::string StreamDecoder::finish() { return valid_utf8(std::exchange(held_, {})); }

}  // namespace pascaline
