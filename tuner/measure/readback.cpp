#include "tuner/measure/readback.hpp"

#include <algorithm>

namespace pascaline {

Readback::Readback(Device& device) : memory_(&device.memory()), stream_(memory_->make_stream()) {
  for (Piece& piece : pieces_) {
    piece.memory = memory_->allocate_pinned(kPieceBytes);
    piece.copied = memory_->make_event();
  }
}

void Readback::read(const Buffer& from, const Look& look) {
  const DeviceSpan whole{from.data(), from.bytes()};
  const auto size_at = [&](std::size_t offset) { return std::min(kPieceBytes, whole.bytes - offset); };
  const auto start = [&](std::size_t offset) {
    const Piece& piece = pieces_.at(offset / kPieceBytes % pieces_.size());
    const std::size_t size = size_at(offset);
    memory_->download(stream_.id(), piece.memory.bytes().first(size), whole.slice(offset, size));
    memory_->record(piece.copied, stream_.id());
  };
  if (whole.bytes > 0) {
    start(0);
  }
  try {
    for (std::size_t offset = 0; offset < whole.bytes; offset += kPieceBytes) {
      if (offset + kPieceBytes < whole.bytes) {
        start(offset + kPieceBytes);
      }
      const Piece& piece = pieces_.at(offset / kPieceBytes % pieces_.size());
      memory_->synchronize(piece.copied);
      look(piece.memory.bytes().first(size_at(offset)), offset);
    }
  } catch (...) {
    memory_->synchronize(stream_.id());  // what is on its way needs its memory
    throw;
  }
}

void Readback::read_part(const Buffer& from, std::size_t offset, std::span<std::byte> to) {
  const Piece& piece = pieces_.front();
  const std::span<std::byte> place = piece.memory.bytes().first(to.size());
  memory_->download(stream_.id(), place, DeviceSpan{from.data(), from.bytes()}.slice(offset, to.size()));
  memory_->synchronize(stream_.id());
  std::copy(place.begin(), place.end(), to.begin());
}

}  // namespace pascaline
