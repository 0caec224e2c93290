// Times block-sparse attention against the dense one of the same library, in one run on one device: a whole prompt, its
// last pass of 1024 tokens, and a token after it, with the heads of Qwen3-VL-2B. With top-k the choice of blocks
// counts.
//
//   sparse_attention [--device cuda:0|emulator|cpu] [--target sm_61] [--db tuned.db] [--keys 4096] [--cache float16]
//   [--attention window=1024,sinks=64 --attention topk=25%] [--repeats 10]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "model/executor.hpp"
#include "model/fusion/attention_choice.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"

namespace {

using namespace pascaline;

constexpr std::int64_t kHeads = 16;
constexpr std::int64_t kKvHeads = 8;
constexpr std::int64_t kHeadDim = 128;
constexpr std::int64_t kPass = 1024;

struct Options {
  std::string device = "cuda:0";
  std::string target;
  std::string database;
  std::string cache = "float16";
  std::vector<std::string> attention{"window=1024,sinks=64", "topk=25%"};
  std::int64_t keys = 4096;
  int repeats = 10;
};

/// Tensors on a device, and what runs operations on them.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(&options), device_(open_device(options.device == "cpu" ? "emulator" : options.device)) {
    if (options.device == "cpu") {
      executor_.emplace(*device_);
      return;
    }
    DispatcherOptions dispatch;
    dispatch.target = options.target;
    if (!options.database.empty()) {
      dispatch.database = options.database;
    }
    dispatcher_.emplace(*device_, dispatch);
    executor_.emplace(*dispatcher_);
  }

  TensorView tensor(ElementType type, std::initializer_list<std::int64_t> shape, double high = 1) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      count *= extent;
    }
    buffers_.push_back(device_->allocate(static_cast<std::size_t>(count) * size_of(type)));
    device_->upload(buffers_.back(),
                    draw_matrix(type, 1, count, Fill::uniform, type == ElementType::int8 ? -127 : -high,
                                type == ElementType::int8 ? 128 : high, buffers_.size()));
    return {buffers_.back().data(), type, shape};
  }
  TensorView length(std::int64_t rows) {
    buffers_.push_back(device_->allocate(sizeof(std::int32_t)));
    const auto value = static_cast<std::int32_t>(rows);
    device_->upload(buffers_.back(), std::as_bytes(std::span(&value, 1)));
    return {buffers_.back().data(), ElementType::int32, {1}};
  }

  template <typename Op>
  void run(const Op& op) {
    executor_->run(op);
  }

  /// The shortest time of a run of `work`, of all repeats, in microseconds.
  double time_us(const std::function<void()>& work) {
    work();
    work();
    device_->synchronize();
    double best = 0;
    for (int i = 0; i < options_->repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      work();
      device_->synchronize();
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      best = i == 0 ? time.count() : std::min(best, time.count());
    }
    return best;
  }
  [[nodiscard]] bool fell_back() const { return executor_->fell_back(); }

 private:
  const Options* options_;
  std::unique_ptr<Device> device_;
  std::optional<Dispatcher> dispatcher_;
  std::optional<Executor> executor_;
  std::vector<Buffer> buffers_;
};

/// Some queries at the end of the keys.
struct Case {
  const char* name;
  std::int64_t queries;
};

/// What both kinds of attention take.
struct Inputs {
  TensorView q, k, v, k_scales, v_scales, length, out;
};

Inputs inputs_of(Bench& bench, ElementType cache, std::int64_t queries, std::int64_t keys) {
  const bool scaled = cache == ElementType::int8;
  const auto scales = [&] {
    return scaled ? bench.tensor(ElementType::float32, {keys, kKvHeads}, 0.01) : TensorView();
  };
  return {bench.tensor(ElementType::float32, {queries, kHeads, kHeadDim}),
          bench.tensor(cache, {keys, kKvHeads, kHeadDim}),
          bench.tensor(cache, {keys, kKvHeads, kHeadDim}),
          scales(),
          scales(),
          bench.length(keys),
          bench.tensor(ElementType::float32, {queries, kHeads, kHeadDim})};
}

TensorView row_of(const TensorView& tensor) {
  TensorView row = tensor;
  row.rank = 2;
  row.shape = {tensor.shape[1], tensor.shape[2], 0, 0};
  return row;
}

void run_dense(Bench& bench, const Inputs& of) {
  if (of.q.shape[0] > 1) {
    bench.run(ops::AttentionPrefill{
        .q = of.q, .k = of.k, .v = of.v, .out = of.out, .k_scales = of.k_scales, .v_scales = of.v_scales});
    return;
  }
  bench.run(ops::AttentionDecode{.q = row_of(of.q),
                                 .k = of.k,
                                 .v = of.v,
                                 .length = of.length,
                                 .out = row_of(of.out),
                                 .k_scales = of.k_scales,
                                 .v_scales = of.v_scales});
}

/// Memory that a choice of blocks takes; nothing for a pattern.
struct ChoiceMemory {
  TensorView means, scores, lists;
};

ChoiceMemory memory_of(Bench& bench, const AttentionChoice& choice, const Inputs& of) {
  if (!choice.chooses_blocks()) {
    return {};
  }
  const std::int64_t block = choice.mask.block;
  const std::int64_t key_blocks = (of.k.shape[0] + block - 1) / block;
  const std::int64_t rows = (of.q.shape[0] + block - 1) / block;
  return {bench.tensor(ElementType::float32, {key_blocks, kKvHeads, kHeadDim}),
          bench.tensor(ElementType::float32, {kKvHeads, rows, key_blocks}),
          bench.tensor(ElementType::int32,
                       {kKvHeads, rows, ops::ChooseBlocks::width_for(of.k.shape[0], block, choice.part())})};
}

void run_sparse(Bench& bench, const AttentionChoice& choice, const ChoiceMemory& memory, const Inputs& of) {
  const std::int64_t queries = of.q.shape[0];
  const std::int64_t keys = of.k.shape[0];
  const std::int64_t block = choice.mask.block;
  TensorView lists = memory.lists;
  if (choice.chooses_blocks()) {
    bench.run(ops::PoolBlocks{.k = of.k,
                              .length = of.length,
                              .means = memory.means,
                              .block = block,
                              .added = queries,
                              .k_scales = of.k_scales});
    bench.run(ops::ScoreBlocks{
        .q = of.q, .means = memory.means, .length = of.length, .scores = memory.scores, .keys = keys, .block = block});
    bench.run(ops::ChooseBlocks{.scores = memory.scores,
                                .length = of.length,
                                .blocks = lists,
                                .queries = queries,
                                .keys = keys,
                                .block = block,
                                .part = choice.part()});
  }
  if (queries > 1) {
    bench.run(ops::AttentionSparsePrefill{.q = of.q,
                                          .k = of.k,
                                          .v = of.v,
                                          .out = of.out,
                                          .blocks = lists,
                                          .mask = choice.mask,
                                          .k_scales = of.k_scales,
                                          .v_scales = of.v_scales});
    return;
  }
  if (ops::is_given(lists)) {
    lists.rank = 2;
    lists.shape = {lists.shape[0], lists.shape[2], 0, 0};
  }
  bench.run(ops::AttentionSparseDecode{.q = row_of(of.q),
                                       .k = of.k,
                                       .v = of.v,
                                       .length = of.length,
                                       .out = row_of(of.out),
                                       .blocks = lists,
                                       .mask = choice.mask,
                                       .k_scales = of.k_scales,
                                       .v_scales = of.v_scales});
}

int run(const Options& options) {
  const auto cache = element_type_from(options.cache);
  if (!cache || (*cache != ElementType::float32 && *cache != ElementType::float16 && *cache != ElementType::int8)) {
    throw Error("--cache " + options.cache + ": keys and values are float32, float16 or int8");
  }
  Bench bench(options);
  fmt::print("{}: {} keys in {}, {} heads over {} of {}\n", options.device, options.keys, options.cache, kHeads,
             kKvHeads, kHeadDim);
  for (const Case& one :
       {Case{"whole prompt", options.keys}, Case{"last pass", std::min(kPass, options.keys)}, Case{"token", 1}}) {
    const Inputs of = inputs_of(bench, *cache, one.queries, options.keys);
    const double dense_us = bench.time_us([&] { run_dense(bench, of); });
    fmt::print("{:<13} dense {:>10.1f} us\n", one.name, dense_us);
    for (const std::string& text : options.attention) {
      const AttentionChoice choice = parse_attention(text);
      check_attention(choice, options.keys);
      const ChoiceMemory memory = memory_of(bench, choice, of);
      const double us = bench.time_us([&] { run_sparse(bench, choice, memory, of); });
      fmt::print("{:<13} {} {:>10.1f} us, {:.2f} times as fast\n", "", choice.name(), us, dense_us / us);
    }
  }
  if (bench.fell_back()) {
    fmt::print(stderr,
               "sparse_attention: some of it was computed by the processor, so the times are not the device's\n");
    return 1;
  }
  return 0;
}

int command(int argc, char** argv) {
  Options options;
  CLI::App app("Block-sparse attention against dense attention");
  app.add_option("--device", options.device, "cuda:N, emulator or cpu")->capture_default_str();
  app.add_option("--target", options.target, "architecture to compile for");
  app.add_option("--db", options.database, "tuned database");
  app.add_option("--cache", options.cache, "type of keys and values")->capture_default_str();
  app.add_option("--attention", options.attention, "masks (repeatable)")->allow_extra_args(false);
  app.add_option("--keys", options.keys, "rows of the cache")->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--repeats", options.repeats, "runs, of which the fastest counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sparse_attention: %s\n", error.what());
    return 1;
  }
}
