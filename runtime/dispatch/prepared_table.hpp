#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/dispatch/prepared.hpp"

namespace pascaline {

/// Prepared problems by key: an open-addressing table that any number of threads read while one writes. Readers take
/// no lock and allocate nothing; a table that was replaced stays until destruction, since a reader may still be in it.
class PreparedTable {
 public:
  PreparedTable();

  /// The entry with that key, or nullptr.
  [[nodiscard]] const Prepared* find(KernelHandle kernel, std::span<const std::int64_t> dimensions,
                                     std::span<const ElementType> types) const noexcept;
  /// Makes the entry visible to readers; it must outlive the table and have a key of its own. One thread at a time.
  void publish(const Prepared& entry);
  /// Empties it for readers that come later. One thread at a time.
  void clear();
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  using Cell = std::atomic<const Prepared*>;
  struct Cells {
    explicit Cells(std::size_t count) : mask(count - 1), slots(std::make_unique<Cell[]>(count)) {}
    std::size_t mask;  // the count is a power of two
    std::unique_ptr<Cell[]> slots;
  };
  static void insert(Cells& cells, const Prepared& entry) noexcept;

  std::vector<std::unique_ptr<Cells>> generations_;  // the last one is current
  std::atomic<const Cells*> current_;
  std::size_t size_ = 0;
};

}  // namespace pascaline
