#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/vision_model.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/gguf/gguf_config.hpp"
#include "model/checkpoint/gguf/projector_config.hpp"
#include "model/checkpoint/model_error.hpp"

namespace {

using pascaline::Checkpoint;
using pascaline::GgufMetadata;
using pascaline::GgufValueType;
using pascaline::ModelConfig;
using pascaline::ModelError;

// A file in memory that each input is written to, named so that it is taken for a GGUF file.
class InputFile {
 public:
  explicit InputFile(const std::string& kind)
      : path_("/dev/shm/pascaline_fuzz_" + std::to_string(::getpid()) + kind + ".gguf") {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  const std::filesystem::path& write(std::string_view data) const {
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, data.data(), data.size(), 0) != static_cast<ssize_t>(data.size())) {
      std::abort();
    }
    return path_;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

template <typename Get>
void try_get(const Get& get) {
  try {
    (void)get();
  } catch (const ModelError&) {
  }
}

// Asks for each value as what it is, and as something else, which differs from key to key.
void ask_for_all(const GgufMetadata& metadata) {
  std::size_t number = 0;
  for (const auto& [key, value] : metadata.values()) {
    const std::string_view name = key;
    if (value.is_array && value.type == GgufValueType::text) {
      try_get([&] { return metadata.texts(name); });
    } else if (value.type == GgufValueType::text) {
      try_get([&] { return metadata.text(name); });
    }
    switch (number++ % 7) {
      case 0:
        try_get([&] { return metadata.integer(name); });
        break;
      case 1:
        try_get([&] { return metadata.find_real(name); });
        break;
      case 2:
        try_get([&] { return metadata.find_boolean(name); });
        break;
      case 3:
        try_get([&] { return metadata.find_text(name); });
        break;
      case 4:
        try_get([&] { return metadata.integers(name); });
        break;
      case 5:
        try_get([&] { return metadata.reals(name); });
        break;
      default:
        try_get([&] { return metadata.booleans(name); });
    }
  }
}

// The text model that projectors are read with.
const std::filesystem::path& text_of_projectors() {
  static const InputFile file("_text");
  static const std::filesystem::path& written = file.write(pascaline::fuzzing::vision_text_model());
  return written;
}

// Every byte of the tensors is read where they are those of a model, or of a model's projector.
void read_model(const std::filesystem::path& file, const GgufMetadata& metadata) {
  const bool is_projector = metadata.text("general.architecture") == pascaline::kProjectorArchitecture;
  const pascaline::ModelLocation model =
      is_projector ? pascaline::ModelLocation(text_of_projectors(), file) : pascaline::ModelLocation(file);
  const ModelConfig config = pascaline::load_model_config(model);
  const Checkpoint checkpoint = Checkpoint::open(model, config);
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    std::vector<float> values(static_cast<std::size_t>(checkpoint.tensors()[i].elements()));
    try_get([&] {
      checkpoint.read(i, pascaline::ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
      return 0;
    });
  }
}

}  // namespace

/// Any bytes are a GGUF file whose tensors lie within it, or a ModelError; whatever is a model's can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFile file("");
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const pascaline::GgufContent content = pascaline::parse_gguf(bytes, "fuzz.gguf");
    for (const pascaline::GgufTensor& tensor : content.tensors) {
      if (tensor.bytes.data() < bytes.data() || tensor.bytes.size() > size ||
          tensor.bytes.data() + tensor.bytes.size() > bytes.data() + size) {
        std::abort();
      }
    }
    ask_for_all(content.metadata);
    if (content.metadata.has("general.architecture")) {
      read_model(file.write({reinterpret_cast<const char*>(data), size}), content.metadata);
    }
  } catch (const ModelError&) {
  }
  return 0;
}
