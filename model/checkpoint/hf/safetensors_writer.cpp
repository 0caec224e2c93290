#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/util/file_draft.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// Places of the tensors, wide types first: with a header of whole 8 bytes everything is aligned.
std::vector<std::size_t> writing_order(std::span<const StoredTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size_of(tensors[a].type) > size_of(tensors[b].type); });
  return order;
}

[[noreturn]] void refuse_tensor(const StoredTensor& tensor, const char* problem, const fs::path& file) {
  throw ModelError(fmt::format("{}: cannot write tensor {}: {}", file.string(), quoted_name(tensor.name), problem));
}

// As many as type and shape need.
std::uint64_t bytes_of(const StoredTensor& tensor, const fs::path& file) {
  const std::int64_t count = element_count(tensor.shape);
  std::uint64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(static_cast<std::uint64_t>(count), size_of(tensor.type), &bytes)) {
    refuse_tensor(tensor, "its shape needs more bytes than there can be", file);
  }
  return bytes;
}

void add_tensor(nlohmann::json& header, const StoredTensor& tensor, std::uint64_t offset, const fs::path& file) {
  if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
    refuse_tensor(tensor, "the name is taken", file);
  }
  header[tensor.name] = {{"dtype", name_of(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {offset, offset + bytes_of(tensor, file)}}};
}

std::string header_text(std::span<const StoredTensor> tensors, const std::vector<std::size_t>& order,
                        const std::map<std::string, std::string>& metadata, const fs::path& file) {
  nlohmann::json header = nlohmann::json::object();
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    add_tensor(header, tensors[i], offset, file);
    offset += bytes_of(tensors[i], file);
  }
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const nlohmann::json::exception&) {
    throw ModelError(fmt::format("{}: cannot write it: a name or its metadata is not UTF-8", file.string()));
  }
}

}  // namespace

void write_safetensors(const fs::path& file, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  for (const StoredTensor& tensor : tensors) {
    if (element_count(tensor.shape) < 0 || tensor.bytes.size() != bytes_of(tensor, file)) {
      refuse_tensor(tensor, "its bytes are not as many as its type and shape need", file);
    }
  }
  const std::vector<std::size_t> order = writing_order(tensors);
  const std::string header = header_text(tensors, order, metadata, file);
  FileDraft draft(file);
  errno = 0;
  std::ofstream out(draft.path(), std::ios::binary | std::ios::trunc);
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const std::size_t i : order) {
    out.write(reinterpret_cast<const char*>(tensors[i].bytes.data()),
              static_cast<std::streamsize>(tensors[i].bytes.size()));
  }
  out.close();
  if (!out) {
    draft.fail(errno);
  }
  draft.complete();
}

SafetensorsStream::SafetensorsStream(const fs::path& file, std::span<const StoredTensor> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : extents_(tensors.size()) {
  const std::vector<std::size_t> order = writing_order(tensors);
  const std::string header = header_text(tensors, order, metadata, file);
  const std::uint64_t length = header.size();
  std::uint64_t bytes = sizeof length + length;
  for (const std::size_t i : order) {
    extents_[i] = {bytes, bytes_of(tensors[i], file)};
    bytes += extents_[i].bytes;
  }
  out_.emplace(file, bytes);
  out_->write(0, std::as_bytes(std::span(&length, 1)));
  out_->write(sizeof length, std::as_bytes(std::span(header)));
}

void SafetensorsStream::write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) const {
  const Extent& extent = extents_.at(index);
  if (offset > extent.bytes || bytes.size() > extent.bytes - offset) {
    throw Error(fmt::format("{} bytes from {} on are not within tensor {} of {} bytes", bytes.size(), offset, index,
                            extent.bytes));
  }
  out_->write(extent.begin + offset, bytes);
}

}  // namespace pascaline
