#include "model/checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/util/descriptor.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  const int code = errno;
  throw ModelError(fmt::format("{}: cannot {} this file: {}", file.string(), what, std::strerror(code)), code);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path file) : path_(std::move(file)) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer. The mapping outlives the descriptor.
  const Descriptor opened(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (opened.get() < 0) {
    fail(path_, "open");
  }
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0) {
    fail(path_, "examine");
  }
  if (!S_ISREG(status.st_mode)) {
    throw ModelError(fmt::format("{}: this is not a regular file", path_.string()), EINVAL);
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return;
  }
  const void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.get(), 0);
  if (address == MAP_FAILED) {
    fail(path_, "map");
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

void MappedFile::read_ahead(std::span<const std::byte> bytes) noexcept {
  // Linux reads no more for one call than a disk takes in one request, which may be as little as this.
  constexpr std::size_t kStep = 128U << 10U;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  for (std::uintptr_t at = begin; at < end; at += kStep) {
    if (::madvise(reinterpret_cast<void*>(at), std::min<std::size_t>(kStep, end - at), MADV_WILLNEED) != 0) {
      return;  // it is only advice
    }
  }
}

void MappedFile::forget(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end) {
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace pascaline
