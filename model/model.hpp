#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/decoder/kv_cache.hpp"
#include "model/decoder/positions.hpp"
#include "model/decoder/sampler.hpp"
#include "model/decoder/text_decoder.hpp"
#include "model/executor.hpp"
#include "model/fusion/fusion.hpp"
#include "model/linear_layers.hpp"
#include "model/memory_layout.hpp"
#include "model/model_options.hpp"
#include "model/residency/device_weights.hpp"
#include "model/residency/weight_stream.hpp"
#include "model/vision/vision_tower.hpp"

namespace pascaline {

/// What a model takes of its device's memory, in bytes; and of the host's, if it shares the work with the processor.
struct ModelMemory {
  std::uint64_t weights = 0;
  std::uint64_t activations = 0;  ///< slots of what is streamed among them
  std::uint64_t cache = 0;
  std::uint64_t host = 0;  ///< weights, activations and cache there
};

/// More tokens than the context has room for. Nothing was read.
class ContextFullError : public Error {
 public:
  using Error::Error;
};

/// Tokens to be read, with positions for each image in them.
struct Prompt {
  std::span<const std::int32_t> tokens;
  std::span<const PatchView> images;
};

/// What runs a model's parts on the processor beside a device.
struct Processor {
  /// Its operations are told to the observer of `device`, which must outlive it.
  explicit Processor(const Executor& device);

  std::unique_ptr<Device> host;
  Executor executor;
  LinearLayers linear;
  FusionDecisions fusion;
};

/// A model on a device with one sequence of tokens, whose keys and values it keeps. One thread at a time.
class Model {
 public:
  /// Called with logits [rows, vocabulary] of the prompt's tokens from `first` on, in the host's memory.
  using LogitsReader = std::function<void(std::int64_t first, std::span<const float> logits)>;

  /// Brings the weights to the device, or to the host what does not fit there, as `lay_out_model` decides. `executor`
  /// must outlive it. Throws Error for options out of bounds, OutOfMemoryError that says what is needed, and what the
  /// weights' source and the device throw.
  Model(Executor& executor, ModelConfig config, WeightSource& weights, const ModelOptions& options);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const ModelConfig& config() const noexcept { return config_; }
  [[nodiscard]] const ModelOptions& options() const noexcept { return options_; }
  [[nodiscard]] ModelMemory memory() const;
  /// Where its parts are.
  [[nodiscard]] const MemoryLayout& plan() const noexcept { return plan_; }
  /// Tokens of the sequence so far.
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }
  /// What is added to a token's index in the sequence to get its position; below 0 once there were images.
  [[nodiscard]] std::int64_t position_delta() const noexcept { return delta_; }

  /// Begins a new sequence.
  void clear();
  /// Reads further tokens, in passes of up to `chunk`. With `reader` the logits of all of them are computed and given.
  /// Between passes `goes_on` is asked, if it is given: if not, nothing was read, and false is returned. Throws Error,
  /// with the sequence as it was, for an empty prompt, tokens that the vocabulary lacks, and images that do not
  /// match their positions; ContextFullError for more tokens than the context holds; OutOfMemoryError; and what the
  /// operations throw.
  bool append(const Prompt& prompt, const LogitsReader& reader = {}, const std::function<bool()>& goes_on = {});
  /// Forgets all tokens of the sequence after the first `length`, which cannot end before or in an image: later tokens
  /// are read as if these were the only ones. Logits are there again once further tokens were read. Throws Error, with
  /// the sequence as it was, for a length beyond it or before the last image's end.
  void shorten(std::int64_t length);
  /// What the decoder would get of these images; the sequence stays as it is. Throws as VisionTower::encode, and
  /// Error if there are some and the model only reads text.
  [[nodiscard]] ImageFeatures encode(std::span<const PatchView> images);
  /// Logits that follow the last token, [vocabulary]; throws Error if nothing was read yet.
  [[nodiscard]] std::vector<float> logits();

  /// From now on tokens are chosen so; `seen` have been, for the penalties. Throws as `check_settings`.
  void set_sampling(const ops::SamplingSettings& settings, std::span<const std::int32_t> seen = {});
  /// Chooses the token that follows the last one. Throws Error if nothing was read yet, and if the logits are not
  /// numbers.
  [[nodiscard]] std::int32_t sample();
  /// Chooses this one instead. Throws Error if nothing was read yet, and for a token that the vocabulary lacks.
  void choose(std::int32_t token);
  /// Appends the token chosen last, which must have been since the last `append`, and chooses the next. Throws Error at
  /// the end of the context, and if the logits are not numbers: then no token is chosen.
  [[nodiscard]] std::int32_t step();
  /// Kernels that the last step launched, or that its graph holds; 0 before the first.
  [[nodiscard]] std::uint64_t launches_of_step() const noexcept { return launches_of_step_; }
  /// Whether steps are launched as a graph.
  [[nodiscard]] bool uses_graph() const noexcept;

  /// The next steps choose their kernels again: for after `Dispatcher::reload`.
  void forget_graph() noexcept;
  /// Its sites, see `sites_of_model`.
  [[nodiscard]] std::vector<Problem> sites() const;
  /// How its sites on the device are computed.
  [[nodiscard]] FusionDecisions& fusion() noexcept { return fusion_; }

 private:
  // A decoding step, recorded as it is launched in one thermal state.
  struct StepGraph {
    Graph graph;
    std::int64_t capacity = 0;  // of the cache when it was recorded
  };
  void run_chunk(const Prompt& prompt, const PromptPositions& positions, const ImageFeatures& features,
                 std::int64_t first, std::int64_t count);
  void read_rows(std::int64_t first, std::int64_t count, const LogitsReader& reader);
  void reserve_cache(std::int64_t tokens);
  void position_next(std::int64_t before);
  void choose_next(const TensorView& logits, const TextPass& pass);
  void require_logits() const;
  void run_step();
  [[nodiscard]] StepGraph* ready_graph(ThermalState state, std::int64_t capacity);
  [[nodiscard]] TextPass next_pass() const;
  void check(const Prompt& prompt) const;
  [[nodiscard]] DecoderSide side(Residency where);
  [[nodiscard]] ImageFeatures on_device(const ImageFeatures& features);

  Executor* executor_;
  ModelConfig config_;
  ModelOptions options_;
  MemoryLayout plan_;
  std::unique_ptr<Processor> processor_;  // if some of the model is there
  DeviceWeights weights_;
  std::optional<KvCache> cache_;       // of layers that run on the device
  std::optional<KvCache> host_cache_;  // of those of the processor
  LinearLayers linear_;
  FusionDecisions fusion_;
  std::optional<WeightStream> stream_;
  TextDecoder decoder_;
  std::optional<VisionTower> tower_;
  Sampler sampler_;
  RawBuffer pass_memory_;      // tokens, positions and slots of a pass
  RawBuffer next_memory_;      // where the next token goes: positions, slot, length
  RawBuffer logits_memory_;    // of the last token
  RawBuffer rows_memory_;      // of some rows, once they were asked for
  RawBuffer features_memory_;  // of images that the processor encoded, once there were some
  std::int64_t length_ = 0;
  std::int64_t delta_ = 0;
  std::int64_t images_end_ = 0;  // tokens up to the end of the last prompt with images
  bool has_logits_ = false;
  bool has_token_ = false;
  std::array<StepGraph, kThermalStates> step_graphs_;  // by the first of the states that launch a step alike
  std::int64_t launched_capacity_ = 0;  // of the cache when a step was last launched as it is, all of it on the device
  int failed_recordings_ = 0;
  std::uint64_t launches_of_step_ = 0;
};

}  // namespace pascaline
