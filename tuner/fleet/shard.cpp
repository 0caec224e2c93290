#include "tuner/fleet/shard.hpp"

#include <fmt/format.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_words.hpp"
#include "core/util/hash.hpp"

namespace pascaline {
namespace {

// Digits only; nothing if there are none, others, or too many.
std::optional<std::int64_t> whole_number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool taken = fault == std::errc{} && end == text.data() + text.size() && text.front() != '-';
  return taken ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string Shard::text() const { return fmt::format("{}/{}", index, count); }

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = whole_number_in(text.substr(0, slash));
  const auto count = slash == std::string_view::npos ? std::nullopt : whole_number_in(text.substr(slash + 1));
  if (!index || !count) {
    throw Error(fmt::format("'{}' is not a shard: give it as i/N, as 2/4 for the second of four", text));
  }
  if (*count < 1 || *count > kMaxFleetShards) {
    throw Error(fmt::format("'{}': a sweep is divided into 1 to {} shards, not {}", text, kMaxFleetShards, *count));
  }
  if (*index < 1 || *index > *count) {
    throw Error(
        fmt::format("'{}': there is no shard {}: those of {} are numbered from 1 to {}", text, *index, *count, *count));
  }
  return {static_cast<int>(*index), static_cast<int>(*count)};
}

void FleetWhole::add(std::string_view problem, double calls) { problems.insert(fmt::format("{}, {}", problem, calls)); }

std::string FleetWhole::id() const {
  constexpr std::size_t kDigits = 16;
  FieldHash hash;
  hash.add("fleet").add(std::to_string(count)).add(searcher).add(std::to_string(seed));
  hash.add(std::to_string(trials)).add(objective);
  for (const std::string& problem : problems) {
    hash.add(problem);
  }
  return hash.hex().substr(0, kDigits);
}

std::optional<ShardIdentity> shard_of_options(const std::string& options_json) {
  const nlohmann::json options = nlohmann::json::parse(options_json, nullptr, false);
  const auto shard = options.is_object() ? options.find("shard") : options.end();
  if (!options.is_object() || shard == options.end() || !shard->is_object()) {
    return std::nullopt;
  }
  const auto fleet = shard->find("fleet");
  const auto index = shard->find("index");
  const auto count = shard->find("count");
  if (fleet == shard->end() || !fleet->is_string() || why_no_hash(fleet->get_ref<const std::string&>()) ||
      index == shard->end() || !index->is_number_integer() || count == shard->end() || !count->is_number_integer()) {
    return std::nullopt;
  }
  const auto of = count->get<std::int64_t>();
  const auto number = index->get<std::int64_t>();
  if (of < 1 || of > kMaxFleetShards || number < 1 || number > of) {
    return std::nullopt;
  }
  return ShardIdentity{fleet->get<std::string>(), {static_cast<int>(number), static_cast<int>(of)}};
}

}  // namespace pascaline
