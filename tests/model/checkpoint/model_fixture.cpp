#include "tests/model/checkpoint/model_fixture.hpp"

#include <cstring>

#include "core/util/paths.hpp"

namespace pascaline::testing {

std::string config_text(const std::string& name) {
  return read_file(std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / (name + ".json"));
}

nlohmann::json config_json(const std::string& name) { return nlohmann::json::parse(config_text(name)); }

ModelConfig config_of(const std::string& name) { return parse_model_config(config_text(name), name); }

std::vector<std::byte> read_all(const WeightSource& source, const TensorSpec& tensor, ElementType type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.elements()) * size_of(type));
  source.read(tensor, type, 0, bytes);
  return bytes;
}

std::vector<OwnedTensor> hashed_tensors(const ModelConfig& config, StoredType type) {
  const ElementType element = type == StoredType::F32   ? ElementType::float32
                              : type == StoredType::F16 ? ElementType::float16
                                                        : ElementType::bfloat16;
  const WeightSource source = hash_weights(config);
  std::vector<OwnedTensor> tensors;
  for (const TensorSpec& spec : source.tensors()) {
    tensors.push_back({{spec.name, type, spec.shape, {}}, read_all(source, spec, element)});
  }
  return tensors;
}

void write_tensors(const std::filesystem::path& file, const std::vector<OwnedTensor>& tensors) {
  std::vector<StoredTensor> views;
  for (const OwnedTensor& owned : tensors) {
    views.push_back(owned.tensor);
    views.back().bytes = owned.bytes;
  }
  write_safetensors(file, views, {{"format", "pt"}});
}

std::string safetensors_bytes(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\x01');
}

std::string complaint_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ModelError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace pascaline::testing
