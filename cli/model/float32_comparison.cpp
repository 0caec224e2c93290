#include "cli/model/float32_comparison.hpp"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/model/logit_file.hpp"
#include "core/error.hpp"

namespace pascaline::cli {
namespace {

constexpr double kMiB = 1 << 20;

// Called with the window, the index in it of the first of some tokens, and the logits that follow these, [rows,
// vocabulary].
using WindowReader = std::function<void(const TextWindow& window, std::int64_t index, std::span<const float> logits)>;

void run_windows(Model& model, std::string_view name, std::span<const TextWindow> windows, const WindowReader& reader) {
  const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
  for (const TextWindow& window : windows) {
    model.clear();
    (void)model.append({window.tokens, {}}, [&](std::int64_t index, std::span<const float> logits) {
      for (std::size_t row = 0; row * vocabulary < logits.size(); ++row) {
        require_finite(logits.subspan(row * vocabulary, vocabulary), name,
                       window.first + index + static_cast<std::int64_t>(row) + 1);
      }
      reader(window, index, logits);
    });
  }
}

// The usual advice, less memory for a model, is not what the user meant to ask for.
std::unique_ptr<ModelSession> open_float32(const ModelCommandOptions& options, const ModelRequest& request) {
  try {
    return options.open(options.read_for_numbers(), request);
  } catch (const OutOfMemoryError& error) {
    throw Error(
        fmt::format("the float32 model needs {:.1f} MiB, and there are {:.1f} MiB free; choose where it runs "
                    "with --float32-device, or compare with recorded logits (--reference)",
                    static_cast<double>(error.needed_bytes()) / kMiB, static_cast<double>(error.free_bytes()) / kMiB));
  }
}

}  // namespace

ModelCommandOptions in_float32(const ModelCommandOptions& options, const std::string& folder,
                               const std::string& device) {
  ModelCommandOptions result = options;
  if (!folder.empty()) {
    result.folder = folder;
    result.projector.clear();
  }
  result.weights = result.kv_cache = "float32";
  result.attention = "dense";
  // Files are for the model as it was asked for, which tells what is wrong with them.
  if (result.fusion != "off") {
    result.fusion = "auto";
  }
  if (result.thermal != "off") {
    result.thermal = "auto";
  }
  if (!device.empty()) {
    result.device = device;
    result.memory_limit.clear();
  }
  if (result.on_processor()) {  // where options about kernels are of no use
    for (std::string* option : {&result.bundle, &result.database, &result.target, &result.nvrtc, &result.kernel_cache,
                                &result.kernels_folder, &result.spaces_folder, &result.sensors}) {
      option->clear();
    }
    result.fusion = result.thermal = "auto";
    result.gpu_layers = result.vision = result.offload = "auto";
  }
  return result;
}

Float32Comparison compare_with_float32(ModelFolder folder, const ModelCommandOptions& options,
                                       const ModelCommandOptions& float32, const Passages& passages,
                                       std::int64_t window) {
  const std::vector<TextWindow> windows = windows_of(passages, window);
  ModelRequest request;
  request.tokens = window;
  request.all_logits = request.is_all = true;
  Float32Comparison result;
  const std::int64_t vocabulary = folder.config().text.vocab;
  LogitFile kept(count_tokens(passages), vocabulary);
  std::unique_ptr<ModelSession> session = options.open(std::move(folder), request);
  result.device = session->device_name();
  result.weights = session->model().options().weights.name();
  run_windows(session->model(), "the model", windows,
              [&](const TextWindow& at, std::int64_t index, std::span<const float> logits) {
                kept.write(at.first + index, logits);
              });
  session.reset();
  session = open_float32(float32, request);
  result.float32_device = session->device_name();
  std::vector<float> own;
  run_windows(session->model(), "the float32 model", windows,
              [&](const TextWindow& at, std::int64_t index, std::span<const float> logits) {
                own.resize(logits.size());
                kept.read(at.first + index, own);
                const auto columns = static_cast<std::size_t>(vocabulary);
                for (std::size_t row = 0; row * columns < logits.size(); ++row) {
                  result.divergence.add(logits.subspan(row * columns, columns),
                                        std::span<const float>(own).subspan(row * columns, columns),
                                        at.next_of(static_cast<std::size_t>(index) + row));
                }
              });
  return result;
}

}  // namespace pascaline::cli
