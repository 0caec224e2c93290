#include "core/file_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "core/error.hpp"
#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::size_t kMaxHashDigits = 64;
constexpr std::size_t kLongestName = 255;

/// What an option's value may be.
enum class ValueKind : std::uint8_t { none, number, word, versions, kernel, nothing_used };

struct AllowedOption {
  std::string_view name;
  ValueKind kind;
};

// An option that names a folder, a file, a library or a host must never be added here.
constexpr std::array kAllowed{AllowedOption{"--devices", ValueKind::word},
                              AllowedOption{"--target", ValueKind::word},
                              AllowedOption{"--nvrtc", ValueKind::versions},
                              AllowedOption{"--kernel", ValueKind::kernel},
                              AllowedOption{"--portfolio", ValueKind::nothing_used},
                              AllowedOption{"--searcher", ValueKind::word},
                              AllowedOption{"--objective", ValueKind::word},
                              AllowedOption{"--time-left", ValueKind::word},
                              AllowedOption{"--tolerate", ValueKind::word},
                              AllowedOption{"--retry-failed", ValueKind::none},
                              AllowedOption{"--warm-cache", ValueKind::none},
                              AllowedOption{"--polite", ValueKind::none},
                              AllowedOption{"--seed", ValueKind::number},
                              AllowedOption{"--trials", ValueKind::number},
                              AllowedOption{"--budget", ValueKind::number},
                              AllowedOption{"--min-gain", ValueKind::number},
                              AllowedOption{"--jobs", ValueKind::number},
                              AllowedOption{"--compile-timeout", ValueKind::number},
                              AllowedOption{"--compile-memory", ValueKind::number},
                              AllowedOption{"--kernel-timeout", ValueKind::number},
                              AllowedOption{"--min-samples", ValueKind::number},
                              AllowedOption{"--max-samples", ValueKind::number},
                              AllowedOption{"--precision", ValueKind::number},
                              AllowedOption{"--sample-budget-ms", ValueKind::number},
                              AllowedOption{"--race-error", ValueKind::number},
                              AllowedOption{"--finalists", ValueKind::number},
                              AllowedOption{"--rounds", ValueKind::number},
                              AllowedOption{"--preheat", ValueKind::number},
                              AllowedOption{"--max-temperature", ValueKind::number},
                              AllowedOption{"--drift", ValueKind::number},
                              AllowedOption{"--pause-limit", ValueKind::number}};

// Whether the text has letters of these sets only, and at least one.
bool consists_of(std::string_view text, std::initializer_list<std::string_view> sets) {
  return !text.empty() && std::ranges::all_of(text, [&](char letter) {
    return std::ranges::any_of(sets, [&](std::string_view set) { return set.find(letter) != std::string_view::npos; });
  });
}

bool is_allowed(std::string_view value, ValueKind kind) {
  switch (kind) {
    case ValueKind::none:
      return value.empty();
    case ValueKind::number:
      return consists_of(value, {kDigits, ".+-esmh"});
    case ValueKind::word:
      return value.size() <= kLongestName && !value.starts_with('-') && consists_of(value, {kDigits, kLetters, "_-:,"});
    case ValueKind::versions:
      return value == "all" || consists_of(value, {kDigits, ".,"});
    case ValueKind::kernel:
      return !why_no_kernel_name(value);
    case ValueKind::nothing_used:
      return value == "none";
  }
  return false;
}

}  // namespace

std::optional<std::string> why_no_file_option(std::string_view option, std::string_view value) {
  const auto allowed = std::ranges::find(kAllowed, option, &AllowedOption::name);
  if (allowed == kAllowed.end()) {
    return "is an option that is not accepted from a file: kernels, libraries, caches, logs and hosts come only from "
           "the command line; give it there if you trust what it names";
  }
  if (!is_allowed(value, allowed->kind)) {
    return fmt::format("has the value '{}', which is not accepted from a file; give it on the command line", value);
  }
  return std::nullopt;
}

std::optional<std::string> why_no_hash(std::string_view text) {
  if (text.size() > kMaxHashDigits || !consists_of(text, {kDigits, "abcdef"})) {
    return fmt::format("is not a hash: a hash has 1 to {} digits, each 0 to 9 or a to f", kMaxHashDigits);
  }
  return std::nullopt;
}

std::optional<std::string> why_no_neighbour(std::string_view name) {
  const bool has_control = std::ranges::any_of(name, [](unsigned char letter) { return letter < 0x20; });
  if (name.empty() || name.starts_with('.') || name.find_first_of("/\\") != std::string_view::npos || has_control) {
    return "is not the name of a file in the same folder";
  }
  return std::nullopt;
}

std::optional<std::string> why_no_host(std::string_view name) {
  if (name.size() > kLongestName || name.starts_with('-') || !consists_of(name, {kDigits, kLetters, "._-@:%[]"})) {
    return "is not the name of a host: give it as host or user@host, or name it in ~/.ssh/config";
  }
  return std::nullopt;
}

FileOptions::FileOptions(OptionWords words) : words_(std::move(words)) {
  for (const auto& [option, value] : words_) {
    if (const auto why = why_no_file_option(option, value)) {
      throw Error(fmt::format("'{}' {}", option, *why));
    }
  }
}

}  // namespace pascaline
