// The least time that a launch takes to read so many bytes of a GPU's memory, as a graph of launches that follow each
// other: nothing is computed but a sum of words, so that no matrix-vector product over these bytes can be faster. An
// empty kernel's time stands beside it. Grids, threads and loads in flight are tried, the fastest is told.
//
//   nvcc -O3 -arch=native -o read_floor bench/read_floor.cu && ./read_floor [MEGABYTES]...

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kLaunches = 28;  // of a graph, each with memory of its own, as a model's layers
constexpr int kGraphs = 21;    // the median of which counts

void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "read_floor: %s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

__global__ void nothing(const uint4*, long long, unsigned*) {}

// Every thread has kLoads loads of 16 bytes on their way before it adds up the first.
template <int kLoads>
__global__ void read(const uint4* data, long long words, unsigned* result) {
  unsigned sum = 0;
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += threads * kLoads) {
    uint4 held[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const long long at = i + load * threads;
      held[load] = at < words ? __ldg(data + at) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      sum ^= held[load].x ^ held[load].y ^ held[load].z ^ held[load].w;
    }
  }
  if (sum == 0x12345678u) {  // never so, but the compiler cannot know
    *result = sum;
  }
}

using Kernel = void (*)(const uint4*, long long, unsigned*);

// Microseconds a launch.
double time_us(Kernel kernel, int blocks, int threads, const uint4* data, long long words, unsigned* result) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int launch = 0; launch < kLaunches; ++launch) {
    kernel<<<blocks, threads, 0, stream>>>(data + launch * words, words, result);
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t ready = nullptr;
  check(cudaGraphInstantiate(&ready, graph, 0));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < kGraphs + 2; ++i) {
    check(cudaEventRecord(begin, stream));
    check(cudaGraphLaunch(ready, stream));
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) {
      times.push_back(ms * 1000 / kLaunches);
    }
  }
  std::nth_element(times.begin(), times.begin() + kGraphs / 2, times.end());
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  check(cudaGraphExecDestroy(ready));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  return times[kGraphs / 2];
}

}  // namespace

int main(int count, char** words) {
  std::vector<double> sizes;
  for (int i = 1; i < count; ++i) {
    sizes.push_back(std::atof(words[i]));
  }
  if (sizes.empty()) {
    // qkv, output, gate and up, down of Qwen3-VL-2B in q4_k, q8_0 and float16.
    sizes = {4.72, 8.91, 16.78, 2.36, 4.46, 8.39, 14.16, 26.74, 50.33, 7.08, 13.37, 25.17};
  }
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d SMs\n", device.name, device.multiProcessorCount);
  unsigned* result = nullptr;
  check(cudaMalloc(&result, sizeof(unsigned)));
  for (const double megabytes : sizes) {
    const long long loads = static_cast<long long>(megabytes * 1e6 / sizeof(uint4));
    uint4* data = nullptr;
    check(cudaMalloc(&data, loads * sizeof(uint4) * kLaunches));
    check(cudaMemset(data, 0x5a, loads * sizeof(uint4) * kLaunches));
    double best = 1e30;
    int best_blocks = 0;
    int best_threads = 0;
    int best_loads = 0;
    const auto attempt = [&](int in_flight, Kernel kernel) {
      for (const int threads : {128, 256, 512, 1024}) {
        const long long all = (loads + threads * in_flight - 1) / (threads * in_flight);
        for (const long long blocks :
             {static_cast<long long>(device.multiProcessorCount), 2LL * device.multiProcessorCount,
              4LL * device.multiProcessorCount, 8LL * device.multiProcessorCount, all}) {
          if (blocks > all) {
            continue;
          }
          const double us = time_us(kernel, static_cast<int>(blocks), threads, data, loads, result);
          if (us < best) {
            best = us;
            best_blocks = static_cast<int>(blocks);
            best_threads = threads;
            best_loads = in_flight;
          }
        }
      }
    };
    attempt(1, read<1>);
    attempt(2, read<2>);
    attempt(4, read<4>);
    attempt(8, read<8>);
    attempt(16, read<16>);
    const double empty = time_us(nothing, device.multiProcessorCount, 256, data, loads, result);
    std::printf("%8.2f MB: %6.2f us, %5.0f GB/s (%d blocks of %d, %d loads in flight); empty kernel %.2f us\n",
                megabytes, best, megabytes * 1e3 / best, best_blocks, best_threads, best_loads, empty);
    check(cudaFree(data));
  }
  return 0;
}
