#include "model/convert/to_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/gguf/gguf_generation.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/stored_formats.hpp"
#include "model/convert/config_files.hpp"
#include "model/convert/tokenizer_files.hpp"
#include "model/session/gguf_images.hpp"
#include "model/session/gguf_text.hpp"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// The tensors of model.safetensors.
struct FolderTensors {
  std::vector<WrittenTensor> tensors;
  std::vector<StoredTensor> forms;
  FormatNotes notes{"GGUF"};
  bool has_formats = false;
};

StoredType stored_number_of(GgufType type) noexcept {
  return type == GgufType::F32 ? StoredType::F32 : type == GgufType::F16 ? StoredType::F16 : StoredType::BF16;
}

FolderTensors folder_tensors(const Checkpoint& checkpoint, std::optional<GgufType> numbers) {
  FolderTensors plan;
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const TensorSpec& spec = checkpoint.tensors()[i];
    const GgufType type = written_type(spec, stored_kind(checkpoint, i), {numbers, {}}, false);
    plan.tensors.push_back({i, type, {}});
    const auto format = format_of(type);
    if (!format) {
      plan.forms.push_back({spec.name, stored_number_of(type), spec.shape, {}});
      continue;
    }
    const std::int64_t rows = spec.shape.front();
    const auto row_bytes = static_cast<std::int64_t>(file_row_bytes(*format, spec.elements() / rows));
    plan.forms.push_back({spec.name, StoredType::U8, {rows, row_bytes}, {}});
    plan.notes.add(spec.name, *format, spec.shape);
    plan.has_formats = true;
  }
  return plan;
}

// What Transformers calls the numbers that most matrices are stored as.
std::string_view usual_numbers(const Checkpoint& checkpoint, const FolderTensors& plan) {
  std::map<GgufType, std::size_t> counts;
  for (const WrittenTensor& tensor : plan.tensors) {
    const bool is_matrix = checkpoint.tensors()[tensor.index].kind == TensorKind::matrix;
    counts[tensor.type] += is_matrix && block_values(tensor.type) == 1 ? 1 : 0;
  }
  const auto usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  switch (usual->first) {
    case GgufType::F16:
      return "float16";
    case GgufType::BF16:
      return "bfloat16";
    default:
      return "float32";
  }
}

void write_tokens(const TokenizerFiles& files, const fs::path& folder) {
  write_file_atomically(folder / "tokenizer.json", files.tokenizer);
  write_file_atomically(folder / "tokenizer_config.json", files.config);
  if (files.chat_template) {
    write_file_atomically(folder / "chat_template.jinja", *files.chat_template);
  }
}

}  // namespace

std::optional<TensorProgress> write_model_files(const ModelLocation& model, const fs::path& folder,
                                                std::optional<GgufType> numbers, const ConvertSettings& settings) {
  ModelConfig config = load_model_config(model);
  if (config.family == ModelFamily::qwen3_vl && !config.vision) {
    throw ModelError(
        fmt::format("{}: the folder of a Qwen3-VL has its vision tower in it; give the file of its projector "
                    "with --mmproj",
                    model.path.string()));
  }
  Checkpoint checkpoint = Checkpoint::open(model, config);
  const GgufFile text = GgufFile::open(model.path);
  const FolderTensors plan = folder_tensors(checkpoint, numbers);
  GenerationConfig generation = read_gguf_generation(text.metadata(), config);
  if (const auto files = tokenizer_files(text.metadata(), config.text.vocab)) {
    generation.eos_tokens = files->ends;
    write_tokens(*files, folder);
  }
  if (generation.recommended.any()) {
    write_file_atomically(folder / "generation_config.json", generation_config_text(generation));
  } else {  // such a file without them would mean greedy answers
    config.eos_tokens = generation.eos_tokens;
  }
  const std::string name = text.metadata().description("general.name");
  try {
    write_file_atomically(folder / "config.json",
                          config_text(config, generation, usual_numbers(checkpoint, plan), name));
  } catch (const ModelError& error) {  // what only a GGUF file can say
    throw ModelError(fmt::format("{}: {}", model.path.string(), error.what()));
  }
  if (config.vision) {
    const GgufFile projector = GgufFile::open(model.projector);
    write_file_atomically(folder / "preprocessor_config.json",
                          preprocessor_config_text(gguf_preprocessor(projector.metadata(), *config.vision)));
  }
  std::vector<std::uint64_t> stored_bytes;
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    stored_bytes.push_back(checkpoint.stored(i).bytes.size());
  }
  const WeightSource source = checkpoint_weights(std::move(checkpoint));
  TensorWriting writing(source, std::move(stored_bytes), settings);
  SafetensorsStream out(
      folder / "model.safetensors", plan.forms,
      plan.has_formats ? plan.notes.metadata() : std::map<std::string, std::string>{{"format", "pt"}});
  writing.add_file(out.bytes());
  if (!writing.write(plan.tensors, [&](std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes) {
        out.write(tensor, offset, bytes);
      })) {
    return std::nullopt;
  }
  out.finish();
  return writing.progress();
}

}  // namespace pascaline
