#include "model/host_copies.hpp"

#include <cstdint>
#include <span>

#include "model/tensor_memory.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kCopyAlignment = 64;

}  // namespace

HostCopies::Copy& HostCopies::copy_of(DeviceSpan span) {
  for (Copy& copy : copies_) {
    if (copy.there.data == span.data && copy.there.bytes >= span.bytes) {
      return copy;
    }
  }
  Copy& copy = copies_.emplace_back();
  copy.there = span;
  copy.here.resize(span.bytes + kCopyAlignment);
  copy.offset = kCopyAlignment - reinterpret_cast<std::uintptr_t>(copy.here.data()) % kCopyAlignment;
  return copy;
}

void HostCopies::operator()(const char* /*name*/, TensorView& tensor, ops::Use use) {
  const DeviceSpan span = span_of(tensor);
  if (span.bytes == 0) {
    return;
  }
  Copy& copy = copy_of(span);
  const std::span<std::byte> here(copy.here.data() + copy.offset, copy.there.bytes);
  if (ops::is_read(use)) {
    memory_->download({}, here.first(span.bytes), span);
    memory_->synchronize(StreamId{});
  }
  copy.written = copy.written || ops::is_written(use);
  tensor.data = here.data();
}

void HostCopies::bring_back() {
  for (const Copy& copy : copies_) {
    if (copy.written) {
      memory_->upload({}, copy.there, std::span(copy.here).subspan(copy.offset, copy.there.bytes));
    }
  }
  memory_->synchronize(StreamId{});
}

}  // namespace pascaline
