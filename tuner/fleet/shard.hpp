#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pascaline {

/// The most shards that a sweep is divided into.
inline constexpr int kMostShards = 10000;

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

/// A shard, and the fleet that it belongs to: what a session keeps of it, so that parts of different wholes are never
/// put together.
struct ShardIdentity {
  std::string fleet;  ///< see `fleet_id`
  Shard shard;
  friend bool operator==(const ShardIdentity&, const ShardIdentity&) = default;
};

/// What the options of a session (SessionRow::options_json) say of it; nothing if they name no shard, or none that
/// there can be.
[[nodiscard]] std::optional<ShardIdentity> shard_of_options(const std::string& options_json);

}  // namespace pascaline
