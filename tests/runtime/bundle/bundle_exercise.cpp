#include "tests/runtime/bundle/bundle_exercise.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/bundle/bundle_format.hpp"

namespace pascaline::testing {

bool exercise_bundle(std::string_view bytes) {
  Bundle bundle;
  try {
    bundle = parse_bundle(bytes, "fuzz.pasc");
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!message.starts_with("cannot use bundle fuzz.pasc: ") || message.find('\n') != std::string::npos) {
      throw std::logic_error("a refusal without the file's name, or of several lines: " + message);
    }
    return false;
  }
  const std::string again = encode_bundle(bundle);
  if (encode_bundle(parse_bundle(again, "again.pasc")) != again) {
    throw std::logic_error("a bundle that was read is not written as it is");
  }
  (void)winners_of(bundle);
  return true;
}

std::string resealed(std::string_view bytes) {
  std::string out(bytes);
  if (out.size() < bundle_format::kHeaderBytes) {
    return out;
  }
  std::uint64_t manifest = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    out[24 + i] = static_cast<char>(out.size() >> (8 * i) & 0xFFU);
    manifest |= std::uint64_t{static_cast<unsigned char>(out[16 + i])} << (8 * i);
  }
  const std::string_view body = std::string_view(out).substr(bundle_format::kHeaderBytes);
  const std::string hash =
      hash_hex(body.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(manifest, body.size()))));
  return out.replace(32, bundle_format::kHashDigits, hash);
}

}  // namespace pascaline::testing
