#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <new>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/util/process.hpp"
#include "core/util/sanitizer.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "tuner/compile/compile_messages.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/ipc/frames.hpp"
#include "tuner/ipc/worker_process.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

/// Answers the messages of one parent.
class CompileServer {
 public:
  CompileServer(const std::filesystem::path& cache_folder, std::string architecture, std::string nvrtc)
      : cache_(cache_folder), architecture_(std::move(architecture)), nvrtc_(std::move(nvrtc)) {}

  /// The answer to a message; nothing for one that asks for none. Throws Error for one that it does not know.
  std::optional<json> answer(const json& message) {
    const auto what = message.at("do").get<std::string>();
    if (what == "source") {
      KernelSource source = source_of(message);
      sources_.insert_or_assign(source.hash, std::move(source));
      return std::nullopt;
    }
    if (what != "compile") {
      throw Error("the compile worker was asked to do '" + what + "', which it does not know");
    }
    json reply;
    try {
      reply = compile(message);
    } catch (const std::bad_alloc&) {
      reply = {{"is", "crashed"}, {"reason", "it ran out of memory"}};
    } catch (const std::exception& error) {
      reply = {{"is", "fault"}, {"reason", error.what()}};
    }
    reply["id"] = message.at("id");
    return std::optional<json>(std::in_place, std::move(reply));
  }

 private:
  json compile(const json& message) {
    CompileRequest request = request_of(message);
    request.source = &sources_.at(message.at("source").get<std::string>());
    const Toolchain& toolchain = toolchain_for(request.compiler);
    const CompileResult result = cache_.get(toolchain, request);
    if (result.crashed) {
      return {{"is", "crashed"}, {"reason", result.reason}};
    }
    std::vector<std::string> keys;
    for (const CompileRequest& function : requests_of_functions(request)) {
      keys.push_back(toolchain.cache_key(function));
    }
    json reply{{"is", "compiled"},
               {"keys", keys},
               {"compile_ms", result.binary.compile_ms},
               {"from_cache", result.binary.from_cache}};
    // A disk that does not keep it must not cost the variant.
    if (!result.binary.from_cache && !cache_.find(keys)) {
      reply["result"] = result;
    }
    return reply;
  }

  // Opened when it is first asked for.
  const Toolchain& toolchain_for(const std::string& path) {
    const auto known = toolchains_.find(path);
    if (known != toolchains_.end()) {
      return known->second;
    }
    return toolchains_
        .emplace(path, path.empty() ? Toolchain::find(architecture_, nvrtc_) : Toolchain::open(architecture_, path))
        .first->second;
  }

  CubinCache cache_;
  std::string architecture_;
  std::string nvrtc_;
  std::map<std::string, Toolchain> toolchains_;  ///< by path; empty: the one that is meant where none is named
  std::map<std::string, KernelSource> sources_;
};

// Compilers that this process starts inherit the cap. AddressSanitizer reserves more address space than any cap leaves.
void cap_memory(std::uint64_t bytes) {
  if (bytes > 0 && !kAddressSanitizer) {
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
  }
}

}  // namespace

int run_compile_worker(const std::filesystem::path& cache_folder, const std::string& architecture,
                       const std::string& nvrtc, std::uint64_t memory_bytes) {
  end_session_with_parent();
  cap_memory(memory_bytes);
  MessageWriter writer;
  FrameReader reader;
  try {
    CompileServer server(cache_folder, architecture, nvrtc);
    while (const auto message = read_message(STDIN_FILENO, reader)) {
      if (const auto reply = server.answer(*message)) {
        writer.send(*reply);
      }
    }
    end_at_once();
  } catch (const std::exception&) {
    if (parent_is_gone()) {
      return 1;  // nobody is left to whom this would be news
    }
    throw;
  }
}

}  // namespace pascaline
