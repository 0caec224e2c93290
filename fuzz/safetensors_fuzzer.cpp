#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_table.hpp"

/// Any bytes are a safetensors file, whose tensors take each byte of the data once, or a ModelError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const pascaline::SafetensorsContent content = pascaline::parse_safetensors(bytes, "fuzz.safetensors");
    const std::byte* next = content.tensors.empty() ? nullptr : content.tensors.front().bytes.data();
    for (const pascaline::StoredTensor& tensor : content.tensors) {
      const auto needed = pascaline::element_count(tensor.shape) * static_cast<std::int64_t>(size_of(tensor.type));
      if (tensor.bytes.data() != next || static_cast<std::int64_t>(tensor.bytes.size()) != needed) {
        std::abort();
      }
      next += tensor.bytes.size();
    }
    if (next != nullptr && next != bytes.data() + bytes.size()) {
      std::abort();
    }
  } catch (const pascaline::ModelError&) {
  }
  return 0;
}
