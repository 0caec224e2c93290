// Times a decoding step's matrix products over the whole language model: the weights of 28 layers, each in its own
// memory, streamed in the model's order by the dispatcher's plans.
//
//   stream_weights --db tuned.db [--target sm_61] [--device cuda:0] [--weight float16] [--tokens 20] [--graph]

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace {

using namespace pascaline;

struct Options {
  std::string device = "cuda:0";
  std::string target;
  std::string database;
  std::string weight = "float16";
  std::string spaces;
  int tokens = 20;
  bool graph = false;
};

/// A linear layer of Qwen3-VL-2B's decoder, `epilogue` as the search space numbers them.
struct Linear {
  std::int64_t outputs;
  std::int64_t inputs;
  std::int64_t epilogue;
};

constexpr int kLayers = 28;
constexpr std::array<Linear, 4> kLinears{{{4096, 2048, 0}, {2048, 2048, 4}, {12288, 2048, 5}, {2048, 6144, 4}}};
constexpr std::size_t kLongest = 12288;

int run(const Options& options) {
  const auto weight = element_type_from(options.weight);
  if (!weight) {
    throw Error("unknown element type " + options.weight);
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
  const Buffer in = activations();
  const Buffer residual = activations();
  const Buffer out = activations();
  std::vector<Buffer> weights;
  std::vector<const Prepared*> prepared;
  double bytes = 0;
  for (const Linear& linear : kLinears) {
    const Space& space = dispatcher.space(dispatcher.kernel("matvec"));
    const Problem problem = space.problem({{"M", "1"},
                                           {"N", std::to_string(linear.outputs)},
                                           {"K", std::to_string(linear.inputs)},
                                           {"EPILOGUE", std::to_string(linear.epilogue)},
                                           {"WEIGHT", options.weight}});
    prepared.push_back(&dispatcher.prepare(problem));
    fmt::print("{}: {}\n", problem.text(), prepared.back()->plan.config.text());
  }
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const Linear& linear : kLinears) {
      const auto count = static_cast<std::size_t>(linear.outputs * linear.inputs);
      weights.push_back(device->allocate(bytes_of(*weight, count)));
      if (layer == 0) {
        device->upload(weights.back(), draw_elements(*weight, count, Fill::uniform, -0.02, 0.02, weights.size()));
      } else {
        device->fill(weights.back(), 0x11);  // small numbers in every element type
      }
      bytes += static_cast<double>(bytes_of(*weight, count));
    }
  }
  const auto token = [&] {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Linear& linear = kLinears[i % kLinears.size()];
      const std::array<void*, 5> buffers{in.data(), weights[i].data(), nullptr,
                                         linear.epilogue == 4 ? residual.data() : nullptr, out.data()};
      dispatcher.launch(*prepared[i % kLinears.size()], buffers);
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
      "{} launches, {:.0f} MB of {} weights: {:.1f} us a token ({:.1f} us until all was launched), {:.1f} GB/s\n",
      weights.size(), bytes * 1e-6, options.weight, us, launched_us, bytes / us * 1e-3);
  return 0;
}

int command(int argc, char** argv) {
  CLI::App app{"Times a decoding step's matrix products over the whole language model"};
  Options options;
  app.add_option("--device", options.device);
  app.add_option("--target", options.target);
  app.add_option("--db", options.database);
  app.add_option("--weight", options.weight, "Element type of the weights");
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
