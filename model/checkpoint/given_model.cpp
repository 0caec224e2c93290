#include "model/checkpoint/given_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/foreign_text.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCacheEntry = "models--";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr std::array kAdapterFiles{"adapter_model.safetensors", "adapter_model.bin"};

bool is_file(const fs::path& path) {
  std::error_code unseen;
  return fs::is_regular_file(path, unseen);
}

bool is_folder(const fs::path& path) {
  std::error_code unseen;
  return fs::is_directory(path, unseen);
}

// Without a slash at its end.
std::string last_name(const fs::path& path) {
  const fs::path plain = path.lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

// Of the folder's entries that are `wanted`, in order.
template <typename Wanted>
std::vector<fs::path> entries_of(const fs::path& folder, const Wanted& wanted) {
  std::vector<fs::path> found;
  std::error_code unseen;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unseen)) {
    if (wanted(entry.path())) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string first_line_of(const fs::path& file) {
  std::string line;
  if (is_file(file)) {
    std::ifstream(file) >> line;
  }
  return line;
}

// The entry of the Hugging Face cache that this folder is, or is the `snapshots` of.
std::optional<fs::path> cache_entry_of(const fs::path& folder) {
  if (is_folder(folder / "snapshots")) {
    return folder;
  }
  const fs::path above = (folder / "..").lexically_normal();
  const bool is_within = last_name(above).starts_with(kCacheEntry) || is_folder(above / "refs");
  return last_name(folder) == "snapshots" && is_within ? std::optional(above) : std::nullopt;
}

std::string reason_no_snapshot(const fs::path& entry) {
  const std::vector<fs::path> all = entries_of(entry / "snapshots", is_folder);
  const std::string main = first_line_of(entry / "refs" / "main");
  const std::string named =
      main.empty() ? "no refs/main that names one" : "refs/main names " + quoted_name(main) + ", which is missing";
  if (all.empty()) {
    return fmt::format("this entry of the Hugging Face cache has no snapshot{}; download the model again",
                       main.empty() ? "" : ": " + named);
  }
  return fmt::format("this entry of the Hugging Face cache has {}, and {}; download the model again, or give {}, as {}",
                     counted(all.size(), "snapshot"), named, all.size() == 1 ? "that one" : "one of them",
                     all.front().string());
}

std::vector<fs::path> cached_models(const fs::path& folder) {
  return entries_of(folder, [](const fs::path& path) {
    return path.filename().string().starts_with(kCacheEntry) && is_folder(path);
  });
}

// The first GGUF file of a folder that is no projector.
std::optional<fs::path> gguf_in(const fs::path& folder) {
  const auto files = entries_of(folder, [](const fs::path& path) {
    return path.extension() == ".gguf" && is_file(path) && !path.filename().string().starts_with("mmproj");
  });
  return files.empty() ? std::nullopt : std::optional(files.front());
}

// As PyTorch, TensorFlow and Flax name a model's weights, but not what training leaves beside them (`optimizer.pt`).
bool is_other_weights(const fs::path& file) {
  constexpr std::array<std::string_view, 6> kEndings{".bin", ".ckpt", ".h5", ".msgpack", ".pt", ".pth"};
  const std::string name = file.filename().string();
  const bool is_model = name.starts_with("consolidated") ||
                        (name.find("model") != std::string::npos && !name.starts_with("adapter_model"));
  return is_model && is_file(file) &&
         std::find(kEndings.begin(), kEndings.end(), file.extension().string()) != kEndings.end();
}

std::string other_weights_reason(const fs::path& file) {
  return fmt::format(
      "the weights are in {}, and only safetensors and GGUF files are read; take a revision of the model that has "
      "model.safetensors, or make it with Transformers in Python (from_pretrained of this folder, then save_pretrained "
      "into another)",
      quoted_name(file.filename().string()));
}

bool holds_lfs_pointer(const fs::path& file) {
  std::string begin(64, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return is_lfs_pointer(begin);
}

std::string reason_not_a_folder(const fs::path& given) {
  constexpr std::string_view kGive = "give a model's folder, which has its config.json, or a GGUF file";
  std::error_code unseen;
  if (!fs::exists(given, unseen)) {
    return fmt::format("{}: there is no such folder; {}", given.string(), kGive);
  }
  if (is_file(given) && holds_lfs_pointer(given)) {
    return fmt::format("{}: {}", given.string(), kLfsPointer);
  }
  if (given.filename().string().starts_with("adapter_model")) {
    return fmt::format(
        "{}: this is a LoRA adapter, not a model; merge it into its base model first (merge_and_unload of PEFT), and "
        "give the merged model's folder",
        given.string());
  }
  if (is_other_weights(given)) {
    return fmt::format("{}: {}", given.string(), other_weights_reason(given));
  }
  return fmt::format("{}: this is neither a folder nor a GGUF file; {}", given.string(),
                     given.extension() == ".safetensors" ? "give the folder that it is in" : kGive);
}

}  // namespace

fs::path downloaded_model(fs::path given) {
  if (!is_folder(given) || is_file(given / "config.json")) {
    return given;
  }
  const std::optional<fs::path> entry = cache_entry_of(given);
  if (!entry) {
    return given;
  }
  const fs::path snapshots = *entry / "snapshots";
  const std::string main = first_line_of(*entry / "refs" / "main");
  const std::vector<fs::path> all = entries_of(snapshots, is_folder);
  const auto named = std::find_if(all.begin(), all.end(),
                                  [&](const fs::path& snapshot) { return snapshot.filename().string() == main; });
  if (named != all.end()) {
    return *named;
  }
  return all.size() == 1 && main.empty() ? all.front() : given;
}

std::string reason_not_a_model(const fs::path& folder, std::string_view file) {
  if (!folder.empty() && !is_folder(folder)) {
    return reason_not_a_folder(folder);
  }
  if (const std::string adapter = adapter_text(folder); !adapter.empty()) {
    return fmt::format("{}: {}", folder.string(), adapter);
  }
  if (const std::optional<fs::path> model = gguf_in(folder)) {
    return fmt::format(
        "{}: the folder lacks this file, but it has GGUF files, of which one is a model: name that one, as {}",
        (folder / file).string(), model->string());
  }
  if (const std::optional<fs::path> entry = cache_entry_of(folder)) {
    return fmt::format("{}: {}", folder.string(), reason_no_snapshot(*entry));
  }
  for (const fs::path& cache : {folder, folder / "hub"}) {
    if (const std::vector<fs::path> models = cached_models(cache); !models.empty()) {
      return fmt::format("{}: this is a cache of Hugging Face, not a model; give one of the models in it, as {}",
                         folder.string(), models.front().string());
    }
  }
  if (const std::string other = other_weights_text(folder); !other.empty()) {
    return fmt::format("{}: {}", folder.string(), other);
  }
  if (folder.extension() == ".gguf") {
    return fmt::format("{}: this is a folder, and no GGUF file; give the file, or a model's folder", folder.string());
  }
  return fmt::format("{}: the model folder lacks this file; download the model completely", (folder / file).string());
}

std::string adapter_text(const fs::path& folder) {
  const fs::path config = folder / kAdapterConfig;
  const bool has_weights =
      std::any_of(kAdapterFiles.begin(), kAdapterFiles.end(), [&](const char* name) { return is_file(folder / name); });
  if (!is_file(config) && !has_weights) {
    return {};
  }
  std::string base;
  try {
    if (is_file(config)) {
      const std::string name = config.string();
      const nlohmann::json document = parse_json(read_foreign_text(config), name);
      const JsonNode root(document, name);
      constexpr std::string_view kBase = "base_model_name_or_path";
      base = root.has_value(kBase) ? " (" + quoted_name(root.at(kBase).text()) + ")" : "";
    }
  } catch (const Error&) {
    base.clear();  // the name is all that is wanted of it
  }
  return fmt::format(
      "this is a LoRA adapter, not a model; merge it into its base model{} first (merge_and_unload of PEFT), and give "
      "the merged model's folder",
      base);
}

std::string other_weights_text(const fs::path& folder) {
  const std::vector<fs::path> files = entries_of(folder, is_other_weights);
  return files.empty() ? std::string() : other_weights_reason(files.front());
}

void pass_over_adapter(const fs::path& folder) {
  for (const char* name : {kAdapterConfig, kAdapterFiles[0], kAdapterFiles[1]}) {
    if (is_file(folder / name)) {
      pass_over(
          fmt::format("{}: there is an adapter beside the model, which is not applied: the model answers without it; "
                      "to use it, merge it into the model (merge_and_unload of PEFT)",
                      (folder / name).string()));
      return;
    }
  }
}

}  // namespace pascaline
