#include "model/text/pre_tokenizer.hpp"

#include <algorithm>
#include <array>

namespace pascaline {
namespace {

// As the tokenizer.json of these models have them.
constexpr std::array<std::string_view, 1> kGpt2Patterns{
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 2> kSmolLmPatterns{R"(\p{N})", kGpt2Patterns[0]};
constexpr std::array<std::string_view, 1> kQwen2Patterns{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kLlama3Patterns{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// No model's own: what GGUF readers take for files whose converter did not know the tokenizer.
constexpr std::array<std::string_view, 4> kUnnamedPatterns{
    R"([\p{P}\$\+<=>\^~\|]+)", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
    R"([0-9][0-9][0-9])"};

constexpr std::array kPreTokenizers{PreTokenizer{"qwen2", kQwen2Patterns, true, false, false},
                                    PreTokenizer{"llama-bpe", kLlama3Patterns, false, true, true},
                                    PreTokenizer{"smollm", kSmolLmPatterns, false, false, false},
                                    PreTokenizer{"gpt-2", kGpt2Patterns, false, false, false},
                                    PreTokenizer{"default", kUnnamedPatterns, false, false, false}};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) noexcept {
  const auto* const found = std::find_if(kPreTokenizers.begin(), kPreTokenizers.end(),
                                         [&](const PreTokenizer& each) { return each.name == name; });
  return found == kPreTokenizers.end() ? nullptr : found;
}

std::span<const PreTokenizer> pre_tokenizers() noexcept { return kPreTokenizers; }

}  // namespace pascaline
