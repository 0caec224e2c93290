#include "model/checkpoint/gguf/gguf_writer.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <set>

#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::uint32_t kWrittenVersion = 3;
constexpr std::uint64_t kWrittenAlignment = 32;  // where the metadata do not say
constexpr std::size_t kMaxWrittenName = 64;

template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& bytes, std::string_view text) {
  append(bytes, std::uint64_t{text.size()});
  bytes += text;
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kWrittenAlignment - 1) / kWrittenAlignment * kWrittenAlignment;
}

}  // namespace

void GgufKeys::begin(std::string_view key, GgufValueType type) {
  append_text(bytes_, key);
  append(bytes_, static_cast<std::uint32_t>(type));
  ++count_;
}

void GgufKeys::begin_array(std::string_view key, GgufValueType type, std::uint64_t count) {
  begin(key, GgufValueType::array);
  append(bytes_, static_cast<std::uint32_t>(type));
  append(bytes_, count);
}

GgufKeys& GgufKeys::integer(std::string_view key, std::uint32_t value) {
  begin(key, GgufValueType::uint32);
  append(bytes_, value);
  return *this;
}

GgufKeys& GgufKeys::real(std::string_view key, float value) {
  begin(key, GgufValueType::float32);
  append(bytes_, value);
  return *this;
}

GgufKeys& GgufKeys::boolean(std::string_view key, bool value) {
  begin(key, GgufValueType::boolean);
  append(bytes_, static_cast<std::uint8_t>(value));
  return *this;
}

GgufKeys& GgufKeys::text(std::string_view key, std::string_view value) {
  begin(key, GgufValueType::text);
  append_text(bytes_, value);
  return *this;
}

GgufKeys& GgufKeys::integers(std::string_view key, std::span<const std::int32_t> values) {
  begin_array(key, GgufValueType::int32, values.size());
  for (const std::int32_t value : values) {
    append(bytes_, value);
  }
  return *this;
}

GgufKeys& GgufKeys::reals(std::string_view key, std::span<const float> values) {
  begin_array(key, GgufValueType::float32, values.size());
  for (const float value : values) {
    append(bytes_, value);
  }
  return *this;
}

GgufKeys& GgufKeys::booleans(std::string_view key, const std::vector<bool>& values) {
  begin_array(key, GgufValueType::boolean, values.size());
  for (const bool value : values) {
    append(bytes_, static_cast<std::uint8_t>(value));
  }
  return *this;
}

GgufKeys& GgufKeys::texts(std::string_view key, std::span<const std::string> values) {
  begin_array(key, GgufValueType::text, values.size());
  for (const std::string& value : values) {
    append_text(bytes_, value);
  }
  return *this;
}

std::uint64_t GgufTensorForm::bytes() const noexcept {
  const std::int64_t values = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  return static_cast<std::uint64_t>(values / block_values(type) * block_bytes(type));
}

GgufStream::GgufStream(const std::filesystem::path& file, const GgufKeys& keys,
                       std::span<const GgufTensorForm> tensors) {
  std::string head = "GGUF";
  append(head, kWrittenVersion);
  append(head, std::uint64_t{tensors.size()});
  append(head, keys.count());
  head += keys.bytes();
  std::set<std::string_view> names;
  std::uint64_t data = 0;
  for (const GgufTensorForm& tensor : tensors) {
    if (tensor.name.empty() || tensor.name.size() > kMaxWrittenName || !names.insert(tensor.name).second) {
      throw ModelError(fmt::format("{}: cannot write tensor {}: the name is too long for GGUF, or taken", file.string(),
                                   quoted_name(tensor.name)));
    }
    append_text(head, tensor.name);
    append(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t extent : tensor.shape) {
      append(head, extent);
    }
    append(head, static_cast<std::uint32_t>(tensor.type));
    append(head, data);
    extents_.push_back({data, tensor.bytes()});
    data += aligned(tensor.bytes());
  }
  head.resize(aligned(head.size()), '\0');
  for (Extent& extent : extents_) {
    extent.begin += head.size();
  }
  out_.emplace(file, head.size() + data);
  out_->write(0, std::as_bytes(std::span(head)));
}

void GgufStream::write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) const {
  const Extent& extent = extents_.at(index);
  if (offset > extent.bytes || bytes.size() > extent.bytes - offset) {
    throw Error(fmt::format("{} bytes from {} on are not within tensor {} of {} bytes", bytes.size(), offset, index,
                            extent.bytes));
  }
  out_->write(extent.begin + offset, bytes);
}

}  // namespace pascaline
