#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>

#include "core/util/foreign_text.hpp"
#include "core/util/utf8_check.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/weight_table.hpp"

// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
namespace pascaline {
namespace {

constexpr std::uint32_t kGgufVersion = 3;
constexpr std::uint32_t kSwappedVersion = 0x03000000;
constexpr std::uint64_t kMaxGgufKeyBytes = 65535;
constexpr std::uint64_t kMaxGgufNameBytes = 64;
constexpr std::uint32_t kMaxGgufRank = 4;
constexpr std::int64_t kDefaultAlignment = 32;
constexpr std::int64_t kMaxAlignment = 1 << 20;
constexpr const char* kAlignmentKey = "general.alignment";
// The least that a key with its value, and the description of a tensor, take.
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// Bytes of a single value; 0 of texts and arrays, which have no size of their own.
std::size_t size_of_value(GgufValueType type) noexcept {
  static constexpr std::array<std::uint8_t, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, const std::string& file) : all_(bytes), rest_(bytes), file_(&file) {}

  GgufContent parse() {
    read_counts();
    GgufMetadata metadata = read_metadata();
    const std::int64_t alignment = read_alignment(metadata);
    std::vector<GgufTensor> tensors = read_tensors(alignment);
    return {std::move(metadata), std::move(tensors)};
  }

 private:
  // A tensor with where its bytes lie, counted from the beginning of all tensors' bytes.
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t tensor = 0;
  };

  [[noreturn]] void fail(const std::string& problem) const {
    throw ModelError(what_.empty() ? fmt::format("{}: {}", *file_, problem)
                                   : fmt::format("{}: {}: {}", *file_, what_, problem));
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) {
      fail(fmt::format("{} bytes from byte {} on go beyond the {} bytes of the file; it is cut off or damaged", count,
                       all_.size() - rest_.size(), all_.size()));
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  template <typename Number>
  Number number() {
    Number value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  // Descriptions come in any encoding: whoever reads a text checks it.
  std::string_view text() {
    const auto bytes = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A key or a tensor's name.
  std::string_view name(const char* kind, std::uint64_t most) {
    const std::string_view name = text();
    if (!is_utf8(name)) {
      fail(fmt::format("the text {} is not UTF-8", quoted_name(name)));
    }
    if (name.empty() || name.size() > most || name.find('\0') != std::string_view::npos) {
      fail(fmt::format("{} is not possible as {}: 1 to {} bytes, none of them null", quoted_name(name), kind, most));
    }
    return name;
  }

  void read_counts() {
    if (all_.empty()) {
      fail("this file is empty; fetch or convert the model again");
    }
    if (is_lfs_pointer({reinterpret_cast<const char*>(all_.data()), all_.size()})) {
      fail(std::string(kLfsPointer));
    }
    if (all_.size() < kGgufMagic.size() || std::memcmp(all_.data(), kGgufMagic.data(), kGgufMagic.size()) != 0) {
      fail("this is not a GGUF file: it does not begin with the letters GGUF");
    }
    (void)take(kGgufMagic.size());
    const auto version = number<std::uint32_t>();
    if (version == kSwappedVersion) {
      fail("this GGUF file is big-endian, only little-endian files are read; take the usual file of the model");
    }
    if (version != kGgufVersion) {
      fail(fmt::format("GGUF version {} is not read, only version {}; convert the model again", version, kGgufVersion));
    }
    tensor_count_ = number<std::uint64_t>();
    key_count_ = number<std::uint64_t>();
    if (tensor_count_ > rest_.size() / kMinTensorBytes || key_count_ > rest_.size() / kMinKeyBytes) {
      fail(fmt::format("{} tensors and {} keys are more than its {} bytes can describe; it is cut off or damaged",
                       tensor_count_, key_count_, all_.size()));
    }
  }

  GgufMetadata read_metadata() {
    std::map<std::string_view, GgufValue> values;
    for (std::uint64_t i = 0; i < key_count_; ++i) {
      what_ = fmt::format("key number {} of {}", i + 1, key_count_);
      const std::string_view key = name("a key", kMaxGgufKeyBytes);
      what_ = "key " + quoted_name(key);
      if (!values.emplace(key, value()).second) {
        fail("it is there twice");
      }
    }
    what_.clear();
    return {*file_, std::move(values)};
  }

  GgufValueType value_type() {
    const auto type = number<std::uint32_t>();
    if (type > static_cast<std::uint32_t>(GgufValueType::float64)) {
      fail(fmt::format("its type {} is not known", type));
    }
    return static_cast<GgufValueType>(type);
  }

  GgufValue value() {
    const GgufValueType type = value_type();
    if (type == GgufValueType::array) {
      return array();
    }
    if (type == GgufValueType::text) {
      const std::string_view content = text();
      return {type, false, 1, std::as_bytes(std::span(content.data(), content.size()))};
    }
    const GgufValue single{type, false, 1, take(size_of_value(type))};
    check_booleans(single);
    return single;
  }

  GgufValue array() {
    const GgufValueType type = value_type();
    if (type == GgufValueType::array) {
      fail("it is an array of arrays, which no supported model has");
    }
    const auto count = number<std::uint64_t>();
    const std::size_t least = type == GgufValueType::text ? sizeof(std::uint64_t) : size_of_value(type);
    if (count > rest_.size() / least) {
      fail(fmt::format("{} elements go beyond the {} bytes of the file; it is cut off or damaged", count, all_.size()));
    }
    GgufValue value{type, true, count, rest_};
    if (type == GgufValueType::text) {
      for (std::uint64_t i = 0; i < count; ++i) {
        (void)text();
      }
      value.bytes = value.bytes.first(value.bytes.size() - rest_.size());
    } else {
      value.bytes = take(count * least);
      check_booleans(value);
    }
    return value;
  }

  void check_booleans(const GgufValue& value) const {
    if (value.type == GgufValueType::boolean &&
        std::any_of(value.bytes.begin(), value.bytes.end(), [](std::byte byte) { return byte > std::byte{1}; })) {
      fail("a truth value is neither 0 nor 1");
    }
  }

  static std::int64_t read_alignment(const GgufMetadata& metadata) {
    const std::int64_t alignment = metadata.find_integer(kAlignmentKey).value_or(kDefaultAlignment);
    if (alignment < 1 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
      metadata.fail(kAlignmentKey,
                    fmt::format("{} is not a possible alignment: a power of two up to {}", alignment, kMaxAlignment));
    }
    return alignment;
  }

  std::vector<GgufTensor> read_tensors(std::int64_t alignment) {
    std::vector<GgufTensor> tensors;
    std::vector<Extent> extents;
    std::set<std::string_view> names;
    tensors.reserve(tensor_count_);
    extents.reserve(tensor_count_);
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      what_ = fmt::format("tensor number {} of {}", i + 1, tensor_count_);
      GgufTensor& tensor = tensors.emplace_back();
      tensor.name = name("a tensor's name", kMaxGgufNameBytes);
      what_ = "tensor " + quoted_name(tensor.name);
      if (!names.insert(tensor.name).second) {
        fail("it is there twice");
      }
      extents.push_back(describe(tensor, static_cast<std::uint64_t>(alignment)));
      extents.back().tensor = i;
    }
    what_.clear();
    place(tensors, extents, static_cast<std::uint64_t>(alignment));
    return tensors;
  }

  // Reads what stands after the name.
  Extent describe(GgufTensor& tensor, std::uint64_t alignment) {
    const auto rank = number<std::uint32_t>();
    if (rank < 1 || rank > kMaxGgufRank) {
      fail(fmt::format("{} dimensions are not possible (1 to {})", rank, kMaxGgufRank));
    }
    for (std::uint32_t i = 0; i < rank; ++i) {
      tensor.shape.push_back(static_cast<std::int64_t>(number<std::uint64_t>()));
    }
    tensor.type = tensor_type(number<std::uint32_t>());
    const std::int64_t count = element_count(tensor.shape);
    if (count < 1) {
      fail(fmt::format("its extents [{}] are not possible", fmt::join(tensor.shape, ", ")));
    }
    if (tensor.shape.front() % block_values(tensor.type) != 0) {
      fail(fmt::format("rows of {} values are no whole blocks of {}, which have {}", tensor.shape.front(),
                       name_of(tensor.type), block_values(tensor.type)));
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count / block_values(tensor.type), block_bytes(tensor.type), &bytes)) {
      fail(fmt::format("its extents [{}] exceed 63 bits", fmt::join(tensor.shape, ", ")));
    }
    Extent extent;
    extent.begin = number<std::uint64_t>();
    if (extent.begin % alignment != 0) {
      fail(fmt::format("its offset {} is not a multiple of the alignment {}", extent.begin, alignment));
    }
    if (__builtin_add_overflow(extent.begin, static_cast<std::uint64_t>(bytes), &extent.end)) {
      fail(fmt::format("its {} bytes from offset {} on exceed 64 bits", bytes, extent.begin));
    }
    return extent;
  }

  [[nodiscard]] GgufType tensor_type(std::uint32_t number) const {
    const std::vector<GgufType> read = read_gguf_types();
    const auto type = static_cast<GgufType>(number);
    if (std::find(read.begin(), read.end(), type) != read.end()) {
      return type;
    }
    std::vector<std::string_view> known;
    std::transform(read.begin(), read.end(), std::back_inserter(known), [](GgufType each) { return name_of(each); });
    fail(fmt::format("its type {} is not read, only {}; take the model's file in Q8_0, Q4_0 or F16",
                     name_of(type).empty() ? fmt::format("number {}", number) : std::string(name_of(type)),
                     fmt::join(known, ", ")));
  }

  // Gives the tensors their bytes, of which none may be another's.
  void place(std::vector<GgufTensor>& tensors, std::vector<Extent>& extents, std::uint64_t alignment) {
    const std::uint64_t described = all_.size() - rest_.size();
    const std::uint64_t begin = (described + alignment - 1) / alignment * alignment;
    const auto data = begin <= all_.size() ? all_.subspan(begin) : std::span<const std::byte>();
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    const Extent* previous = nullptr;
    for (const Extent& extent : extents) {
      GgufTensor& tensor = tensors[extent.tensor];
      what_ = "tensor " + quoted_name(tensor.name);
      if (extent.end > data.size()) {
        fail(fmt::format("its bytes {} to {} are not within the {} bytes of data; the file may be cut off",
                         extent.begin, extent.end, data.size()));
      }
      if (previous != nullptr && extent.begin < previous->end) {
        fail(fmt::format("its bytes overlap those of tensor {}", quoted_name(tensors[previous->tensor].name)));
      }
      tensor.bytes = data.subspan(extent.begin, extent.end - extent.begin);
      previous = &extent;
    }
  }

  std::span<const std::byte> all_;
  std::span<const std::byte> rest_;
  const std::string* file_;
  std::string what_;  // the key or tensor that is being read
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
};

}  // namespace

GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& file) {
  return GgufParser(bytes, file).parse();
}

}  // namespace pascaline
