#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace pascaline {

/// The most shards that a sweep is divided into.
inline constexpr int kMaxFleetShards = 10000;

/// Which part of a sweep: shard `index` of `count`, from 1.
struct Shard {
  int index = 1;
  int count = 1;

  /// "2/4"
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// The shard "2/4"; throws Error naming what is wrong with the text.
[[nodiscard]] Shard parse_shard(std::string_view text);

/// What a fleet is: what is divided, into how many shards, and how each is searched.
struct FleetWhole {
  std::string searcher;
  std::uint64_t seed = 1;
  int trials = 0;
  std::string objective;
  int count = 1;
  std::set<std::string> problems{};  ///< each with its calls, as `add` puts them

  void add(std::string_view problem, double calls);
  /// A hash of all of it, which names the fleet: two machines that were given the same compute the same.
  [[nodiscard]] std::string id() const;
};

/// A shard, and the fleet that it belongs to: what a session keeps of it, so that parts of different wholes are never
/// put together.
struct ShardIdentity {
  std::string fleet;  ///< see FleetWhole::id
  Shard shard;
  friend bool operator==(const ShardIdentity&, const ShardIdentity&) = default;
};

/// What the options of a session (SessionRow::options_json) say of it; nothing if they name no shard, or none that
/// there can be.
[[nodiscard]] std::optional<ShardIdentity> shard_of_options(const std::string& options_json);

}  // namespace pascaline
