#include <sys/resource.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <new>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/compile/compile_protocol.hpp"
#include "tuner/ipc/worker_process.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

std::string line_of(const json& message) { return message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

KernelSource read_source(const json& message) {
  KernelSource source;
  source.file = message.at("file").get<std::string>();
  source.text = message.at("text").get<std::string>();
  source.hash = message.at("hash").get<std::string>();
  for (const json& header : message.at("headers")) {
    source.headers.emplace_back(header.at(0).get<std::string>(), header.at(1).get<std::string>());
  }
  return source;
}

/// Answers the requests of one parent.
class CompileServer {
 public:
  CompileServer(const std::filesystem::path& cache_folder, std::string architecture, std::string nvrtc)
      : cache_(cache_folder), architecture_(std::move(architecture)), nvrtc_(std::move(nvrtc)) {}

  /// The reply to a message; nothing for one that asks for none.
  std::optional<json> answer(const json& message) {
    if (message.contains("text")) {
      KernelSource source = read_source(message);
      sources_.insert_or_assign(source.hash, std::move(source));
      return std::nullopt;
    }
    const json& id = message.at("id");
    try {
      return compile(id, message);
    } catch (const std::bad_alloc&) {
      return json{{"id", id}, {"crashed", "it ran out of memory"}};
    } catch (const std::exception& error) {
      return json{{"id", id}, {"fault", error.what()}};
    }
  }

 private:
  json compile(const json& id, const json& message) {
    CompileRequest request;
    request.source = &sources_.at(message.at("source").get<std::string>());
    request.function = message.at("function").get<std::string>();
    request.defines = message.at("defines").get<std::vector<std::string>>();
    request.options = message.at("options").get<std::vector<std::string>>();
    request.kind = static_cast<BinaryKind>(message.at("kind").get<int>());
    request.architecture = message.at("architecture").get<std::string>();
    request.address_sanitizer = message.at("address_sanitizer").get<bool>();
    if (!toolchain_) {
      toolchain_.emplace(Toolchain::find(architecture_, nvrtc_));
    }
    const CompileResult result = cache_.get(*toolchain_, request);
    if (result.crashed) {
      return {{"id", id}, {"crashed", result.reason}};
    }
    json reply{{"id", id},
               {"key", toolchain_->cache_key(request)},
               {"compile_ms", result.binary.compile_ms},
               {"from_cache", result.binary.from_cache}};
    // A disk that does not keep it must not cost the variant.
    if (!result.binary.from_cache && !cache_.find(reply["key"].get<std::string>())) {
      reply["result"] = {{"ok", result.ok}, {"reason", result.reason}, {"log", result.log}};
      reply["binary"] = packed(result.binary);
    }
    return reply;
  }

  CubinCache cache_;
  std::string architecture_;
  std::string nvrtc_;
  std::optional<Toolchain> toolchain_;
  std::map<std::string, KernelSource> sources_;
};

// Compilers that this process starts inherit the cap. AddressSanitizer reserves more address space than any cap leaves.
void cap_memory([[maybe_unused]] std::uint64_t bytes) {
#ifndef __SANITIZE_ADDRESS__
  if (bytes > 0) {
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
  }
#endif
}

}  // namespace

std::string source_message(const KernelSource& source) {
  json headers = json::array();
  for (const auto& [name, text] : source.headers) {
    headers.push_back({name, text});
  }
  return line_of({{"file", source.file.string()}, {"text", source.text}, {"hash", source.hash}, {"headers", headers}});
}

std::string request_message(std::uint64_t id, const CompileRequest& request) {
  return line_of({{"id", id},
                  {"source", request.source->hash},
                  {"function", request.function},
                  {"defines", request.defines},
                  {"options", request.options},
                  {"kind", static_cast<int>(request.kind)},
                  {"architecture", request.architecture},
                  {"address_sanitizer", request.address_sanitizer}});
}

int run_compile_worker(const std::filesystem::path& cache_folder, const std::string& architecture,
                       const std::string& nvrtc, std::uint64_t memory_bytes) {
  end_session_with_parent();
  cap_memory(memory_bytes);
  const ParentPipe parent;
  try {
    CompileServer server(cache_folder, architecture, nvrtc);
    for (std::string line; std::getline(std::cin, line);) {
      const json message = json::parse(line, nullptr, false);
      if (message.is_discarded()) {
        return 1;
      }
      if (const auto reply = server.answer(message)) {
        parent.say(line_of(*reply));
      }
    }
    return 0;
  } catch (const std::exception&) {
    if (parent_is_gone()) {
      return 1;  // nobody is left to whom this would be news
    }
    throw;
  }
}

}  // namespace pascaline
