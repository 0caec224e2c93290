#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_location.hpp"
#include "model/image/preprocessor_config.hpp"
#include "model/session/sampling_request.hpp"
#include "model/text/chat.hpp"
#include "model/text/tokenizer.hpp"
#include "runtime/ops/sample_host.hpp"

namespace pascaline {

/// What of a model folder is read.
enum class ModelParts : std::uint8_t {
  all,      ///< texts and images need it all; no preprocessor if the model only reads text
  present,  ///< tokenizer and preprocessor if they are there: for random weights
  words,    ///< the tokenizer alone: for texts that no chat template renders
  numbers,  ///< config.json alone: only tokens and patches go in
};

/// What a model's folder or GGUF files say of it, all but the weights: read, and checked for what belongs together.
/// Needs no device.
class ModelFolder {
 public:
  /// Throws Error and its kinds naming the file that is missing, damaged, of another kind of model, or contradicts
  /// another one. `chat_template` is the user's, by name or file (see chat_template_given); empty for the model's own.
  explicit ModelFolder(ModelLocation location, ModelParts parts = ModelParts::all,
                       const std::string& chat_template = {});

  /// Of the folder, or the GGUF file of the text model.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return location_.path; }
  [[nodiscard]] const ModelLocation& location() const noexcept { return location_; }
  [[nodiscard]] const ModelConfig& config() const noexcept { return config_; }
  /// If neither generation_config.json nor config.json names tokens that end an answer, it has the tokenizer's; without
  /// those none, and an answer goes on to its limit.
  [[nodiscard]] const GenerationConfig& generation() const noexcept { return generation_; }
  [[nodiscard]] bool has_tokenizer() const noexcept { return tokenizer_.has_value(); }
  /// Throws Error if the folder has none, or none was read.
  [[nodiscard]] const Tokenizer& tokenizer() const;
  /// Likewise, and for a model that only reads text, or a GGUF file without its projector.
  [[nodiscard]] const PreprocessorConfig& preprocessor() const;
  /// Ids of a text that no chat template renders; they begin with the token of beginning where the model's do, once if
  /// the text spells it out. Throws as `tokenizer`.
  [[nodiscard]] std::vector<TokenId> encode_plain(std::string_view text, AddedTokens added = AddedTokens::ignore) const;
  /// The user's; else how the model's family renders conversations or, of a GGUF file and of the family llama, what the
  /// model's own is recognised as; throws Error if that is not known (see gguf_chat_template, folder_chat_template).
  [[nodiscard]] ChatTemplate chat_template() const;
  /// Ids of a conversation as that template renders it (see `encode_chat`). Where the user's template is another than
  /// the model's own, they begin with the token of beginning if the own one writes it. Throws as these do.
  [[nodiscard]] std::vector<TokenId> encode_messages(std::span<const ChatMessage> messages,
                                                     std::span<const std::size_t> image_tokens = {}) const;
  /// How a request has tokens chosen, with what the model's makers recommend. Throws as `requested_sampling`.
  [[nodiscard]] ops::SamplingSettings sampling(const SamplingRequest& request) const;
  /// What they recommend, with that seed; throws likewise.
  [[nodiscard]] ops::SamplingSettings default_sampling(std::uint64_t seed) const;
  /// Whether that token ends an answer.
  [[nodiscard]] bool ends(TokenId token) const noexcept;

 private:
  void read_gguf_text();
  [[nodiscard]] std::optional<TokenId> beginning_of_chats() const;

  ModelLocation location_;
  ModelConfig config_;
  GenerationConfig generation_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<TokenId> beginning_;  // of texts that no template renders
  std::optional<ChatTemplate> given_template_;
  std::optional<PreprocessorConfig> preprocessor_;
  std::optional<std::string> gguf_template_;  // of a GGUF file with a tokenizer; empty if it names none
};

}  // namespace pascaline
