#include "model/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/gguf/gguf_weights.hpp"
#include "model/checkpoint/gguf/projector_weights.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/model_files.hpp"
#include "model/checkpoint/stored_formats.hpp"
#include "model/checkpoint/tensor_names.hpp"
#include "model/checkpoint/tied_head.hpp"

namespace pascaline {
namespace {

// Names by what is wrong with them.
struct Problems {
  std::vector<std::string> quantised;
  std::vector<std::string> unknown;
  std::vector<std::string> doubled;
  std::vector<std::string> missing;
  std::vector<std::string> misshapen;
  std::vector<std::string> mistyped;
};

std::string told(const std::vector<std::string>& names, const char* what) {
  return names.empty() ? "" : fmt::format("; {} {}: {}", names.size(), what, quoted_names(names));
}

void throw_if_any(const Problems& problems, const std::filesystem::path& folder) {
  if (!problems.quantised.empty()) {
    throw ModelError(fmt::format(
        "{}: this is a quantized checkpoint ({} such as {}), which is not supported; "
        "take the bfloat16 checkpoint",
        folder.string(), counted(problems.quantised.size(), "tensor"), quoted_name(problems.quantised.front())));
  }
  const std::string text = told(problems.missing, "missing") + told(problems.unknown, "unknown") +
                           told(problems.doubled, "there twice") + told(problems.misshapen, "of another shape") +
                           told(problems.mistyped, "of a type other than F32, F16 and BF16");
  if (!text.empty()) {
    throw ModelError(
        fmt::format("{}: the tensors are not those of the model that config.json describes{}", folder.string(), text));
  }
}

bool is_packed(StoredType type) noexcept {
  return type == StoredType::U8 || type == StoredType::I8 || type == StoredType::F8_E4M3 ||
         type == StoredType::F8_E5M2 || type == StoredType::I32 || type == StoredType::U32;
}

// Tensors of a folder under their official names.
class Matching {
 public:
  Matching(const std::vector<TensorSpec>& specs, const ModelConfig& config)
      : specs_(&specs),
        family_(config.family),
        quantization_(config.quantization),
        stored_(specs.size()),
        formats_(specs.size()) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      index_.emplace(specs[i].name, i);
    }
    if (config.text.tied) {
      spare_head_ = TensorSpec{std::string(kHeadTensor), {config.text.vocab, config.text.hidden}};
    }
  }

  void add(const Safetensors& file) {
    const bool has_notes = FormatNotes::are_in(file);
    for (const StoredTensor& tensor : file.tensors()) {
      add(file, tensor, has_notes);
    }
  }

  [[nodiscard]] std::vector<const StoredTensor*> finish(const std::filesystem::path& folder) {
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      if (stored_[i] == nullptr && is_embedding_tensor((*specs_)[i].name)) {
        stored_[i] = head_of_tied_;  // tied weights may be stored under either name
      }
      if (stored_[i] == nullptr) {
        problems_.missing.push_back((*specs_)[i].name);
      }
    }
    throw_if_any(problems_, folder);
    return std::move(stored_);
  }
  [[nodiscard]] std::vector<std::optional<StoredFormat>> formats() { return std::move(formats_); }

  // Brings parts of quantized matrices together, before `finish`. Throws ModelError that names a part that is missing
  // or of another form.
  [[nodiscard]] std::vector<MatrixParts> join_parts(const std::filesystem::path& folder) {
    std::vector<MatrixParts> joined(specs_->size());
    for (const auto& [name, parts] : parts_) {
      const auto found = index_.find(name);
      if (name == spare_head_.name) {
        continue;
      }
      if (found == index_.end()) {
        problems_.unknown.push_back(name);
        continue;
      }
      const TensorSpec& spec = (*specs_)[found->second];
      if (stored_[found->second] != nullptr) {
        problems_.doubled.push_back(name);
        continue;
      }
      if (const std::string fault = fault_of_parts(parts, spec, quantization_); !fault.empty()) {
        throw ModelError(fmt::format("{}: {}", folder.string(), fault));
      }
      stored_[found->second] = parts.codes;
      joined[found->second] = parts;
      if (quantization_ == FolderQuantization::awq) {
        formats_[found->second] = StoredFormat{ElementType::int4_g128, {}};
      }
    }
    return joined;
  }

 private:
  void add(const Safetensors& file, const StoredTensor& tensor, bool has_notes) {
    if (const auto part = part_of_matrix(tensor, quantization_)) {
      const StoredTensor*& place = parts_[official_tensor_name(part->matrix, family_)].of(part->part);
      if (place != nullptr) {
        problems_.doubled.push_back(tensor.name);
      }
      place = &tensor;
      return;
    }
    if (is_quantisation_tensor(tensor.name)) {
      problems_.quantised.push_back(tensor.name);
      return;
    }
    const std::string name = official_tensor_name(tensor.name, family_);
    if (name == spare_head_.name) {
      spare_heads_ += 1;
      if (spare_heads_ > 1) {
        problems_.doubled.push_back(tensor.name);
      }
      check(tensor, spare_head_);
      head_of_tied_ = &tensor;
      return;
    }
    if (name.ends_with(".rotary_emb.inv_freq")) {
      return;  // older files hold what the configuration gives
    }
    const auto found = index_.find(name);
    if (found == index_.end()) {
      problems_.unknown.push_back(tensor.name);
      return;
    }
    if (stored_[found->second] != nullptr) {
      problems_.doubled.push_back(tensor.name);
      return;
    }
    stored_[found->second] = &tensor;
    const TensorSpec& spec = (*specs_)[found->second];
    if (has_notes) {
      formats_[found->second] = FormatNotes::format_of(file, tensor, spec);
      if (tensor.type == StoredType::U8 && !formats_[found->second]) {
        throw ModelError(fmt::format("{}: tensor {}: it is of U8, and the metadata has no format for it",
                                     file.path().string(), quoted_name(tensor.name)));
      }
    }
    if (tensor.type != StoredType::U8 || !formats_[found->second]) {
      check(tensor, spec);
    }
  }

  void check(const StoredTensor& tensor, const TensorSpec& spec) {
    if (is_packed(tensor.type)) {
      problems_.quantised.push_back(tensor.name);
    } else if (tensor.type != StoredType::F32 && tensor.type != StoredType::F16 && tensor.type != StoredType::BF16) {
      problems_.mistyped.push_back(fmt::format("{} ({})", tensor.name, name_of(tensor.type)));
    } else if (tensor.shape != spec.shape) {
      problems_.misshapen.push_back(fmt::format("{} [{}] instead of [{}]", tensor.name, fmt::join(tensor.shape, ", "),
                                                fmt::join(spec.shape, ", ")));
    }
  }

  const std::vector<TensorSpec>* specs_;
  ModelFamily family_;
  FolderQuantization quantization_;
  std::map<std::string, std::size_t> index_;
  std::map<std::string, MatrixParts> parts_;  // of quantized matrices, by their official names
  std::vector<const StoredTensor*> stored_;
  std::vector<std::optional<StoredFormat>> formats_;
  TensorSpec spare_head_;  // empty if the head is the model's own
  int spare_heads_ = 0;
  const StoredTensor* head_of_tied_ = nullptr;
  Problems problems_;
};

// The weights of a text model and its projector, in the order of `specs`.
std::vector<GgufWeight> match_files(const GgufFile& text, const std::optional<GgufFile>& projector,
                                    const std::vector<TensorSpec>& specs, const ModelConfig& config) {
  std::vector<TensorSpec> of_text;
  std::vector<TensorSpec> of_tower;
  for (const TensorSpec& spec : specs) {
    (projector && spec.name.starts_with(kVisionPrefix) ? of_tower : of_text).push_back(spec);
  }
  std::vector<GgufWeight> texts = match_gguf_text_weights(text, of_text, config);
  std::vector<GgufWeight> towers;
  if (projector) {
    towers = match_projector_weights(*projector, of_tower, *config.vision);
  }
  std::vector<GgufWeight> all;
  auto next_text = texts.begin();
  auto next_tower = towers.begin();
  for (const TensorSpec& spec : specs) {
    all.push_back(std::move(projector && spec.name.starts_with(kVisionPrefix) ? *next_tower++ : *next_text++));
  }
  return all;
}

}  // namespace

Checkpoint Checkpoint::open(const ModelLocation& model, const ModelConfig& config) {
  if (is_gguf_path(model.path)) {
    return open_gguf(model, config);
  }
  const std::filesystem::path& folder = model.path;
  Checkpoint checkpoint;
  checkpoint.files_ = open_model_files(folder);
  checkpoint.specs_ = required_tensors(config);
  Matching matching(checkpoint.specs_, config);
  for (const Safetensors& file : checkpoint.files_) {
    matching.add(file);
    checkpoint.recipe_ = checkpoint.recipe_.empty() ? FormatNotes::recipe_of(file) : checkpoint.recipe_;
  }
  checkpoint.quantization_ = config.quantization;
  if (config.quantization != FolderQuantization::none) {
    checkpoint.parts_ = matching.join_parts(folder);
    const RowCoding coding = config.quantization == FolderQuantization::awq ? RowCoding::awq : RowCoding::fp8;
    for (const MatrixParts& parts : checkpoint.parts_) {
      checkpoint.codings_.push_back(parts.codes == nullptr ? RowCoding::format : coding);
    }
  }
  checkpoint.stored_ = matching.finish(folder);
  checkpoint.formats_ = matching.formats();
  checkpoint.has_formats_ = std::any_of(checkpoint.formats_.begin(), checkpoint.formats_.end(),
                                        [](const auto& format) { return format.has_value(); });
  if (config.quantization == FolderQuantization::awq && checkpoint.has_formats_) {
    checkpoint.recipe_ = "AWQ";
  }
  checkpoint.join_types(config);
  return checkpoint;
}

Checkpoint Checkpoint::open_gguf(const ModelLocation& model, const ModelConfig& config) {
  Checkpoint checkpoint;
  checkpoint.specs_ = required_tensors(config);
  checkpoint.gguf_ = GgufFile::open(model.path);
  if (config.vision) {
    checkpoint.projector_ = GgufFile::open(model.projector);
  }
  for (GgufWeight& weight : match_files(*checkpoint.gguf_, checkpoint.projector_, checkpoint.specs_, config)) {
    checkpoint.gguf_tensors_.push_back(std::move(weight.tensor));
    checkpoint.own_bytes_.push_back(std::move(weight.bytes));
    checkpoint.has_formats_ = checkpoint.has_formats_ || weight.format;
    checkpoint.formats_.push_back(weight.format);
    checkpoint.orders_.push_back(weight.order);
  }
  for (const StoredTensor& tensor : checkpoint.gguf_tensors_) {
    checkpoint.stored_.push_back(&tensor);
  }
  checkpoint.recipe_ = checkpoint.has_formats_ ? "GGUF" : "";
  checkpoint.join_types(config);
  return checkpoint;
}

void Checkpoint::join_types(const ModelConfig& config) {
  ModelWeights unused;
  std::size_t first = 0;
  for (const WeightEntry& weight : weight_table(config, unused)) {
    const std::size_t end = first + weight.tensors.size();
    std::set<ElementType> types;
    for (std::size_t i = first; i < end; ++i) {
      types.insert(kept_type(i, ElementType::bfloat16));
    }
    if (weight.kind() == TensorKind::matrix && types.size() > weight.most_matrices) {
      const bool are_packed = std::all_of(types.begin(), types.end(), is_packed_format);
      const ElementType type = are_packed                             ? ElementType::q8_0
                               : types.contains(ElementType::float32) ? ElementType::float32
                                                                      : ElementType::float16;
      for (std::size_t i = first; i < end; ++i) {
        joined_types_[i] = type;
      }
    }
    first = end;
  }
}

ElementType Checkpoint::kept_type(std::size_t index, ElementType bfloat) const {
  if (const auto joined = joined_types_.find(index); joined != joined_types_.end()) {
    return joined->second;
  }
  if (formats_.at(index)) {
    return formats_[index]->type;
  }
  switch (stored_[index]->type) {
    case StoredType::F32:
      return ElementType::float32;
    case StoredType::BF16:
      return bfloat;
    default:
      return ElementType::float16;
  }
}

StoredMatrix Checkpoint::matrix(std::size_t index) const {
  const TensorSpec& spec = specs_[index];
  return {
      &stored(index), formats_[index].value_or(StoredFormat()),      spec.elements() / spec.shape.front(), order(index),
      coding(index),  parts_.empty() ? MatrixParts() : parts_[index]};
}

void Checkpoint::read_file_row(std::size_t index, std::int64_t row, std::span<std::byte> out) const {
  pascaline::read_file_row(matrix(index), row, out);
}

std::filesystem::path Checkpoint::file_of(std::size_t index) const {
  if (gguf_) {
    return projector_ && specs_[index].name.starts_with(kVisionPrefix) ? projector_->path() : gguf_->path();
  }
  const StoredTensor* const tensor = stored_.at(index);
  const auto found = std::find_if(files_.begin(), files_.end(), [&](const Safetensors& file) {
    return std::any_of(file.tensors().begin(), file.tensors().end(),
                       [&](const StoredTensor& each) { return &each == tensor; });
  });
  return found->path();
}

std::string Checkpoint::where(std::size_t index) const {
  return fmt::format("{}: tensor {}", file_of(index).string(), quoted_name(stored(index).name));
}

void Checkpoint::read(std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) const {
  try {
    read_values(index, type, first, out);
  } catch (const ModelError& error) {
    throw ModelError(fmt::format("{}: {}", file_of(index).string(), error.what()));
  }
}

void Checkpoint::read_values(std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) const {
  const StoredTensor& tensor = stored(index);
  const std::int64_t columns = specs_[index].elements() / specs_[index].shape.front();
  const RowOrder rows = order(index);
  if (tensor.type == StoredType::U8 || coding(index) != RowCoding::format) {
    read_matrix(matrix(index), first, type, out);
    return;
  }
  if (rows.head_rows == 0) {
    read_weights(tensor, first, type, out);
    return;
  }
  while (!out.empty()) {
    const std::int64_t inside = first % columns;
    const std::size_t bytes = std::min(out.size(), static_cast<std::size_t>(columns - inside) * size_of(type));
    read_weights(tensor, rows.place_of(first / columns) * columns + inside, type, out.first(bytes));
    first += static_cast<std::int64_t>(bytes / size_of(type));
    out = out.subspan(bytes);
  }
}

void Checkpoint::forget(std::size_t index) const noexcept {
  if (index >= own_bytes_.size() || own_bytes_[index].empty()) {  // else it is not mapped
    MappedFile::forget(stored_[index]->bytes);
  }
}

std::int64_t Checkpoint::stored_bytes() const noexcept {
  std::int64_t bytes = 0;
  for (const StoredTensor* tensor : stored_) {
    bytes += static_cast<std::int64_t>(tensor->bytes.size());
  }
  for (const MatrixParts& parts : parts_) {
    bytes += static_cast<std::int64_t>((parts.scales == nullptr ? 0 : parts.scales->bytes.size()) +
                                       (parts.zeros == nullptr ? 0 : parts.zeros->bytes.size()));
  }
  return bytes;
}

WeightRecipe stored_recipe(const Checkpoint& checkpoint, ElementType bfloat) {
  std::map<ElementType, std::vector<std::string>> names;
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    if (checkpoint.tensors()[i].kind == TensorKind::matrix) {
      names[checkpoint.kept_type(i, bfloat)].push_back(checkpoint.tensors()[i].name);
    }
  }
  const auto usual = std::max_element(names.begin(), names.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::vector<WeightRecipe::Rule> rules;
  for (const auto& [type, tensors] : names) {
    for (std::size_t i = 0; type != usual->first && i < tensors.size(); ++i) {
      rules.push_back({tensors[i], type});
    }
  }
  rules.push_back({"*", usual->first});
  const std::string name = checkpoint.recipe().empty() ? std::string("own formats") : clean_line(checkpoint.recipe());
  return {fmt::format("{} (as stored)", name), std::move(rules)};
}

}  // namespace pascaline
