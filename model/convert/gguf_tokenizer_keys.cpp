#include "model/convert/gguf_tokenizer_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/util/foreign_text.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/gguf/projector_config.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/convert/split_forms.hpp"
#include "model/text/chat_template.hpp"
#include "model/text/end_tokens.hpp"
#include "model/text/tokenizer.hpp"
#include "model/text/tokenizer_folder.hpp"
#include "model/text/tokenizer_parts.hpp"

namespace pascaline {
namespace {

// Types of tokens, with the numbers of the format.
constexpr std::int32_t kNormalToken = 1;
constexpr std::int32_t kControlToken = 3;
constexpr std::int32_t kUserToken = 4;
constexpr std::int32_t kUnusedToken = 5;

struct TokenList {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
};

// A place for every row of the embedding; those without a token are unused.
TokenList tokens_of(const TokenizerFile& contents, const JsonNode& root, std::int64_t rows) {
  TokenList list{std::vector<std::string>(static_cast<std::size_t>(rows)),
                 std::vector<std::int32_t>(static_cast<std::size_t>(rows), kUnusedToken)};
  const auto put = [&](std::int64_t id, const std::string& text, std::int32_t type) {
    list.texts.at(static_cast<std::size_t>(id)) = text;
    list.types.at(static_cast<std::size_t>(id)) = type;
  };
  for (const auto& [text, id] : contents.vocabulary) {
    put(id, text, kNormalToken);
  }
  if (root.has_value("added_tokens")) {
    const JsonNode added = root.at("added_tokens");
    for (std::size_t i = 0; i < added.array_size(); ++i) {
      const JsonNode token = added.at(i);
      for (const char* key : {"lstrip", "rstrip", "single_word"}) {
        if (token.has_value(key) && token.at(key).boolean()) {
          pass_over(fmt::format("{}: /added_tokens: '{}' has {}, which a GGUF file cannot say", root.file(),
                                token.at("content").text(), key));
        }
      }
      put(token.at("id").integer(), token.at("content").text(),
          token.at("special").boolean() ? kControlToken : kUserToken);
    }
  }
  for (std::size_t id = 0; id < list.texts.size(); ++id) {
    if (list.types[id] == kUnusedToken) {
      list.texts[id] = fmt::format("[PAD{}]", id);
    }
  }
  return list;
}

void add_ends(GgufKeys& keys, const std::vector<std::int64_t>& ends) {
  constexpr std::array kEndKeys{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                "tokenizer.ggml.eom_token_id"};
  for (std::size_t i = 0; i < std::min(ends.size(), kEndKeys.size()); ++i) {
    keys.integer(kEndKeys[i], static_cast<std::uint32_t>(ends[i]));
  }
}

// Readers know the usual ends of these families by their texts; only others need a key of their own.
std::vector<std::int64_t> ends_to_name(const std::vector<std::int64_t>& ends, const Tokenizer& tokenizer) {
  if (ends.empty()) {
    return {};
  }
  const std::array<TokenId, 1> first{static_cast<TokenId>(ends.front())};
  const std::vector<TokenId> known = gguf_end_tokens(tokenizer, first);
  std::vector<std::int64_t> named{ends.front()};
  std::copy_if(ends.begin() + 1, ends.end(), std::back_inserter(named), [&](std::int64_t end) {
    return std::find(known.begin(), known.end(), static_cast<TokenId>(end)) == known.end();
  });
  return named;
}

// What the folder says of the tokens that begin a text, fill up batches and stand for what is not known:
// generation_config.json first, then config.json by id and tokenizer_config.json by text.
class SpecialTokensOfFolder {
 public:
  SpecialTokensOfFolder(const std::filesystem::path& folder, const Tokenizer& tokenizer)
      : config_((folder / "config.json").string()),
        tokens_((folder / "tokenizer_config.json").string()),
        tokenizer_(&tokenizer) {}

  [[nodiscard]] std::optional<std::int64_t> find(const char* id_key, const char* text_key) const {
    if (const auto id = config_.id(id_key, *tokenizer_)) {
      return id;
    }
    return tokens_.named(text_key, *tokenizer_);
  }

 private:
  // A file that need not be there.
  class File {
   public:
    explicit File(std::string name)
        : name_(std::move(name)),
          content_(std::filesystem::exists(name_) ? parse_json(read_foreign_text(name_), name_)
                                                  : nlohmann::json::object()) {}

    // In a Qwen3-VL's file it stands with the text model.
    [[nodiscard]] std::optional<std::int64_t> id(const char* key, const Tokenizer& tokenizer) const {
      const JsonNode root(content_, name_);
      if (root.has_value("text_config") && root.at("text_config").has_value(key)) {
        return checked(root.at("text_config").at(key), tokenizer);
      }
      return root.has_value(key) ? std::optional(checked(root.at(key), tokenizer)) : std::nullopt;
    }
    // A text, or an object that describes the token.
    [[nodiscard]] std::optional<std::int64_t> named(const char* key, const Tokenizer& tokenizer) const {
      const JsonNode root(content_, name_);
      if (!root.has_value(key)) {
        return std::nullopt;
      }
      const JsonNode token = root.at(key);
      return tokenizer.find(token.value().is_object() ? token.at("content").text() : token.text());
    }

   private:
    static std::int64_t checked(const JsonNode& node, const Tokenizer& tokenizer) {
      const std::int64_t id = node.integer();
      if (id < 0 || id >= static_cast<std::int64_t>(tokenizer.id_count())) {
        node.fail(fmt::format("token {} is not in the vocabulary of {} tokens", id, tokenizer.id_count()));
      }
      return id;
    }

    std::string name_;
    nlohmann::json content_;
  };

  File config_;
  File tokens_;
  const Tokenizer* tokenizer_;
};

// Also a beginning that texts do not get: a reader would take its own for this kind of tokenizer.
void add_special_tokens(GgufKeys& keys, const std::filesystem::path& folder, const Tokenizer& tokenizer,
                        const GenerationConfig& generation) {
  const SpecialTokensOfFolder named(folder, tokenizer);
  const auto add = [&](const char* key, std::optional<std::int64_t> id) {
    if (id) {
      keys.integer(key, static_cast<std::uint32_t>(*id));
    }
  };
  const std::optional<TokenId> beginning = tokenizer.beginning();
  add("tokenizer.ggml.bos_token_id", beginning              ? std::optional<std::int64_t>(*beginning)
                                     : generation.bos_token ? generation.bos_token
                                                            : named.find("bos_token_id", "bos_token"));
  add("tokenizer.ggml.padding_token_id",
      generation.pad_token ? generation.pad_token : named.find("pad_token_id", "pad_token"));
  add("tokenizer.ggml.unknown_token_id", named.find("unk_token_id", "unk_token"));
  keys.boolean("tokenizer.ggml.add_bos_token", beginning.has_value());
}

// A GGUF file says which tokens stand for images by their texts alone.
void require_image_tokens(const ModelConfig& config, const TokenList& list, const std::filesystem::path& folder) {
  if (!config.vision) {
    return;
  }
  constexpr std::array kKeys{"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id"};
  const VisionConfig& vision = *config.vision;
  const std::array<std::int64_t, 4> ids{vision.image_token, vision.video_token, vision.start_token, vision.end_token};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string_view wanted = kImageTokens[i].text;
    const std::size_t found =
        static_cast<std::size_t>(std::find(list.texts.begin(), list.texts.end(), wanted) - list.texts.begin());
    const bool is_missing = found == list.texts.size();
    if (ids[i] == kNoVideoToken || (is_missing && wanted == kVideoTokenText)) {
      continue;
    }
    if (is_missing || static_cast<std::int64_t>(found) != ids[i]) {
      throw ModelError(
          fmt::format("{}: /{}: token {} is {} in tokenizer.json; a GGUF file can only say that {} is that token",
                      (folder / "config.json").string(), kKeys[i], ids[i],
                      quoted_name(list.texts.at(static_cast<std::size_t>(ids[i]))), wanted));
    }
  }
}

// Without a tokenizer nothing says which tokens stand for images.
void require_released_tokens(const ModelConfig& config, const std::filesystem::path& folder) {
  if (!config.vision) {
    return;
  }
  const VisionConfig& vision = *config.vision;
  const std::array<std::int64_t, 4> ids{vision.image_token, vision.video_token, vision.start_token, vision.end_token};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != kImageTokens[i].released && ids[i] != kNoVideoToken) {
      throw ModelError(
          fmt::format("{}: there is no tokenizer.json, and without one a GGUF file cannot say that token {} "
                      "is {}; add the model's own",
                      folder.string(), ids[i], kImageTokens[i].text));
    }
  }
}

}  // namespace

void add_tokenizer_keys(GgufKeys& keys, const std::filesystem::path& folder, const ModelConfig& config,
                        const GenerationConfig& generation) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    require_released_tokens(config, folder);
    keys.text("tokenizer.ggml.model", "none");
    add_ends(keys, generation.eos_tokens);
    return;
  }
  const std::string name = file.string();
  const auto rows = static_cast<std::size_t>(config.text.vocab);
  const TokenizerFile contents = load_tokenizer_file(file, rows);
  const Tokenizer tokenizer = Tokenizer::of_parts(build_tokenizer(contents, name), name, rows);
  const JsonNode root(contents.settings, name);
  const TokenList list = tokens_of(contents, root, config.text.vocab);
  require_image_tokens(config, list, folder);
  std::vector<std::string> merges;
  merges.reserve(contents.merges.size());
  for (const auto& [left, right] : contents.merges) {
    merges.push_back(fmt::format("{} {}", left, right));
  }
  keys.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", family_of(root).name);
  keys.texts("tokenizer.ggml.tokens", list.texts);
  keys.integers("tokenizer.ggml.token_type", list.types);
  keys.texts("tokenizer.ggml.merges", merges);
  std::vector<std::int64_t> ends = generation.eos_tokens;
  if (ends.empty()) {
    const std::vector<TokenId> named = end_tokens(folder, tokenizer);
    ends.assign(named.begin(), named.end());
  }
  add_ends(keys, ends_to_name(ends, tokenizer));
  add_special_tokens(keys, folder, tokenizer, generation);
  if (const auto chat = find_chat_template(folder)) {
    keys.text("tokenizer.chat_template", chat->text);
  }
}

}  // namespace pascaline
