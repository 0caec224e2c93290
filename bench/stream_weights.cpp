// Times a decoding step's matrix products over the whole language model: the weights of 28 layers, each in its own
// memory, streamed in the model's order by the dispatcher's plans; or only those of one kind.
//
//   stream_weights --db tuned.db [--target sm_61] [--device cuda:0] [--weight q4_k] [--rounded [--float-results]]
//   [--only gate_up] [--outputs 16896] [--tokens 20] [--graph]

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/formats/draw.hpp"

namespace {

using namespace pascaline;

struct Options {
  std::string device = "cuda:0";
  std::string target;
  std::string database;
  std::string weight = "float16";
  std::string spaces;
  std::string only;
  std::int64_t outputs = 0;
  int tokens = 20;
  bool rounded = false;
  bool float_results = false;
  bool graph = false;
};

/// A linear layer of Qwen3-VL-2B's decoder, `epilogue` as the search space numbers them.
struct Linear {
  const char* name;
  std::int64_t outputs;
  std::int64_t inputs;
  std::int64_t epilogue;
};

constexpr int kLayers = 28;
constexpr std::array<Linear, 5> kLinears{{{"qkv", 4096, 2048, 0},
                                          {"output", 2048, 2048, 4},
                                          {"gate_up", 12288, 2048, 5},
                                          {"down", 2048, 6144, 4},
                                          {"head", 151936, 2048, 0}}};
constexpr std::int64_t kSwiglu = 5;
constexpr std::int64_t kSwigluInt8 = 7;
constexpr std::size_t kLongest = 151936;

// A matrix of each layer; the head, which there is once, only where it alone is asked for. SwiGLU may round its
// results.
std::vector<Linear> linears_of(const std::string& only, std::int64_t outputs, bool rounded) {
  std::vector<Linear> linears;
  for (const Linear& linear : kLinears) {
    if (only == linear.name || (only.empty() && linear.name != std::string("head"))) {
      linears.push_back(linear);
      linears.back().epilogue = rounded && linear.epilogue == kSwiglu ? kSwigluInt8 : linear.epilogue;
      linears.back().outputs = outputs > 0 ? outputs : linear.outputs;
    }
  }
  if (linears.empty()) {
    throw Error("there is no layer " + only);
  }
  return linears;
}

int run(const Options& options) {
  const auto weight = element_type_from(options.weight);
  if (!weight) {
    throw Error("unknown element type " + options.weight);
  }
  const bool packed = is_packed_format(*weight);
  if (options.rounded && !packed) {
    throw Error("activations are rounded for a weight in a packed format only, not for one in " + options.weight);
  }
  const auto device = open_device(options.device);
  DispatcherOptions dispatch;
  dispatch.target = options.target;
  dispatch.spaces = options.spaces;
  if (!options.database.empty()) {
    dispatch.database = options.database;
  }
  Dispatcher dispatcher(*device, dispatch);
  const auto activations = [&] {
    Buffer buffer = device->allocate(kLongest * sizeof(float));
    device->upload(buffer, draw_elements(ElementType::float32, kLongest, Fill::uniform, -1, 1, 1));
    return buffer;
  };
  const std::vector<Linear> linears =
      linears_of(options.only, options.outputs, options.rounded && !options.float_results);
  const int layers = options.only == "head" ? 4 : kLayers;
  const Buffer in = activations();
  const Buffer residual = activations();
  const Buffer out = activations();
  const Buffer scales = activations();
  const Buffer out_scales = activations();
  std::vector<Buffer> weights;
  std::vector<const Prepared*> prepared;
  double bytes = 0;
  for (const Linear& linear : linears) {
    const Space& space = dispatcher.space(packed ? dispatcher.kernel("matvec_q") : dispatcher.kernel("matvec"));
    std::vector<std::pair<std::string, std::string>> values{{"M", "1"},
                                                            {"N", std::to_string(linear.outputs)},
                                                            {"K", std::to_string(linear.inputs)},
                                                            {"EPILOGUE", std::to_string(linear.epilogue)},
                                                            {"WEIGHT", options.weight}};
    if (options.rounded) {
      values.emplace_back("INPUT", "int8");
    }
    const Problem problem = space.problem(values);
    prepared.push_back(&dispatcher.prepare(problem));
    fmt::print("{}: {}\n", problem.text(), prepared.back()->plan.config.text());
  }
  for (int layer = 0; layer < layers; ++layer) {
    for (const Linear& linear : linears) {
      const auto size = static_cast<std::size_t>(layout_of(*weight).bytes(linear.outputs, linear.inputs));
      weights.push_back(device->allocate(size));
      if (layer == 0) {
        device->upload(weights.back(),
                       draw_matrix(*weight, linear.outputs, linear.inputs, Fill::uniform, -0.02, 0.02, weights.size()));
      } else {
        device->fill(weights.back(), 0x11);  // small numbers in every type
      }
      bytes += static_cast<double>(size);
    }
  }
  const auto token = [&] {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Linear& linear = linears[i % linears.size()];
      void* const other = linear.epilogue == 4 ? residual.data() : nullptr;
      if (packed) {
        const bool rounds = linear.epilogue == kSwigluInt8;
        const std::array<void*, 9> buffers{in.data(),
                                           options.rounded ? scales.data() : nullptr,
                                           nullptr,
                                           weights[i].data(),
                                           nullptr,
                                           other,
                                           rounds ? nullptr : out.data(),
                                           rounds ? out.data() : nullptr,
                                           rounds ? out_scales.data() : nullptr};
        dispatcher.launch(*prepared[i % linears.size()], buffers);
      } else {
        const std::array<void*, 5> buffers{in.data(), weights[i].data(), nullptr, other, out.data()};
        dispatcher.launch(*prepared[i % linears.size()], buffers);
      }
    }
  };
  token();
  device->synchronize();
  const Graph graph = options.graph ? device->record(token) : Graph();
  const auto start = std::chrono::steady_clock::now();
  const auto since_start_us = [&] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / options.tokens;
  };
  for (int i = 0; i < options.tokens; ++i) {
    options.graph ? device->launch(graph) : token();
  }
  const double launched_us = since_start_us();
  device->synchronize();
  const double us = since_start_us();
  fmt::print(
      "{} launches, {:.0f} MB of {} weights: {:.1f} us a token ({:.1f} us until all was launched), {:.2f} us a launch, "
      "{:.1f} GB/s\n",
      weights.size(), bytes * 1e-6, options.weight, us, launched_us, us / static_cast<double>(weights.size()),
      bytes / us * 1e-3);
  return 0;
}

int command(int argc, char** argv) {
  CLI::App app{"Times a decoding step's matrix products over the whole language model"};
  Options options;
  app.add_option("--device", options.device);
  app.add_option("--target", options.target);
  app.add_option("--db", options.database);
  app.add_option("--weight", options.weight, "Type of the weights");
  app.add_flag("--rounded", options.rounded, "Activations are int8 already, and SwiGLU rounds its results");
  app.add_flag("--float-results", options.float_results, "SwiGLU leaves its results in float32")->needs("--rounded");
  CLI::Option* const only =
      app.add_option("--only", options.only, "Only this layer: qkv, output, gate_up, down or head");
  app.add_option("--outputs", options.outputs, "So many rows of the layer's weight instead of the model's")
      ->check(CLI::Range(std::int64_t{1}, static_cast<std::int64_t>(kLongest)))
      ->needs(only);
  app.add_option("--spaces", options.spaces, "Folder of search spaces: without a database, their defaults are timed");
  app.add_option("--tokens", options.tokens)->check(CLI::PositiveNumber);
  app.add_flag("--graph", options.graph, "Launch a token's products as one CUDA graph");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stream_weights: %s\n", error.what());
    return 1;
  }
}
