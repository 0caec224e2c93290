#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/util/foreign_text.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxTensors = 1'000'000;
constexpr std::size_t kMaxRank = 16;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  StoredType type;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeName, 15> kTypes{{{StoredType::BOOL, "BOOL", 1},
                                           {StoredType::U8, "U8", 1},
                                           {StoredType::I8, "I8", 1},
                                           {StoredType::F8_E5M2, "F8_E5M2", 1},
                                           {StoredType::F8_E4M3, "F8_E4M3", 1},
                                           {StoredType::I16, "I16", 2},
                                           {StoredType::U16, "U16", 2},
                                           {StoredType::F16, "F16", 2},
                                           {StoredType::BF16, "BF16", 2},
                                           {StoredType::I32, "I32", 4},
                                           {StoredType::U32, "U32", 4},
                                           {StoredType::F32, "F32", 4},
                                           {StoredType::F64, "F64", 8},
                                           {StoredType::I64, "I64", 8},
                                           {StoredType::U64, "U64", 8}}};

const TypeName& entry_of(StoredType type) noexcept { return kTypes[static_cast<std::size_t>(type)]; }

// A tensor with where its bytes lie, counted from the end of the header.
struct Entry {
  StoredTensor tensor;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Takes the parser's events one after the other, so that nothing but what the format allows is ever built, and a name
// that occurs twice is seen.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(&file) {}

  bool null() override { misplaced("null"); }
  bool boolean(bool /*value*/) override { misplaced("a truth value"); }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    misplaced(fmt::format("{}, which is not an integer that fits 64 bits", quoted_name(text)));
  }
  bool binary(binary_t& /*value*/) override { misplaced("binary data"); }

  bool number_integer(number_integer_t value) override {
    fail(fmt::format("{} is negative, but extents and offsets cannot be", value));
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) {
      misplaced(fmt::format("the number {}", value));
    }
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("{} exceeds 63 bits", value));
    }
    std::vector<std::int64_t>& list = place_ == Place::shape ? entry_.tensor.shape : offsets_;
    if (list.size() >= (place_ == Place::shape ? kMaxRank : 2)) {
      fail(place_ == Place::shape ? fmt::format("it has more than {} dimensions", kMaxRank)
                                  : std::string("its data_offsets are more than two"));
    }
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      metadata_[key_] = std::move(value);
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") {
      misplaced("text");
    }
    const auto known =
        std::find_if(kTypes.begin(), kTypes.end(), [&value](const TypeName& type) { return type.name == value; });
    if (known == kTypes.end()) {
      fail(fmt::format("its dtype {} is unknown", quoted_name(value)));
    }
    entry_.tensor.type = known->type;
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::document) {
      place_ = Place::names;
    } else if (place_ == Place::names) {
      place_ = key_ == kMetadata ? Place::metadata : Place::tensor;
      entry_ = {};
      entry_.tensor.name = key_;
      offsets_.clear();
      seen_.clear();
    } else {
      misplaced("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::names) {
      if (!names_.insert(name).second) {
        throw ModelError(fmt::format("{}: the name {} is a duplicate in the header", *file_, quoted_name(name)));
      }
    } else {
      if (place_ == Place::tensor && name != "dtype" && name != "shape" && name != "data_offsets") {
        fail(fmt::format("the key {} is unknown", quoted_name(name)));
      }
      if (!seen_.insert(name).second) {
        fail(fmt::format("the key {} is a duplicate", quoted_name(name)));
      }
    }
    key_ = std::move(name);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      finish_tensor();
    }
    place_ = place_ == Place::names ? Place::end : Place::names;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (place_ != Place::tensor || key_ == "dtype") {
      misplaced("an array");
    }
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& /*error*/) override {
    throw ModelError(fmt::format("{}: the header is not valid JSON in UTF-8 at its byte {}", *file_, position));
  }

  [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }
  [[nodiscard]] std::map<std::string, std::string>& metadata() noexcept { return metadata_; }

 private:
  enum class Place : std::uint8_t { document, names, metadata, tensor, shape, offsets, end };

  [[noreturn]] void fail(const std::string& problem) const {
    const bool within = place_ != Place::document && place_ != Place::names && place_ != Place::end;
    throw ModelError(within ? fmt::format("{}: tensor {}: {}", *file_, quoted_name(entry_.tensor.name), problem)
                            : fmt::format("{}: {}", *file_, problem));
  }
  [[noreturn]] void misplaced(const std::string& what) const {
    fail(fmt::format("the header has {} {}, where a safetensors file has none", what,
                     key_.empty() ? "at its beginning" : "at " + quoted_name(key_)));
  }

  void finish_tensor() {
    for (const char* needed : {"dtype", "shape", "data_offsets"}) {
      if (seen_.find(needed) == seen_.end()) {
        fail(fmt::format("the key '{}' is missing", needed));
      }
    }
    if (offsets_.size() != 2) {
      fail(fmt::format("its data_offsets are {} instead of two", offsets_.size()));
    }
    if (entries_.size() >= kMaxTensors) {
      fail(fmt::format("the header has more than {} tensors", kMaxTensors));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    entries_.push_back(std::move(entry_));
  }

  const std::string* file_;
  Place place_ = Place::document;
  std::string key_;  // the last one read
  Entry entry_;      // the one being read
  std::vector<std::int64_t> offsets_;
  std::unordered_set<std::string> seen_;  // keys of the innermost object
  std::unordered_set<std::string> names_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

void check_extent(const Entry& entry, std::int64_t data_bytes, const std::string& file) {
  const StoredTensor& tensor = entry.tensor;
  const auto fail = [&](const std::string& problem) {
    throw ModelError(fmt::format("{}: tensor {}: {}", file, quoted_name(tensor.name), problem));
  };
  if (entry.begin > entry.end || entry.end > data_bytes) {
    fail(fmt::format("its data_offsets {} to {} are not within the {} bytes of data; the file may be cut off",
                     entry.begin, entry.end, data_bytes));
  }
  const std::int64_t count = element_count(tensor.shape);
  std::int64_t bytes = 0;
  const auto element_bytes = static_cast<std::int64_t>(size_of(tensor.type));
  if (count < 0 || __builtin_mul_overflow(count, element_bytes, &bytes)) {
    fail(fmt::format("its shape [{}] exceeds 63 bits", fmt::join(tensor.shape, ", ")));
  }
  if (bytes != entry.end - entry.begin) {
    fail(fmt::format("{} [{}] needs {} bytes, its data_offsets hold {}", name_of(tensor.type),
                     fmt::join(tensor.shape, ", "), bytes, entry.end - entry.begin));
  }
}

// Sorts the entries and demands that they cover the data without gap or overlap.
void check_layout(std::vector<Entry>& entries, std::int64_t data_bytes, const std::string& file) {
  for (const Entry& entry : entries) {
    check_extent(entry, data_bytes, file);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  std::int64_t covered = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin < covered) {
      throw ModelError(fmt::format("{}: tensor {}: its bytes overlap those of tensor {}", file,
                                   quoted_name(entry.tensor.name), quoted_name(previous->tensor.name)));
    }
    if (entry.begin > covered) {
      throw ModelError(fmt::format("{}: tensor {}: {} bytes before it belong to no tensor", file,
                                   quoted_name(entry.tensor.name), entry.begin - covered));
    }
    covered = entry.end;
    previous = &entry;
  }
  if (covered != data_bytes) {
    throw ModelError(fmt::format("{}: {} bytes at its end belong to no tensor", file, data_bytes - covered));
  }
}

std::string_view header_of(std::span<const std::byte> bytes, const std::string& file) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    throw ModelError(fmt::format("{}: {} bytes are too few for a safetensors file; it is cut off", file, bytes.size()));
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  if (is_lfs_pointer({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    throw ModelError(fmt::format("{}: {}", file, kLfsPointer));
  }
  if (length > kMaxHeaderBytes) {
    throw ModelError(fmt::format("{}: this is not a safetensors file: it would have a header of {} bytes (at most {})",
                                 file, length, kMaxHeaderBytes));
  }
  if (length > bytes.size() - sizeof length) {
    throw ModelError(fmt::format("{}: its header of {} bytes goes beyond the {} bytes of the file; it is cut off", file,
                                 length, bytes.size()));
  }
  return {reinterpret_cast<const char*>(bytes.data() + sizeof length), length};
}

}  // namespace

std::string_view name_of(StoredType type) noexcept { return entry_of(type).name; }

std::size_t size_of(StoredType type) noexcept { return entry_of(type).bytes; }

SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view header = header_of(bytes, file);
  // The parser takes a byte order mark and, as an end, a null character.
  const std::size_t null = header.find('\0');
  if (!header.starts_with('{') || null != std::string_view::npos) {
    throw ModelError(fmt::format(
        "{}: the header is not a JSON object: {}", file,
        null != std::string_view::npos ? "it holds a null character" : "it does not begin with an opening brace"));
  }
  HeaderReader reader(file);
  (void)json::sax_parse(foreign_text(std::string(header), file), &reader);
  const std::span<const std::byte> data = bytes.subspan(sizeof(std::uint64_t) + header.size());
  check_layout(reader.entries(), static_cast<std::int64_t>(data.size()), file);
  SafetensorsContent content;
  content.metadata = std::move(reader.metadata());
  content.tensors.reserve(reader.entries().size());
  for (Entry& entry : reader.entries()) {
    entry.tensor.bytes =
        data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.end - entry.begin));
    content.tensors.push_back(std::move(entry.tensor));
  }
  return content;
}

}  // namespace pascaline
