#include "model/convert/to_gguf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/util/json_reader.hpp"
#include "model/checkpoint/gguf/gguf_weights.hpp"
#include "model/checkpoint/gguf/gguf_writer.hpp"
#include "model/checkpoint/gguf/projector_weights.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/convert/config_files.hpp"
#include "model/convert/gguf_model_keys.hpp"
#include "model/convert/gguf_tokenizer_keys.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFramesOfProjectors = 2;
constexpr std::int64_t kColorsOfProjectors = 3;

// The tensors of a file, and what it calls them.
struct FileTensors {
  std::vector<WrittenTensor> tensors;
  std::vector<GgufTensorForm> forms;
  std::vector<float> rope_divisors;  // if there are some, a tensor after those

  void add(const TensorSpec& spec, WrittenTensor tensor, std::string name) {
    GgufTensorForm form{std::move(name), tensor.type, {spec.shape.rbegin(), spec.shape.rend()}};
    if (tensor.frame) {
      form.shape.erase(form.shape.begin() + 2);
    }
    forms.push_back(std::move(form));
    tensors.push_back(tensor);
  }
  void add_divisors(const std::vector<float>& divisors) {
    rope_divisors = divisors;
    forms.push_back({kGgufRopeFactors, GgufType::F32, {static_cast<std::int64_t>(divisors.size())}});
  }
};

struct ModelTensors {
  FileTensors text;
  FileTensors projector;
};

// A folder's weights, or random ones, and what each tensor is stored as.
struct FolderWeights {
  WeightSource source;
  std::vector<StoredKind> kinds;
  std::vector<std::uint64_t> bytes;
};

FolderWeights random_folder_weights(const ModelConfig& config) {
  constexpr std::uint64_t kSeed = 1;
  FolderWeights weights{random_weights(config, kSeed), {}, {}};
  for (const TensorSpec& tensor : weights.source.tensors()) {
    weights.kinds.push_back({GgufType::F16, {}});
    weights.bytes.push_back(static_cast<std::uint64_t>(tensor.elements() * block_bytes(GgufType::F16)));
  }
  return weights;
}

FolderWeights folder_weights(const fs::path& folder, const ModelConfig& config) {
  Checkpoint checkpoint = Checkpoint::open(folder, config);
  std::vector<StoredKind> kinds;
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    kinds.push_back(stored_kind(checkpoint, i));
    bytes.push_back(checkpoint.stored(i).bytes.size());
  }
  return {checkpoint_weights(std::move(checkpoint)), std::move(kinds), std::move(bytes)};
}

ModelTensors plan_files(const FolderWeights& weights, const ModelConfig& config, const WantedTypes& wanted) {
  ModelTensors plan;
  for (std::size_t i = 0; i < weights.source.tensors().size(); ++i) {
    const TensorSpec& spec = weights.source.tensors()[i];
    const WrittenTensor tensor{
        i, written_type(spec, weights.kinds[i], wanted, true), {}, gguf_row_order(config, spec.name)};
    if (!spec.name.starts_with(kVisionPrefix)) {
      plan.text.add(spec, tensor, gguf_tensor_name(spec.name));
    } else if (!is_patch_embedding(spec.name)) {
      plan.projector.add(spec, tensor, projector_tensor_name(spec.name, *config.vision));
    } else {
      for (std::int64_t frame = 0; frame < spec.shape[2]; ++frame) {
        plan.projector.add(spec, {tensor.index, tensor.type, frame}, patch_frame_name(frame));
      }
    }
  }
  if (!config.text.rope_divisors.empty() && !linear_rope_factor(config.text)) {
    plan.text.add_divisors(config.text.rope_divisors);
  }
  return plan;
}

// How many matrices have rows that are no whole blocks of their type, and what they become.
void tell_of_other_types(const FolderWeights& weights, const WantedTypes& wanted, const ConvertSettings& settings) {
  std::map<std::pair<GgufType, GgufType>, std::size_t> counts;
  for (std::size_t i = 0; i < weights.source.tensors().size(); ++i) {
    const TensorSpec& spec = weights.source.tensors()[i];
    if (const auto unfit = unfit_type(spec, weights.kinds[i], wanted)) {
      counts[{*unfit, written_type(spec, weights.kinds[i], wanted, true)}] += 1;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [types, count] : counts) {
    parts.push_back(fmt::format("{} {} {} instead of {}", count, count == 1 ? "matrix is" : "matrices are",
                                name_of(types.second), name_of(types.first)));
  }
  if (!parts.empty() && settings.tell) {
    settings.tell(fmt::format("{}, as their rows are no whole blocks of that", fmt::join(parts, ", ")));
  }
}

// Of random weights that of the released models, if the folder has none.
PreprocessorConfig folder_images(const fs::path& folder, const VisionConfig& vision, bool is_random) {
  constexpr std::int64_t kReleasedLeast = 65536;
  constexpr std::int64_t kReleasedMost = 16777216;
  const fs::path file = preprocessor_file(folder);
  if (!is_random || fs::exists(file)) {
    return read_preprocessor_config(file);
  }
  PreprocessorConfig images;
  images.shortest_edge = kReleasedLeast;
  images.longest_edge = kReleasedMost;
  images.patch_size = vision.patch;
  images.temporal_patch_size = vision.temporal_patch;
  images.merge_size = vision.merge;
  images.image_mean = images.image_std = {0.5, 0.5, 0.5};
  return images;
}

void require_projector(const VisionConfig& vision, const fs::path& folder) {
  if (vision.temporal_patch != kFramesOfProjectors || vision.in_channels != kColorsOfProjectors) {
    throw ModelError(fmt::format("{}: patches of {} frames of {} colours; a projector has {} of {}",
                                 (folder / "config.json").string(), vision.temporal_patch, vision.in_channels,
                                 kFramesOfProjectors, kColorsOfProjectors));
  }
  if (vision.rope_theta != VisionConfig().rope_theta) {
    throw ModelError(fmt::format("{}: the vision tower has the rope_theta {}, which a projector cannot say; it has {}",
                                 (folder / "config.json").string(), vision.rope_theta, VisionConfig().rope_theta));
  }
}

bool write_file(const fs::path& file, const GgufKeys& keys, const FileTensors& plan, TensorWriting& writing) {
  GgufStream out(file, keys, plan.forms);
  writing.add_file(out.bytes());
  if (!writing.write(plan.tensors, [&](std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes) {
        out.write(tensor, offset, bytes);
      })) {
    return false;
  }
  if (!plan.rope_divisors.empty()) {
    out.write(plan.tensors.size(), 0, std::as_bytes(std::span(plan.rope_divisors)));
  }
  out.finish();
  return true;
}

// As config.json has it, or else the folder's. Where it is a path there, it says where a model came from.
std::string model_name(const fs::path& folder) {
  constexpr std::uintmax_t kMaxConfigBytes = 16U << 20U;
  const fs::path file = folder / "config.json";
  const nlohmann::json config = parse_json(read_model_file(file, kMaxConfigBytes), file.string());
  const auto named = config.find(kNameKey);
  if (named != config.end() && named->is_string()) {
    const auto name = named->get<std::string>();
    if (!name.empty() && name.find('/') == std::string::npos) {
      return name;
    }
  }
  const fs::path plain = fs::absolute(folder).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

}  // namespace

std::optional<TensorProgress> write_gguf_files(const fs::path& folder, const GgufTargets& targets,
                                               const WantedTypes& wanted, const ConvertSettings& settings,
                                               bool is_random) {
  const ModelConfig config = load_model_config(folder);
  const GenerationConfig generation = load_generation_config(folder, config);
  const FolderWeights weights = is_random ? random_folder_weights(config) : folder_weights(folder, config);
  if (wanted.recipe) {
    ModelWeights unused;
    wanted.recipe->require_uses(weight_table(config, unused));
  }
  const ModelTensors plan = plan_files(weights, config, wanted);
  tell_of_other_types(weights, wanted, settings);
  const std::string name = model_name(folder);
  GgufKeys text = text_model_keys(config, generation, name, plan.text.tensors);
  add_tokenizer_keys(text, folder, config, generation);
  std::optional<GgufKeys> projector;
  if (config.vision) {
    require_projector(*config.vision, folder);
    projector = projector_keys(config, folder_images(folder, *config.vision, is_random), name, plan.projector.tensors);
  }
  TensorWriting writing(weights.source, weights.bytes, settings);
  if (!write_file(targets.text, text, plan.text, writing) ||
      (projector && !write_file(targets.projector, *projector, plan.projector, writing))) {
    return std::nullopt;
  }
  return writing.progress();
}

}  // namespace pascaline
