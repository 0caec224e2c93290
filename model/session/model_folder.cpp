#include "model/session/model_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/gguf/gguf_generation.hpp"
#include "model/requirements.hpp"
#include "model/session/gguf_images.hpp"
#include "model/session/gguf_text.hpp"
#include "model/text/chat_template.hpp"
#include "model/text/end_tokens.hpp"
#include "model/text/known_templates.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kColors = 3;

void check_token(const Tokenizer& tokenizer, std::string_view text, std::int64_t expected, std::string_view key) {
  const std::optional<TokenId> found = tokenizer.find(text);
  if (found && *found != expected) {
    throw Error(
        fmt::format("tokenizer.json has {} as token {}, config.json says {} ({}): the files are of different models; "
                    "take both from one folder",
                    text, *found, expected, key));
  }
}

void check_tokens(const Tokenizer& tokenizer, const VisionConfig& vision) {
  check_token(tokenizer, "<|image_pad|>", vision.image_token, "image_token_id");
  if (vision.video_token != kNoVideoToken) {
    check_token(tokenizer, "<|video_pad|>", vision.video_token, "video_token_id");
  }
  check_token(tokenizer, "<|vision_start|>", vision.start_token, "vision_start_token_id");
  check_token(tokenizer, "<|vision_end|>", vision.end_token, "vision_end_token_id");
}

void check_preprocessor(const PreprocessorConfig& preprocessor, const std::string& file, const VisionConfig& vision) {
  if (preprocessor.patch_size != vision.patch || preprocessor.temporal_patch_size != vision.temporal_patch ||
      preprocessor.merge_size != vision.merge || vision.in_channels != kColors) {
    throw Error(
        fmt::format("{} cuts images of {} colours into patches of {} frames of {} x {} pixels, "
                    "merged {} x {}; config.json has {} colours and patches of {} frames of {} x {}, merged {} x {}: "
                    "take both files from one folder",
                    file, kColors, preprocessor.temporal_patch_size, preprocessor.patch_size, preprocessor.patch_size,
                    preprocessor.merge_size, preprocessor.merge_size, vision.in_channels, vision.temporal_patch,
                    vision.patch, vision.patch, vision.merge, vision.merge));
  }
}

}  // namespace

ModelFolder::ModelFolder(ModelLocation location, ModelParts parts, const std::string& chat_template)
    : location_(std::move(location)), config_(load_model_config(location_)) {
  check_supported(config_, location_);
  if (!chat_template.empty()) {
    given_template_ = chat_template_given(chat_template);
  }
  std::optional<PreprocessorConfig> projectors;  // checked whatever is read
  if (config_.vision && is_gguf_path(path())) {
    projectors = gguf_preprocessor(GgufFile::open(location_.projector).metadata(), *config_.vision);
  }
  if (parts == ModelParts::numbers) {
    generation_.eos_tokens = config_.eos_tokens;
    return;
  }
  if (is_gguf_path(path())) {
    read_gguf_text();
    preprocessor_ = projectors;
    return;
  }
  generation_ = load_generation_config(path(), config_);
  const auto is_wanted = [&](const std::filesystem::path& file) {
    return parts == ModelParts::all || (parts == ModelParts::present && std::filesystem::exists(file));
  };
  if (parts == ModelParts::words || is_wanted(path() / "tokenizer.json")) {
    if (!given_template_ && config_.family != ModelFamily::llama && parts != ModelParts::words) {
      (void)this->chat_template();  // must be a known one
    }
    tokenizer_ = Tokenizer::load(path() / "tokenizer.json", static_cast<std::size_t>(config_.text.vocab));
    beginning_ = tokenizer_->beginning();
    if (config_.vision) {
      check_tokens(*tokenizer_, *config_.vision);
    }
    if (generation_.eos_tokens.empty()) {
      const std::vector<TokenId> ends = end_tokens(path(), *tokenizer_);
      generation_.eos_tokens.assign(ends.begin(), ends.end());
    }
  }
  if (!config_.vision || parts == ModelParts::words) {
    return;
  }
  if (const std::filesystem::path file = preprocessor_file(path()); is_wanted(file)) {
    preprocessor_ = read_preprocessor_config(file);
    check_preprocessor(*preprocessor_, file.filename().string(), *config_.vision);
  }
}

void ModelFolder::read_gguf_text() {
  const GgufFile file = GgufFile::open(path());
  generation_ = read_gguf_generation(file.metadata(), config_);
  if (!has_gguf_tokenizer(file.metadata())) {
    return;
  }
  GgufTokenizer text = load_gguf_tokenizer(file.metadata(), static_cast<std::size_t>(config_.text.vocab));
  tokenizer_ = std::move(text.tokenizer);
  if (text.adds_bos) {
    beginning_ = text.bos;
  }
  generation_.eos_tokens.assign(text.ends.begin(), text.ends.end());
  gguf_template_ = std::string(file.metadata().find_text("tokenizer.chat_template").value_or(""));
}

const Tokenizer& ModelFolder::tokenizer() const {
  if (!tokenizer_ && is_gguf_path(path())) {
    throw Error(
        fmt::format("{}: key 'tokenizer.ggml.model': there is no tokenizer, and text needs one; convert the "
                    "model again with its tokenizer",
                    path().string()));
  }
  if (!tokenizer_) {
    throw Error("the model folder has no tokenizer.json, which text needs");
  }
  return *tokenizer_;
}

const PreprocessorConfig& ModelFolder::preprocessor() const {
  (void)vision_of(config_);
  if (!preprocessor_) {
    throw Error("the model folder has no preprocessor_config.json or processor_config.json, which images need");
  }
  return *preprocessor_;
}

std::vector<TokenId> ModelFolder::encode_plain(std::string_view text, AddedTokens added) const {
  std::vector<TokenId> tokens = tokenizer().encode(text, added);
  if (beginning_ && (tokens.empty() || tokens.front() != *beginning_)) {
    tokens.insert(tokens.begin(), *beginning_);
  }
  return tokens;
}

ChatTemplate ModelFolder::chat_template() const {
  if (given_template_) {
    return *given_template_;
  }
  if (gguf_template_) {
    return gguf_chat_template(gguf_template_->empty() ? std::nullopt : std::optional<std::string_view>(*gguf_template_),
                              {}, path().string());
  }
  if (is_gguf_path(path())) {
    (void)tokenizer();  // which it lacks, or it would have a template, too
  }
  return folder_chat_template(path());
}

std::vector<TokenId> ModelFolder::encode_messages(std::span<const ChatMessage> messages,
                                                  std::span<const std::size_t> image_tokens) const {
  return encode_chat(tokenizer(), messages, image_tokens, chat_template(), beginning_of_chats());
}

// The token that the model's own template writes before what the user's renders; a model without a template has it
// where its other texts do.
std::optional<TokenId> ModelFolder::beginning_of_chats() const {
  if (!given_template_) {
    return std::nullopt;
  }
  std::optional<TokenId> beginning = beginning_;
  std::optional<std::string> own = gguf_template_;
  try {
    if (is_gguf_path(path())) {
      beginning = generation_.bos_token ? std::optional(static_cast<TokenId>(*generation_.bos_token)) : beginning;
    } else {
      const std::optional<TokenId> named = named_beginning(path(), tokenizer());
      beginning = named ? named : beginning;
      const std::optional<ChatTemplateText> found = find_chat_template(path());
      own = found ? found->text : std::string();
    }
  } catch (const Error&) {
    own.reset();  // a file that the user's template does without
  }
  if (!own || own->empty()) {
    return beginning_;
  }
  return beginning && writes_beginning(*own, tokenizer().bytes(*beginning)) ? beginning : std::nullopt;
}

ops::SamplingSettings ModelFolder::sampling(const SamplingRequest& request) const {
  return requested_sampling(request, generation_, config_.text.vocab);
}

ops::SamplingSettings ModelFolder::default_sampling(std::uint64_t seed) const { return sampling({.seed = seed}); }

bool ModelFolder::ends(TokenId token) const noexcept {
  const auto& eos = generation_.eos_tokens;
  return std::find(eos.begin(), eos.end(), token) != eos.end();
}

}  // namespace pascaline
