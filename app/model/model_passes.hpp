#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "model/session/session.hpp"

namespace pascaline {

/// The image that a workload is made of where none is given, for the help.
inline constexpr const char* kUsualImage = "1024 1024, or the largest power of two below that model and context take";

/// Sizes of passes, as the commands that look at them share them.
struct PassCommandOptions {
  std::vector<std::int64_t> usual_prompts;  ///< tokens, where none are given
  const char* usual_image = "";             ///< what is taken where no image is given, for the help
  std::vector<std::int64_t> prompts;        ///< those given
  std::vector<std::int64_t> image;          ///< height and width in pixels, or none

  /// With `least_prompt` 0 the command must tell what that means.
  void add_to(CLI::App& command, std::int64_t least_prompt = 1);
  /// Decides on prompts, each with so many tokens generated after it: those given, for which it throws Error if they
  /// do not fit the context; else the usual ones that do, with a note on stderr if some do not.
  void choose_prompts(std::int64_t context, std::int64_t generated);
};

/// What passes of these sizes need, for `ModelOptions::request`, with so many tokens generated after the prompts.
/// Throws Error for an image larger than the model's folder allows, or of a model that only reads text, before any
/// memory is taken for it.
[[nodiscard]] ModelRequest request_of(const ModelFolder& model, const PassCommandOptions& sizes,
                                      std::int64_t generated);

/// Patches along a side of so many pixels: whole tokens of them, one at least.
[[nodiscard]] std::int64_t patches_along(const VisionConfig& vision, std::int64_t pixels);

/// Most pixels of an image that the model takes: as its preprocessor's file says, or those of its family.
[[nodiscard]] std::int64_t most_pixels(const ModelFolder& model);

/// A part of a model's work that is looked at: reading a prompt, one decoding step, encoding an image.
struct ModelPass {
  std::string name;               ///< "prefill", "decode", "image", "image_prompt"
  std::string per;                ///< what one pass is, for people
  std::function<void()> prepare;  ///< what comes before it
  std::function<void()> run;      ///< ends when the device is done
};

/// Reads so many further tokens, any of the vocabulary's.
void append_some(Model& model, std::int64_t count);

/// Reading a prompt of that many tokens, any of the vocabulary's, without images.
[[nodiscard]] ModelPass prefill_pass(Model& model, std::int64_t tokens);
/// One token after a context of that many, chosen greedily.
[[nodiscard]] ModelPass decode_pass(Model& model, std::int64_t context);
/// Encoding an image of so many pixels, of any content.
[[nodiscard]] ModelPass image_pass(Model& model, std::int64_t height, std::int64_t width);

/// Reading a prompt of one token and such an image, which launches all that a prompt with an image does.
[[nodiscard]] ModelPass image_prompt_pass(Model& model, std::int64_t height, std::int64_t width);
/// Tokens of that prompt.
[[nodiscard]] std::int64_t image_prompt_tokens(const ModelConfig& config, std::int64_t height, std::int64_t width);

/// What launches of one problem took together.
struct LaunchSum {
  const Prepared* prepared = nullptr;
  std::string site{};         ///< of the model, such as "site_decode_mlp"; empty outside of any
  std::string alternative{};  ///< that computes the site
  std::int64_t count = 0;
  double time_us = 0;
};

/// Tokens that observing a decoding pass generates.
inline constexpr std::int64_t kObservedSteps = 1;

/// Runs a pass of the session's model with every launch timed by itself; the sums, of each site of the model by
/// themselves, in the order of the first launches. `between`: called before the first and after every launch. Throws
/// Error if the model runs on the processor.
[[nodiscard]] std::vector<LaunchSum> observe_pass(ModelSession& session, const ModelPass& pass,
                                                  const std::function<void()>& between = {});

}  // namespace pascaline
