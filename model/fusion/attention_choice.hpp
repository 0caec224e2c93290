#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/ops/sparse_mask.hpp"

namespace pascaline {

/// Which keys the decoder's tokens attend to: all before them, those of a pattern, or those of the likeliest blocks.
struct AttentionChoice {
  ops::SparseMask mask = {};  ///< a pattern, if it has a window
  double top_part = 0;        ///< with top-k blocks: of those that there are; 0: none chosen

  [[nodiscard]] bool chooses_blocks() const noexcept { return top_part > 0; }
  [[nodiscard]] bool is_dense() const noexcept { return !mask.is_pattern() && !chooses_blocks(); }
  /// The same in millionths, 1 at least.
  [[nodiscard]] std::int64_t part() const noexcept;
  /// As `parse_attention` reads it: "dense", "window=1024,sinks=64", "strided=8,window=64", "topk=25%".
  [[nodiscard]] std::string name() const;
};

/// `dense`; `window=N[,sinks=M]`; `strided=K[,window=N][,sinks=M][,block=B]` (without a window: one block);
/// `topk=F[,block=B]` with F as in 25% or 0.25. Throws Error that names the text and what does not fit.
[[nodiscard]] AttentionChoice parse_attention(std::string_view text);

/// Throws Error that names what of the choice leaves nothing out of a context of that many tokens, or has too many
/// blocks there.
void check_attention(const AttentionChoice& choice, std::int64_t context);

/// The fewest tokens of which the choice leaves out some.
[[nodiscard]] std::int64_t shortest_sparse(const AttentionChoice& choice) noexcept;

}  // namespace pascaline
