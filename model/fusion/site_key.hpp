#pragma once

#include <cstddef>

#include "runtime/ops/kernel_problem.hpp"

namespace pascaline {

/// What makes two sites of a model the same problem: the kind of site ("site_decode_mlp") in the role of a kernel,
/// with rows, widths, context and element types. It allocates nothing, and names itself as every other problem.
using SiteKey = ops::KernelProblem;

[[nodiscard]] bool same_site(const SiteKey& a, const SiteKey& b) noexcept;
[[nodiscard]] std::size_t site_hash(const SiteKey& key) noexcept;
/// The dimension's value; throws Error if there is none of that name.
[[nodiscard]] std::int64_t dimension_of(const SiteKey& key, const char* name);
/// The type bound to that name; throws Error if there is none.
[[nodiscard]] ElementType type_of(const SiteKey& key, const char* name);

}  // namespace pascaline
