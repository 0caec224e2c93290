#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/image/preprocess.hpp"
#include "model/model.hpp"
#include "model/session/model_folder.hpp"
#include "model/text/chat.hpp"
#include "runtime/memory/pool.hpp"

namespace pascaline {

/// What a session runs, and where.
struct ModelSessionOptions {
  ModelLocation model;  ///< folder with config.json and the rest, or GGUF files
  std::string device;   ///< "cuda:N", "cpu", or "emulator" (kernels compiled for the processor); empty: the first
                        ///< CUDA device, or the processor if there is none
  DispatcherOptions dispatcher;
  bool database_may_be_foreign = false;  ///< tuned for other devices only: then a warning, else an error
  ModelOptions options;
  /// Instead of the options' weights: the first of these with which all that is needed from the beginning fits the
  /// device's free memory, or the last; one line on stderr says which and why. Empty: the options' own.
  std::vector<WeightRecipe> weight_choices;
  bool random_weights = false;  ///< instead of the folder's; it then needs nothing but config.json
  std::uint64_t memory_limit = MemoryPool::kUnlimited;  ///< bytes of the device's memory to take at most, but for code
  /// Nothing is compiled, launched or computed, weights are not read, and tensors have no memory behind them: for
  /// asking which operations the model would run on `device` (see Executor::observe), whether or not it fits there. Of
  /// the other options, those of weights and memory have no effect then, and answers are meaningless. Not on "cpu".
  bool observe_only = false;
  bool numbers_only = false;  ///< no texts and images, only tokens and patches: reads config.json and weights alone
};

/// Where a session's model would be, and what it would take.
struct SessionEstimate {
  std::string device_name;  ///< as ModelSession::device_name
  ModelOptions options;     ///< with what was left open decided
  MemoryLayout model;
};

/// Plans a session of that folder, and measures what its speed depends on; weights are not opened. The options' own
/// folder does not count. Throws as ModelSession does for a device that is not there and a model that does not fit.
[[nodiscard]] SessionEstimate estimate_session(const ModelFolder& folder, const ModelSessionOptions& options);

/// How an answer is made.
struct AnswerOptions {
  std::int64_t max_tokens = 512;
  ops::SamplingSettings sampling;     ///< see `ModelFolder::default_sampling`
  std::vector<std::string> stop;      ///< texts that end the answer, which does not have them
  std::function<bool()> interrupted;  ///< asked between the parts of a long prompt; true ends the answer
};

/// Why an answer ended.
enum class AnswerEnd : std::uint8_t { end_token, stop_string, max_tokens, context, cancelled };

/// "end_token", "stop_string", "max_tokens", "context", "cancelled".
[[nodiscard]] std::string_view name_of(AnswerEnd end) noexcept;

struct Answer {
  std::vector<TokenId> tokens;  ///< without an end token; with all of a stop string's, which the conversation forgets
  std::string text;
  AnswerEnd end = AnswerEnd::end_token;
  std::int64_t prompt_tokens = 0;
  double prompt_ms = 0;  ///< wall time until the first token was chosen, images included
  double decode_ms = 0;  ///< wall time of the tokens after it

  /// Of the tokens after the first; 0 if there were none.
  [[nodiscard]] double tokens_per_second() const noexcept;
  /// Of the prompt.
  [[nodiscard]] double prompt_tokens_per_second() const noexcept;
};

/// A model with its tokenizer and preprocessor, and a conversation. One thread at a time.
class ModelSession {
 public:
  /// Called with each piece of the answer's text; false ends the answer.
  using TextReader = std::function<bool(std::string_view piece)>;

  /// Reads and checks all files of the folder before it touches the device. Throws Error and its kinds for what is
  /// missing, damaged or of another kind, for a device that is not there, and as Model does.
  explicit ModelSession(const ModelSessionOptions& options);
  /// The same of a folder that was read before; the options' own, and what of it is read, do not count.
  ModelSession(ModelFolder folder, const ModelSessionOptions& options);
  ModelSession(const ModelSession&) = delete;
  ModelSession& operator=(const ModelSession&) = delete;
  ~ModelSession();

  [[nodiscard]] Model& model() noexcept { return *model_; }
  [[nodiscard]] const Model& model() const noexcept { return *model_; }
  [[nodiscard]] Executor& executor() noexcept { return *executor_; }
  /// What chooses its kernels; null on the processor, and where operations are only observed.
  [[nodiscard]] const Dispatcher* dispatcher() const noexcept { return dispatcher_.get(); }
  /// Where weights, activations, cache and scratch lie.
  [[nodiscard]] const MemoryPool& memory() const noexcept { return *memory_; }
  [[nodiscard]] const ModelFolder& folder() const noexcept { return folder_; }
  [[nodiscard]] const ModelConfig& config() const noexcept { return folder_.config(); }
  /// Of the folder; throws Error if it has none, or was opened for numbers only.
  [[nodiscard]] const Tokenizer& tokenizer() const { return folder_.tokenizer(); }
  /// "cpu", or the device's id and name.
  [[nodiscard]] const std::string& device_name() const noexcept { return name_; }

  /// Begins a conversation again with these messages, whose images are given in order, and answers.
  Answer ask(std::span<const ChatMessage> messages, std::span<const Patches> images, const AnswerOptions& options,
             const TextReader& reader = {});
  /// Continues the conversation: the user's next message, on the cache of those before.
  Answer continue_chat(const ChatMessage& message, std::span<const Patches> images, const AnswerOptions& options,
                       const TextReader& reader = {});
  /// Forgets the conversation.
  void clear();
  /// Answers a prompt of ids, from the beginning. If the model's folder names no token that ends an answer, the first
  /// answer warns of that on stderr.
  Answer complete(std::span<const TokenId> tokens, std::span<const Patches> images, const AnswerOptions& options,
                  const TextReader& reader = {});

 private:
  Answer answer(std::vector<TokenId> tokens, std::span<const Patches> images, const AnswerOptions& options,
                const TextReader& reader);
  void keep_last(TokenId token);
  void keep_shown(const Answer& answer, std::span<const std::size_t> ends);
  void warn_of_no_end();
  void open_device(const std::string& id, const ModelSessionOptions& options);

  ModelFolder folder_;
  std::string name_;  // of the device
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceMemory> unbacked_;  // where operations are only observed
  std::unique_ptr<MemoryPool> memory_;      // over it, or over the device's
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Model> model_;
  std::vector<TokenId> conversation_;  // all tokens that the cache holds, for penalties
  bool warned_of_no_end_ = false;
};

}  // namespace pascaline
