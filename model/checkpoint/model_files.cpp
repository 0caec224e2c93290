#include "model/checkpoint/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "core/file_words.hpp"
#include "core/util/json_reader.hpp"
#include "model/checkpoint/given_model.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxIndexBytes = 64U << 20U;
constexpr std::size_t kMaxShards = 4096;
constexpr std::string_view kSuffix = ".safetensors";

// Names of tensors by the shard that holds them.
using Shards = std::map<std::string, std::vector<std::string>>;

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::symlink_status(file, ignored).type() != fs::file_type::not_found;
}

void check_shard_name(const JsonNode& node, const std::string& name) {
  if (why_no_neighbour(name) || !name.ends_with(kSuffix)) {
    node.fail(fmt::format("{} is not the name of a safetensors file in this folder", quoted_name(name)));
  }
}

Shards read_index(const fs::path& file) {
  const std::string text = read_model_file(file, kMaxIndexBytes);
  const std::string name = file.string();
  try {
    const nlohmann::json document = parse_json(text, name);
    const JsonNode map = JsonNode(document, name).at("weight_map");
    if (!map.value().is_object()) {
      map.fail(fmt::format("expected an object, found {}", map.value().type_name()));
    }
    Shards shards;
    for (const auto& member : map.value().items()) {
      const JsonNode node = map.at(member.key());
      const std::string shard = node.text();
      check_shard_name(node, shard);
      shards[shard].push_back(member.key());
    }
    if (shards.empty() || shards.size() > kMaxShards) {
      map.fail(fmt::format("{} files are not possible (1 to {})", shards.size(), kMaxShards));
    }
    return shards;
  } catch (const SpaceError& error) {
    throw ModelError(error.what());
  }
}

// Demands that the shard holds the tensors the index says, and no others.
void check_shard(const Safetensors& shard, std::vector<std::string> indexed, const fs::path& index) {
  std::sort(indexed.begin(), indexed.end());
  std::vector<std::string> missing;
  for (const std::string& name : indexed) {
    if (shard.find(name) == nullptr) {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    throw ModelError(fmt::format("{}: {} of the tensors that {} places here are missing: {}", shard.path().string(),
                                 missing.size(), index.filename().string(), quoted_names(missing)));
  }
  std::vector<std::string> extra;
  for (const StoredTensor& tensor : shard.tensors()) {
    if (!std::binary_search(indexed.begin(), indexed.end(), tensor.name)) {
      extra.push_back(tensor.name);
    }
  }
  if (!extra.empty()) {
    throw ModelError(fmt::format("{}: it holds {} tensors that {} does not place here: {}", shard.path().string(),
                                 extra.size(), index.filename().string(), quoted_names(extra)));
  }
}

std::vector<Safetensors> open_shards(const fs::path& folder, const fs::path& index) {
  const Shards shards = read_index(index);
  for (const auto& [name, tensors] : shards) {
    if (!is_there(folder / name)) {
      throw ModelError(fmt::format("{}: {} names this file, but it is missing; download the model completely",
                                   (folder / name).string(), index.filename().string()));
    }
  }
  std::vector<Safetensors> files;
  for (const auto& [name, tensors] : shards) {
    check_shard(files.emplace_back(folder / name), tensors, index);
  }
  return files;
}

}  // namespace

std::vector<Safetensors> open_model_files(const fs::path& folder) {
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (is_there(single) && is_there(index)) {
    throw ModelError(fmt::format("{}: there is both {} and {}; remove the one that is not needed", folder.string(),
                                 single.filename().string(), index.filename().string()));
  }
  if (is_there(index)) {
    return open_shards(folder, index);
  }
  if (const std::string adapter = adapter_text(folder); !is_there(single) && !adapter.empty()) {
    throw ModelError(fmt::format("{}: {}", folder.string(), adapter));
  }
  if (const std::string other = other_weights_text(folder); !is_there(single) && !other.empty()) {
    throw ModelError(fmt::format("{}: {}", folder.string(), other));
  }
  if (!is_there(single)) {
    throw ModelError(
        fmt::format("{}: there is neither {} nor {} in this folder; give the folder of a model that was "
                    "downloaded completely",
                    folder.string(), single.filename().string(), index.filename().string()));
  }
  std::vector<Safetensors> files;
  files.emplace_back(single);
  return files;
}

}  // namespace pascaline
