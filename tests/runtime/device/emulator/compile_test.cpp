#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "core/util/sanitizer.hpp"
#include "support.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

TEST(EmulatorCompile, AKernelErrorIsAResultThatNamesTheLine) {
  const CompileResult result =
      compile(source_of_text("extern \"C\" __global__ void k(int* out) {\n  extern __shared__ \n int s[];\n  out[0] = "
                             "missing;\n}\n"),
              "k");
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.reason.starts_with("given.cu:4:")) << result.reason;
  EXPECT_NE(result.reason.find("missing"), std::string::npos) << result.reason;
  EXPECT_FALSE(result.log.empty());
}

TEST(EmulatorCompile, AFunctionThatIsNotThereIsAnError) {
  const CompileResult result =
      compile(source_of_text("extern \"C\" __global__ void k(int* out) { *out = 1; }\n"), "other");
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.reason.find("other"), std::string::npos) << result.reason;
}

TEST(EmulatorCompile, MoreStaticSharedMemoryThanABlockMayHaveIsAnError) {
  const CompileResult result = compile(kernel_source("block.cu"), "too_much_shared");
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.reason, "too_much_shared has 52000 bytes of static shared memory, a block may have 49152");
}

TEST(EmulatorCompile, DefinesReachTheKernelAndHeadersAreRewritten) {
  KernelSource source = source_of_text(
      "#include \"../made/up.cuh\"\n#include \"inner/tile.cuh\"\n"
      "extern \"C\" __global__ void k(int* out) { out[threadIdx.x] = SCALE * up() + tile()[0]; }\n");
  source.headers = {
      {"../made/up.cuh", "#pragma once\n__device__ inline int up() { return 2; }\n"},
      {"inner/tile.cuh",
       "#pragma once\n__device__ inline int* tile() { extern __shared__ int t[]; t[0] = 1; return t; }\n"}};
  const CompileResult result = compile(source, "k", false, {"SCALE=20"});
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(result.binary.log, "");
  const auto device = open_emulated_device();
  const Buffer out = device->allocate(4);
  run(*device, device->load(result.binary), {{1, 1, 1}, {1, 1, 1}, 4}, out.data());
  EXPECT_EQ(to_host<int>(*device, out)[0], 41);
}

TEST(EmulatorCompile, ATemplateIsLaunchedWithItsArguments) {
  const KernelSource source = source_of_text(R"(namespace app {
template <typename E, int Threads> __global__ void reversed(const E* x, E* y) {
  __shared__ E fixed[Threads];
  extern __shared__ int dynamic[];
  fixed[threadIdx.x] = x[threadIdx.x];
  dynamic[threadIdx.x] = Threads - 1 - static_cast<int>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = fixed[dynamic[threadIdx.x]];
}
})");
  for (const bool sanitize : {false, true}) {
    const CompileResult result =
        compile(source, "app::reversed<T, 2 * WARPS>", sanitize, {"T=float64", "WARPS=2", "pascal=1"});
    ASSERT_TRUE(result.ok) << result.log;
    EXPECT_EQ(result.binary.resources.static_shared_bytes, 4 * 8);
    if (sanitize) {
      continue;  // only a process with AddressSanitizer loads it
    }
    const auto device = open_emulated_device();
    const Buffer x = to_device<double>(*device, {1.5, 2.5, 3.5, 4.5});
    const Buffer y = device->allocate(x.bytes());
    run(*device, device->load(result.binary), {{1, 1, 1}, {4, 1, 1}, 16}, x.data(), y.data());
    EXPECT_EQ(to_host<double>(*device, y), (std::vector<double>{4.5, 3.5, 2.5, 1.5}));
  }
}

TEST(EmulatorCompile, ACompilerThatIsMissingIsNamed) {
  const HostCompiler& working = compiler();
  const char* chosen = std::getenv("PASCALINE_HOST_CXX");
  const std::string before = chosen != nullptr ? chosen : "";
  ASSERT_EQ(::setenv("PASCALINE_HOST_CXX", "/no/such/compiler", 1), 0);
  EXPECT_THROW(
      {
        try {
          (void)HostCompiler::find();
        } catch (const EmulatorError& error) {
          EXPECT_NE(std::string(error.what()).find("/no/such/compiler"), std::string::npos) << error.what();
          throw;
        }
      },
      EmulatorError);
  ::setenv("PASCALINE_HOST_CXX", before.c_str(), 1);
  EXPECT_FALSE(working.version.empty());
}

// What becomes of a compiler that does what a shell script does.
CompileResult compile_with(const std::string& script) {
  const TemporaryFolder folder;
  const std::filesystem::path program = folder.path() / "compiler";
  std::ofstream(program) << "#!/bin/sh\n" << script;
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const KernelSource source = source_of_text("extern \"C\" __global__ void k(int* out) { *out = 1; }\n");
  CompileRequest request;
  request.source = &source;
  request.function = "k";
  request.kind = BinaryKind::host_object;
  request.architecture = "host";
  return compile_for_emulator({program.string(), "g++", "12"}, request);
}

/// A cap on this process's address space, and on that of the processes it starts, for as long as it lives.
class AddressSpaceCap {
 public:
  AddressSpaceCap() {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    bytes_ = std::max<std::uint64_t>(pages * 4096 + (128U << 20U), 512U << 20U);
    const rlimit capped{bytes_, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &capped);
  }
  AddressSpaceCap(const AddressSpaceCap&) = delete;
  AddressSpaceCap& operator=(const AddressSpaceCap&) = delete;
  ~AddressSpaceCap() { ::setrlimit(RLIMIT_AS, &before_); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  rlimit before_{};
  std::uint64_t bytes_ = 0;
};

constexpr const char* kCrash = "c++: internal compiler error: Segmentation fault signal terminated program cc1plus";

TEST(EmulatorCompile, ACompilerThatCrashesIsNoVerdictOnTheSource) {
  const CompileResult told = compile_with(fmt::format("echo '{}'; echo 'Please submit a report'; exit 4\n", kCrash));
  EXPECT_TRUE(told.crashed);
  EXPECT_EQ(told.reason, kCrash);
  const CompileResult killed = compile_with("kill -SEGV $$\n");
  EXPECT_TRUE(killed.crashed);
  EXPECT_NE(killed.reason.find("was ended by signal 11 (Segmentation fault)"), std::string::npos) << killed.reason;
  const CompileResult wrong = compile_with("echo 'given.cu:1: error: no'; exit 1\n");
  EXPECT_FALSE(wrong.ok);
  EXPECT_FALSE(wrong.crashed);
  EXPECT_EQ(wrong.reason, "given.cu:1: error: no");
}

// The words of GCC 12, of its linker driver and of Clang 14 for a part of theirs that a signal ended, whichever it was.
TEST(EmulatorCompile, ASignalToAPartOfTheCompilerIsNoVerdictOnTheSource) {
  for (const char* line : {"c++: fatal error: Interrupt signal terminated program cc1plus",
                           "c++: fatal error: Terminated signal terminated program as",
                           "c++: fatal error: Killed signal terminated program cc1plus",
                           "collect2: fatal error: ld terminated with signal 2 [Interrupt]",
                           "clang: error: unable to execute command: Interrupt\n"
                           "clang: error: linker command failed due to signal (use -v to see invocation)"}) {
    const CompileResult result = compile_with(fmt::format("printf '%s\n' '{}'; exit 1\n", line));
    EXPECT_TRUE(result.crashed) << line;
    EXPECT_NE(std::string(line).find(result.reason), std::string::npos) << result.reason;
  }
}

// The system's compiler itself, its parts interrupted while they work.
TEST(EmulatorCompile, AnInterruptedCompilerCrashed) {
  if (compiler().name == "clang++") {
    GTEST_SKIP() << "Clang has no -wrapper, and compiles in the driver's own process";
  }
  const CompileResult result =
      compile_with(fmt::format("exec {} -wrapper sh,-c,'kill -INT $$' \"$@\"\n", compiler().program));
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.crashed) << result.reason;
}

TEST(EmulatorCompile, ACompilerThatSaysSoIsShortOfMemory) {
  for (const char* words : {"cc1plus: out of memory allocating 65528 bytes after a total of 3076096 bytes",
                            "virtual memory exhausted: Cannot allocate memory", "LLVM ERROR: out of memory",
                            "terminate called after throwing an instance of 'std::bad_alloc'"}) {
    const CompileResult result = compile_with(fmt::format("echo \"{}\"; exit 1\n", words));
    EXPECT_TRUE(result.crashed) << words;
    EXPECT_EQ(result.reason, "g++ ran out of memory on given.cu") << words;
  }
}

// A stack that cannot grow within the cap ends a compiler by a segmentation fault.
TEST(EmulatorCompile, ACompilerThatCrashesNearItsCapIsShortOfMemory) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "AddressSanitizer reserves more address space than any cap leaves";
  }
  const AddressSpaceCap cap;
  const auto holds = [&](double share) {
    return fmt::format("head -c {0} /dev/zero | tail -c {0} >/dev/null; ",
                       static_cast<std::uint64_t>(share * static_cast<double>(cap.bytes())));
  };
  for (const std::string& end : {fmt::format("echo '{}'; exit 4\n", kCrash), std::string("kill -SEGV $$\n")}) {
    const CompileResult large = compile_with(holds(0.6) + end);
    EXPECT_TRUE(large.crashed);
    EXPECT_EQ(large.reason, "g++ ran out of memory on given.cu");
    const CompileResult small = compile_with(holds(0.1) + end);
    EXPECT_TRUE(small.crashed);
    EXPECT_NE(small.reason.find("Segmentation fault"), std::string::npos) << "a fault of its own: " << small.reason;
  }
  const CompileResult wrong = compile_with(holds(0.6) + "echo 'given.cu:1: error: no'; exit 1\n");
  EXPECT_FALSE(wrong.crashed) << "a large compiler's verdict on the source";
  EXPECT_EQ(wrong.reason, "given.cu:1: error: no");
}

// Whoever made the request: what is no name or option must not reach the code or the compiler.
TEST(EmulatorCompile, NothingButNamesAndKnownOptionsReachesTheCompiler) {
  const KernelSource source = source_of_text("extern \"C\" __global__ void k(int* out) { *out = 1; }\n");
  CompileRequest good;
  good.source = &source;
  good.function = "k";
  good.defines = {"SCALE=20", "T=float32", "RATIO=1e-05"};
  good.options = {"--std=c++20", "--ptxas-options=-v", "-DX=1"};
  good.kind = BinaryKind::host_object;
  good.architecture = "host";
  EXPECT_TRUE(compile_for_emulator(compiler(), good).ok);
  good.options.front() = "--std=c++14";
  EXPECT_TRUE(compile_for_emulator(compiler(), good).ok) << "the device's own headers need C++17";
  const auto expect_refused = [&](const CompileRequest& request, const std::string& part) {
    try {
      (void)compile_for_emulator(compiler(), request);
      ADD_FAILURE() << "compiled with " << part;
    } catch (const EmulatorError& error) {
      EXPECT_NE(std::string(error.what()).find("'" + part + "'"), std::string::npos) << error.what();
    }
  };
  for (const char* function : {"k);int y=(1", "", "int", "k k"}) {
    CompileRequest request = good;
    request.function = function;
    expect_refused(request, function);
  }
  for (const char* define : {"A B=1", "A=f()", "=1", "A=\"x\"", "A="}) {
    CompileRequest request = good;
    request.defines.emplace_back(define);
    expect_refused(request, define);
  }
  for (const char* option : {"-I/tmp", "--include-path=/tmp", "-include", "-fplugin=./x.so", "@args", "-o", "-B."}) {
    CompileRequest request = good;
    request.options.emplace_back(option);
    expect_refused(request, option);
  }
}

TEST(EmulatorCompile, AFoldersNameCannotBecomeCode) {
  const TemporaryFolder folder;
  KernelSource source = source_of_text("extern \"C\" __global__ void k(int* out) { *out = 1; }\n");
  source.file = folder.path() / "a\n#error it is read as code\n" / "k.cu";
  const CompileResult result = compile(source, "k");
  EXPECT_TRUE(result.ok) << result.log;
}

// `-H` prints a line for each header that is read; one for a precompiled header begins with "!".
TEST(EmulatorCompile, HeadersAreParsedOnceAndAgainWhereTheFileIsDamaged) {
  if (compiler().name != "g++") {
    GTEST_SKIP() << "only GCC's are precompiled, not those of " << compiler().name;
  }
  const TemporaryFolder folder;
  const std::filesystem::path program = folder.path() / "compiler";
  std::ofstream(program) << "#!/bin/sh\nexec '" << compiler().program << "' -H \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const HostCompiler loud{program.string(), "g++", compiler().version};
  const KernelSource source = source_of_text(
      "#include <cmath>\n#include <cuda_fp16.h>\n"
      "extern \"C\" __global__ void k(float* out) { *out = std::sqrt(SIZE * __half2float(__float2half(2.0f))); }\n");
  CompileRequest request;
  request.source = &source;
  request.function = "k";
  request.defines = {"SIZE=8"};
  request.kind = BinaryKind::host_object;
  request.architecture = "host";
  const auto precompiled = [](const CompileResult& result) {
    return result.binary.log.starts_with("! ") || result.binary.log.find("\n! ") != std::string::npos;
  };
  const CompileResult nowhere = compile_for_emulator(loud, request);
  request.parsed_headers = folder.path() / "parsed";
  const CompileResult first = compile_for_emulator(loud, request);
  const CompileResult second = compile_for_emulator(loud, request);
  ASSERT_TRUE(nowhere.ok && first.ok && second.ok) << second.log;
  EXPECT_FALSE(precompiled(nowhere) || precompiled(first));
  EXPECT_TRUE(precompiled(second)) << second.binary.log;
  EXPECT_EQ(second.binary.code, nowhere.binary.code);

  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(request.parsed_headers)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  ASSERT_EQ(files.size(), 1U);
  std::filesystem::resize_file(files.front(), std::filesystem::file_size(files.front()) / 2);
  const CompileResult damaged = compile_for_emulator(loud, request);
  ASSERT_TRUE(damaged.ok) << damaged.reason << "\n" << damaged.log;
  EXPECT_FALSE(precompiled(damaged));
  EXPECT_EQ(std::filesystem::file_size(files.front()), 0U) << "that it does not serve is not found out each time";
  EXPECT_TRUE(compile_for_emulator(loud, request).ok);

  // Files of another version of the headers are of no more use.
  const std::filesystem::path old = request.parsed_headers / "0123456789abcdef";
  std::filesystem::create_directories(old);
  std::filesystem::remove(files.front());
  EXPECT_TRUE(compile_for_emulator(loud, request).ok);
  EXPECT_TRUE(precompiled(compile_for_emulator(loud, request)));
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST(EmulatorCompile, TheShimHasAHash) { EXPECT_EQ(emulator_shim_hash().size(), 32U); }

}  // namespace
}  // namespace pascaline::testing
