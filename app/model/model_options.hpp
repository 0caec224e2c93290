#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "model/session/prompt.hpp"
#include "model/session/session.hpp"

namespace pascaline {

/// Which model, where and how, for the subcommands that run one.
struct ModelCommandOptions {
  std::string folder;     ///< or the GGUF file of a text model
  std::string projector;  ///< GGUF file; empty: none
  std::string device;
  std::string database;
  std::string bundle;
  std::string target;
  std::string nvrtc;
  std::string kernel_cache;
  std::string kernels_folder;
  std::string chat_template;
  std::string spaces_folder;
  std::string
      weights;  ///< empty: as a quantized folder or GGUF file has them, else float16 on a GPU, float32 on the processor
  std::string kv_cache;      ///< likewise
  std::int64_t context = 0;  ///< 0: 4096, or what the model takes
  std::int64_t chunk = 1024;
  std::int64_t most_image_tokens = 0;
  std::string memory_limit;  ///< "1.5GiB"; empty: none
  std::string gpu_layers = "auto";
  std::string vision = "auto";
  std::string offload = "auto";
  bool plan = false;  ///< only say where the model's parts would be; see `show_plan`
  bool random_weights = false;
  std::string fusion = "auto";
  std::string thermal = "auto";
  std::string sensors;  ///< file of a trace; empty: the device's own
  std::string attention = "dense";
  bool no_graph = false;
  bool untuned = false;
  bool any_device = false;
  bool strict = false;        ///< see StrictKeys
  bool observe_only = false;  ///< see ModelSessionOptions; not of the command line

  /// The options must stay where they are until the command line was read.
  void add_to(CLI::App& command);
  /// Where the model's parts are: for commands that run it.
  void add_residency_to(CLI::App& command);
  /// How conversations are rendered: for commands that take messages.
  void add_template_to(CLI::App& command);
  /// Only what decides on the problems that a model launches on a device: `--weights`, `--kv-cache`, `--context`,
  /// `--chunk`, `--attention`.
  void add_types_to(CLI::App& command);
  /// Only `--fusion`.
  void add_fusion_to(CLI::App& command);
  /// Only `--mmproj`.
  void add_projector_to(CLI::App& command);
  [[nodiscard]] ModelLocation location() const { return {folder, projector}; }
  /// Whether the model runs on the processor, without kernels.
  [[nodiscard]] bool on_processor() const;
  /// Throws Error if it does: for commands that look at kernels.
  void require_kernels() const;
  [[nodiscard]] ModelSessionOptions session_options() const;
  /// The folder with all that texts and images need, or `words` alone, and what is decided of a prompt by it.
  [[nodiscard]] ModelFolder read_folder(ModelParts parts = ModelParts::all) const;
  [[nodiscard]] PromptLimits prompt_limits(const ModelFolder& model) const;
  /// `request` is what is known of the first prompt.
  [[nodiscard]] std::unique_ptr<ModelSession> open(ModelFolder folder, const ModelRequest& request = {}) const;
  /// For `--plan`: prints where that model would be, and measures for it; loads nothing.
  void show_plan(const ModelFolder& folder, const ModelRequest& request, bool as_json) const;
  /// As `read_folder` without tokenizer and preprocessor.
  [[nodiscard]] ModelFolder read_for_numbers() const;
  /// Options about kernels are of no use on the processor: throws Error for a bundle, warns of others on stderr.
  void check_kernel_options() const;

 private:
  void add_cache_to(CLI::App& command);
  [[nodiscard]] std::optional<std::string> given_residency() const;
  [[nodiscard]] ResidencyOptions residency() const;
};

/// Says on stderr if images were made smaller so that they fit the context.
void note_fitted(const FittedImages& images, std::int64_t context);
/// Says on stderr what reading an image did to it, as laying it on white.
void note_image(const Image& image);

/// How tokens are chosen; what is not given is as the model's makers recommend.
struct SamplingCommandOptions {
  bool greedy = false;
  std::optional<double> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition;
  std::optional<double> presence;
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> max_tokens;
  std::vector<std::string> stop;

  static constexpr std::int64_t kUsualTokens = 512;

  void add_to(CLI::App& command);
  /// Throws as `ModelFolder::sampling`.
  [[nodiscard]] AnswerOptions answer_options(const ModelFolder& model) const;
};

}  // namespace pascaline
