#include "model/text/tokenizer_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/util/counted.hpp"
#include "core/util/foreign_text.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/text/byte_level.hpp"
#include "model/text/vocabulary.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kDecoderKey = "added_tokens_decoder";
constexpr const char* kExtraKey = "extra_special_tokens";
constexpr const char* kFormerExtraKey = "additional_special_tokens";
// In the order in which new ones get their ids.
constexpr std::array<std::string_view, 7> kNamedKeys{"bos_token", "eos_token", "unk_token", "sep_token",
                                                     "pad_token", "cls_token", "mask_token"};

// A JSON file beside the tokenizer; an empty object if there is none.
class FileBeside {
 public:
  explicit FileBeside(const fs::path& file) : name_(file.string()) {
    if (std::error_code unseen; fs::exists(file, unseen)) {
      const std::string text = read_foreign_text(file);
      content_ = parse_json(text, name_);
      ordered_ = nlohmann::ordered_json::parse(text);
    }
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  ~FileBeside() = default;

  [[nodiscard]] JsonNode root() const { return {content_, name_}; }
  /// Keys of the file, or of the object under a key, in the file's order.
  [[nodiscard]] std::vector<std::string> keys(const char* of = nullptr) const {
    const nlohmann::ordered_json& object = of == nullptr ? ordered_ : ordered_.at(of);
    std::vector<std::string> found;
    for (const auto& member : object.items()) {
      found.push_back(member.key());
    }
    return found;
  }

 private:
  std::string name_;
  json content_ = json::object();
  nlohmann::ordered_json ordered_ = nlohmann::ordered_json::object();
};

// A token as tokenizer.json has it, but for its id, and where it was found.
struct NamedToken {
  json token;
  std::string place;
  bool in_list = false;  // of further special tokens, which say themselves what they are
};

bool flag(const JsonNode& node, const char* key, bool otherwise) {
  return node.has_value(key) ? node.at(key).boolean() : otherwise;
}

json token_of(const std::string& content, bool special) {
  return {{"content", content}, {"single_word", false},   {"lstrip", false},
          {"rstrip", false},    {"normalized", !special}, {"special", special}};
}

// From a text, which is a special token's, or from an object.
json read_token(const JsonNode& node, bool special) {
  if (!node.value().is_object()) {
    return token_of(node.text(), true);
  }
  const bool is_special = flag(node, "special", special);
  json token = token_of(node.at("content").text(), is_special);
  for (const char* key : {"single_word", "lstrip", "rstrip"}) {
    token[key] = flag(node, key, false);
  }
  token["normalized"] = flag(node, "normalized", !is_special);
  return token;
}

std::string place_of(const JsonNode& node) { return node.file() + ": " + node.pointer(); }

// `image_token` and the like also name special tokens, `add_bos_token` does not.
bool names_token(const JsonNode& root, std::string_view key) {
  return key.ends_with("_token") && root.has_value(key) &&
         (root.at(key).value().is_string() || (root.at(key).value().is_object() && root.at(key).has("content")));
}

// The special tokens that a tokenizer's configuration names.
class NamedTokens {
 public:
  void read_config(const FileBeside& file) {
    const JsonNode root = file.root();
    for (const std::string_view key : kNamedKeys) {
      if (root.has_value(key)) {
        put(std::string(key), root.at(key));
      }
    }
    for (const std::string& key : file.keys()) {
      if (names_token(root, key)) {
        put(key, root.at(key));
      }
    }
    const char* const key = root.has_value(kExtraKey) ? kExtraKey : kFormerExtraKey;
    if (root.has_value(key)) {
      read_list(file, key);
    }
  }

  // What it says counts before the configuration, but for its list of further tokens.
  void read_map(const FileBeside& file) {
    const JsonNode root = file.root();
    for (const std::string& key : file.keys()) {
      if (names_token(root, key)) {
        put(key, root.at(key));
      }
    }
    if (root.has_value(kExtraKey)) {
      read_list(file, kExtraKey);
    } else if (list_.empty() && root.has_value(kFormerExtraKey)) {
      read_list(file, kFormerExtraKey);
    }
  }

  /// In the order in which new ones get their ids.
  [[nodiscard]] std::vector<NamedToken> all() const {
    std::vector<NamedToken> found;
    for (const std::string_view key : kNamedKeys) {
      const auto named = std::find_if(named_.begin(), named_.end(), [&](const auto& one) { return one.first == key; });
      if (named != named_.end()) {
        found.push_back(named->second);
      }
    }
    for (const auto& [key, token] : named_) {
      if (std::find(kNamedKeys.begin(), kNamedKeys.end(), key) == kNamedKeys.end()) {
        found.push_back(token);
      }
    }
    found.insert(found.end(), list_.begin(), list_.end());
    return found;
  }

 private:
  void put(const std::string& key, const JsonNode& node) {
    NamedToken token{read_token(node, true), place_of(node)};
    token.token["special"] = true;
    const auto found = std::find_if(named_.begin(), named_.end(), [&](const auto& one) { return one.first == key; });
    if (found != named_.end()) {
      found->second = std::move(token);
    } else {
      named_.emplace_back(key, std::move(token));
    }
  }
  // A list of tokens, or an object that gives each a name.
  void read_list(const FileBeside& file, const char* key) {
    const JsonNode list = file.root().at(key);
    if (list.value().is_object()) {
      for (const std::string& name : file.keys(key)) {
        put(name, list.at(name));
      }
      return;
    }
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      list_.push_back({read_token(list.at(i), true), place_of(list), true});
    }
  }

  std::vector<std::pair<std::string, NamedToken>> named_;
  std::vector<NamedToken> list_;
};

// Adds tokens to those of a tokenizer.json as the Python package tokenizers does.
class TokenAdder {
 public:
  TokenAdder(TokenizerFile& contents, std::size_t embedding_rows)
      : contents_(&contents), rows_(static_cast<std::int64_t>(embedding_rows)) {
    json& added = contents.settings["added_tokens"];
    if (added.is_null()) {
      added = json::array();
    }
    next_ = static_cast<std::int64_t>(contents.vocabulary.size());
    for (std::size_t i = 0; i < added.size(); ++i) {
      const json& token = added[i];
      const bool is_token = token.is_object() && token.contains("content") && token["content"].is_string() &&
                            token.contains("id") && token["id"].is_number_integer();
      const std::int64_t id = is_token ? token["id"].get<std::int64_t>() : -1;
      if (id >= 0 && id < kMaxTokenIds) {  // others are refused by who reads them
        places_.emplace(token["content"].get<std::string>(), i);
        next_ = std::max(next_, id + 1);
      }
    }
  }

  [[nodiscard]] bool has(const std::string& content) const { return places_.count(content) != 0; }
  /// The token of the file, if it has it.
  [[nodiscard]] json* find(const std::string& content) {
    const auto place = places_.find(content);
    return place == places_.end() ? nullptr : &contents_->settings["added_tokens"][place->second];
  }
  [[nodiscard]] bool has_id(std::int64_t id) const {
    const json& added = contents_->settings["added_tokens"];
    return std::any_of(places_.begin(), places_.end(),
                       [&](const auto& place) { return added[place.second]["id"] == id; });
  }

  /// Takes the token over, or its flags if there is one with this content. `id` is the one that it names.
  void put(const json& token, const std::string& place, std::optional<std::int64_t> id = {}) {
    const auto content = token.at("content").get<std::string>();
    if (content.empty()) {
      return;
    }
    json* known = find(content);
    if (known == nullptr) {
      const std::optional<std::int64_t> given = id_for(token, place, content);
      if (!given) {
        return;
      }
      json& added = contents_->settings["added_tokens"];
      places_.emplace(content, added.size());
      added.push_back({{"id", *given}});
      next_ = std::max(next_, *given + 1);
      known = &added.back();
    }
    known->update(token);
    const auto actual = known->at("id").get<std::int64_t>();
    if (id && *id != actual) {
      other_ids_[place].push_back(fmt::format("'{}' is {} instead of {}", content, actual, *id));
    }
  }

  /// Warns of what was not taken over as it was named.
  void tell() const {
    for (const auto& [place, tokens] : other_ids_) {
      pass_over(fmt::format("{}: {} other ids here, as in Transformers: {}", place,
                            counted(tokens.size(), "token") + (tokens.size() == 1 ? " has" : " have"), listed(tokens)));
    }
    for (const auto& [place, tokens] : without_row_) {
      pass_over(fmt::format("{}: {} beyond the model's embedding of {} rows, and ignored: {}", place,
                            counted(tokens.size(), "token") + (tokens.size() == 1 ? " is" : " are"), rows_,
                            listed(tokens)));
    }
    for (const auto& [place, tokens] : as_text_) {
      pass_over(fmt::format("{}: {} ignored, because the vocabulary has the same text as ordinary text: {}", place,
                            counted(tokens.size(), "token") + (tokens.size() == 1 ? " is" : " are"), listed(tokens)));
    }
  }

 private:
  using Told = std::map<std::string, std::vector<std::string>>;

  static std::string listed(const std::vector<std::string>& tokens) {
    constexpr std::size_t kMaxShown = 4;
    const auto shown = static_cast<std::ptrdiff_t>(std::min(tokens.size(), kMaxShown));
    return fmt::format("{}{}", fmt::join(tokens.begin(), tokens.begin() + shown, ", "),
                       tokens.size() > kMaxShown ? fmt::format(" and {} more", tokens.size() - kMaxShown) : "");
  }

  [[nodiscard]] std::optional<std::int64_t> vocabulary_id(const std::string& spelling) const {
    const auto found = std::find_if(contents_->vocabulary.begin(), contents_->vocabulary.end(),
                                    [&](const auto& entry) { return entry.first == spelling; });
    return found == contents_->vocabulary.end() ? std::nullopt : std::optional(found->second);
  }
  // A byte's own token, or what a merge makes.
  [[nodiscard]] bool comes_of_text(const std::string& spelling) const {
    const std::optional<std::string> bytes = bytes_of_spelling(spelling);
    return (bytes && bytes->size() == 1) ||
           std::any_of(contents_->merges.begin(), contents_->merges.end(), [&](const auto& merge) {
             return merge.first.size() + merge.second.size() == spelling.size() && spelling.starts_with(merge.first) &&
                    spelling.ends_with(merge.second);
           });
  }
  // The id of a new token, or nothing if it cannot be one, which is noted.
  [[nodiscard]] std::optional<std::int64_t> id_for(const json& token, const std::string& place,
                                                   const std::string& content) {
    const std::optional<std::int64_t> known = vocabulary_id(content);
    const std::string spelling = spelling_of_bytes(content);
    const bool is_others_text = spelling != content && vocabulary_id(spelling);
    if (is_others_text || (known && token.at("special").get<bool>() && comes_of_text(content))) {
      as_text_[place].push_back(fmt::format("'{}'", content));
      return std::nullopt;
    }
    const std::int64_t id = known.value_or(next_);
    if (rows_ != 0 && id >= rows_) {
      without_row_[place].push_back(fmt::format("'{}' would be {}", content, id));
      return std::nullopt;
    }
    return id;
  }

  TokenizerFile* contents_;
  std::int64_t rows_;
  std::int64_t next_ = 0;
  std::map<std::string, std::size_t, std::less<>> places_;  // in added_tokens, by content
  Told other_ids_;
  Told without_row_;
  Told as_text_;
};

std::int64_t read_id(const JsonNode& node, const std::string& key) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0) {
    node.fail("the key is not a token's id");
  }
  return id;
}

void add_decoder_tokens(TokenAdder& adder, const JsonNode& decoder, const std::set<std::string>& special) {
  std::map<std::int64_t, std::string> keys;
  for (const std::string& key : decoder.keys()) {
    keys.emplace(read_id(decoder.at(key), key), key);
  }
  for (const auto& [id, key] : keys) {
    const JsonNode node = decoder.at(key);
    json token = read_token(node, false);
    token["special"] = token["special"].get<bool>() || special.count(token["content"].get<std::string>()) != 0;
    adder.put(token, place_of(decoder), id);
  }
}

// Ids that the tokenizer.json gives to other tokens count for those.
void add_listed_tokens(TokenAdder& adder, const JsonNode& listed, const std::set<std::string>& special) {
  std::map<std::int64_t, std::string> contents;
  for (const std::string& content : listed.keys()) {
    contents.emplace(listed.at(content).integer(), content);
  }
  for (const auto& [id, content] : contents) {
    if (!adder.has(content) && !adder.has_id(id)) {
      adder.put(token_of(content, special.count(content) != 0), listed.file(), id);
    }
  }
}

void tell_of_settings(const JsonNode& config) {
  const auto tell = [&](const char* key, std::string_view instead) {
    if (config.has_value(key) && config.at(key).value() != false) {
      pass_over(fmt::format("{}: this setting is not applied: {}", place_of(config.at(key)), instead));
    }
  };
  tell("add_prefix_space", "texts begin without a space before them");
  tell("split_special_tokens",
       "the special tokens of a chat template become their ids, and those in a user's text are always text");
}

void add_tokens_beside(TokenizerFile& contents, const fs::path& folder, std::size_t embedding_rows) {
  const FileBeside config(folder / "tokenizer_config.json");
  const FileBeside map(folder / "special_tokens_map.json");
  const FileBeside list(folder / "added_tokens.json");
  const bool has_decoder = config.root().has_value(kDecoderKey);
  NamedTokens reader;
  reader.read_config(config);
  if (!has_decoder) {
    reader.read_map(map);
  }
  const std::vector<NamedToken> named = reader.all();
  std::set<std::string> special;         // by their name
  std::set<std::string> special_listed;  // also of the list of further ones
  for (const NamedToken& one : named) {
    const auto content = one.token.at("content").get<std::string>();
    special_listed.insert(content);
    if (!one.in_list) {
      special.insert(content);
    }
  }
  TokenAdder adder(contents, embedding_rows);
  if (has_decoder) {
    add_decoder_tokens(adder, config.root().at(kDecoderKey), special);
  } else {
    add_listed_tokens(adder, list.root(), special_listed);
    for (const std::string& content : special) {
      if (json* token = adder.find(content)) {
        (*token)["special"] = true;
      }
    }
  }
  for (const NamedToken& one : named) {
    if (!adder.has(one.token.at("content").get<std::string>())) {
      adder.put(one.token, one.place);
    }
  }
  adder.tell();
  tell_of_settings(config.root());
}

}  // namespace

TokenizerFile load_tokenizer_file(const fs::path& file, std::size_t embedding_rows) {
  TokenizerFile contents = read_tokenizer_file(read_foreign_text(file), file.string());
  const json& settings = contents.settings;
  const bool has_tokens = settings.contains("added_tokens") && !settings["added_tokens"].is_null();
  if (settings.is_object() && (!has_tokens || settings["added_tokens"].is_array())) {
    add_tokens_beside(contents, file.parent_path(), embedding_rows);
  }
  return contents;
}

}  // namespace pascaline
