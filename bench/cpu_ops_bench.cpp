// The operations on the processor against what bounds them: a plain copy of memory for a decode step's products, and
// OpenBLAS by itself for a prefill's. Rates of one run are compared with each other only.

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/blas.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline {
namespace {

// Aligned memory with small values of a type, or of a format of matrices.
struct Tensor {
  Tensor(ElementType of, std::initializer_list<std::int64_t> shape) {
    const std::int64_t rows = *shape.begin();
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      count *= extent;
    }
    bytes = draw_matrix(of, rows, count / rows, Fill::uniform, -0.1, 0.1, 1);
    view = TensorView(bytes.data(), of, shape);
  }
  std::vector<std::byte> bytes;
  TensorView view;
};

void count_bytes(benchmark::State& state, std::int64_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
}

void count_flops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flops * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// Bytes read and written, by one memcpy a thread.
void copy_memory(benchmark::State& state) {
  constexpr std::int64_t kBytes = std::int64_t{96} << 20;
  const std::vector<std::byte> from(kBytes, std::byte{1});
  std::vector<std::byte> to(kBytes);
  for (auto _ : state) {
    worker_pool().run(kBytes, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2 * kBytes);
}
BENCHMARK(copy_memory)->UseRealTime();

// Bytes and values of the weight: gate and up projection of a layer of 2048, for `rows` tokens.
void matvec(benchmark::State& state, ElementType weight_type) {
  constexpr std::int64_t kRows = 12'288;
  constexpr std::int64_t kDepth = 2048;
  const std::int64_t m = state.range(0);
  const Tensor a(ElementType::float32, {m, kDepth});
  const Tensor weight(weight_type, {kRows, kDepth});
  const Tensor c(ElementType::float32, {m, kRows});
  for (auto _ : state) {
    ops::compute(ops::Matmul{a.view, weight.view, c.view});
  }
  count_bytes(state, static_cast<std::int64_t>(weight.bytes.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kRows * kDepth);
}
BENCHMARK_CAPTURE(matvec, float32, ElementType::float32)->Arg(1)->Arg(4)->UseRealTime();
BENCHMARK_CAPTURE(matvec, float16, ElementType::float16)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, bfloat16, ElementType::bfloat16)->Arg(1)->UseRealTime();
BENCHMARK_CAPTURE(matvec, float16x, ElementType::float16x)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, q8_0, ElementType::q8_0)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, q4_0, ElementType::q4_0)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, q4_1, ElementType::q4_1)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, q4_k, ElementType::q4_k)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, q6_k, ElementType::q6_k)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, int8_row, ElementType::int8_row)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(matvec, int4_g128, ElementType::int4_g128)->Arg(1)->Arg(4)->Arg(8)->UseRealTime();

constexpr std::int64_t kM = 512;
constexpr std::int64_t kN = 2048;
constexpr std::int64_t kK = 2048;

void blas_alone(benchmark::State& state) {
  const Tensor a(ElementType::float32, {kM, kK});
  const Tensor b(ElementType::float32, {kN, kK});
  const Tensor c(ElementType::float32, {kM, kN});
  const cpu::Blas& blas = cpu::Blas::get();
  blas.set_threads(worker_pool().threads());
  for (auto _ : state) {
    blas.multiply_transposed({kM, kN, kK, static_cast<const float*>(a.view.data), kK,
                              static_cast<const float*>(b.view.data), kK, static_cast<float*>(c.view.data), kN, 1, 0});
  }
  blas.set_threads(1);
  count_flops(state, 2.0 * kM * kN * kK);
}
BENCHMARK(blas_alone)->UseRealTime();

void matmul(benchmark::State& state, ElementType weight_type) {
  const std::int64_t m = state.range(0);
  const Tensor a(ElementType::float32, {m, kK});
  const Tensor b(weight_type, {kN, kK});
  const Tensor c(ElementType::float32, {m, kN});
  for (auto _ : state) {
    ops::compute(ops::Matmul{a.view, b.view, c.view});
  }
  count_flops(state, 2.0 * static_cast<double>(m) * kN * kK);
}
BENCHMARK_CAPTURE(matmul, float32, ElementType::float32)->Arg(kM)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(matmul, float16, ElementType::float16)->Arg(kM)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(matmul, float16x, ElementType::float16x)->Arg(kM)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(matmul, q8_0, ElementType::q8_0)->Arg(kM)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(matmul, q4_k, ElementType::q4_k)->Arg(kM)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(matmul, q6_k, ElementType::q6_k)->Arg(kM)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(matmul, int8_row, ElementType::int8_row)->Arg(kM)->Arg(64)->UseRealTime();

void attention_prefill(benchmark::State& state, ElementType cache) {
  const std::int64_t length = state.range(0);
  const Tensor q(ElementType::float32, {length, 16, 128});
  const Tensor k(cache, {length, 8, 128});
  const Tensor v(cache, {length, 8, 128});
  const Tensor out(ElementType::float32, {length, 16, 128});
  for (auto _ : state) {
    ops::compute(ops::AttentionPrefill{q.view, k.view, v.view, out.view, {}, true});
  }
  const auto keys = static_cast<double>(length);
  count_flops(state, 4 * 16 * 128 * keys * (keys + 1) / 2);
}
BENCHMARK_CAPTURE(attention_prefill, float32, ElementType::float32)->Arg(512)->Arg(2048)->UseRealTime();
BENCHMARK_CAPTURE(attention_prefill, float16, ElementType::float16)->Arg(512)->UseRealTime();

// Bytes of the cache.
void attention_decode(benchmark::State& state, ElementType cache) {
  const std::int64_t keys = state.range(0);
  const Tensor q(ElementType::float32, {16, 128});
  const Tensor k(cache, {keys, 8, 128});
  const Tensor v(cache, {keys, 8, 128});
  const Tensor out(ElementType::float32, {16, 128});
  auto length = static_cast<std::int32_t>(keys);
  for (auto _ : state) {
    ops::compute(ops::AttentionDecode{q.view, k.view, v.view, {&length, ElementType::int32, {1}}, out.view});
  }
  count_bytes(state, static_cast<std::int64_t>(k.bytes.size() + v.bytes.size()));
}
BENCHMARK_CAPTURE(attention_decode, float16, ElementType::float16)->Arg(512)->Arg(32'768)->UseRealTime();

void rmsnorm_row(benchmark::State& state) {
  const Tensor x(ElementType::float32, {1, 2048});
  const Tensor weight(ElementType::float32, {2048});
  const Tensor y(ElementType::float32, {1, 2048});
  for (auto _ : state) {
    ops::compute(ops::Rmsnorm{x.view, weight.view, y.view, {}});
  }
}
BENCHMARK(rmsnorm_row)->UseRealTime();

// What handing an operation to the threads costs, one after the other as in a decode step.
void hand_out(benchmark::State& state) {
  for (auto _ : state) {
    worker_pool().run(64, 1, [](std::int64_t begin, std::int64_t) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(hand_out)->UseRealTime();

// The same by starting threads for it.
void start_threads(benchmark::State& state) {
  for (auto _ : state) {
    WorkerPool pool(worker_pool().threads());
    pool.run(64, 1, [](std::int64_t begin, std::int64_t) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(start_threads)->UseRealTime();

}  // namespace
}  // namespace pascaline
