#include "tuner/compile/compile_messages.hpp"

#include <string>

namespace pascaline {

using nlohmann::json;

json source_message(const KernelSource& source) {
  return {{"do", "source"},      {"file", source.file.string()}, {"text", source.text},
          {"hash", source.hash}, {"headers", source.headers},    {"folders", source.folders}};
}

KernelSource source_of(const json& message) {
  KernelSource source;
  source.file = message.at("file").get<std::string>();
  message.at("text").get_to(source.text);
  message.at("hash").get_to(source.hash);
  message.at("headers").get_to(source.headers);
  message.at("folders").get_to(source.folders);
  return source;
}

namespace {

json composite_message(const std::optional<CompositeType>& type) {
  if (!type) {
    return nullptr;
  }
  json members = json::array();
  for (const CompositeType::Member& member : type->members) {
    members.push_back({member.name, static_cast<int>(member.type), member.offset});
  }
  return {type->name, std::move(members), type->end, type->alignment, type->is_vector};
}

std::optional<CompositeType> composite_of(const json& message) {
  if (message.is_null()) {
    return std::nullopt;
  }
  CompositeType type{message.at(0), {}, message.at(2), message.at(3), message.at(4)};
  for (const json& member : message.at(1)) {
    type.members.push_back({member.at(0), static_cast<ElementType>(member.at(1).get<int>()), member.at(2)});
  }
  return type;
}

json arguments_message(const std::optional<std::vector<LaunchedArgument>>& arguments) {
  if (!arguments) {
    return nullptr;
  }
  json message = json::array();
  for (const LaunchedArgument& argument : *arguments) {
    message.push_back({argument.name, static_cast<int>(argument.role), static_cast<int>(argument.type),
                       composite_message(argument.composite)});
  }
  return message;
}

std::optional<std::vector<LaunchedArgument>> arguments_of(const json& message) {
  if (message.is_null()) {
    return std::nullopt;
  }
  std::vector<LaunchedArgument> arguments;
  for (const json& argument : message) {
    arguments.push_back({argument.at(0).get<std::string>(),
                         static_cast<LaunchedArgument::Role>(argument.at(1).get<int>()),
                         static_cast<ElementType>(argument.at(2).get<int>()), composite_of(argument.at(3))});
  }
  return arguments;
}

}  // namespace

json request_message(std::uint64_t id, const CompileRequest& request) {
  json then = json::array();
  for (const LaunchedFunction& function : request.then) {
    then.push_back({function.function, arguments_message(function.arguments), function.threads});
  }
  return {{"do", "compile"},
          {"id", id},
          {"source", request.source->hash},
          {"function", request.function},
          {"defines", request.defines},
          {"options", request.options},
          {"kind", static_cast<int>(request.kind)},
          {"architecture", request.architecture},
          {"compiler", request.compiler},
          {"address_sanitizer", request.address_sanitizer},
          {"translate_for", request.translation.architecture},
          {"translator", request.translation.library},
          {"translator_version", request.translation.version},
          {"arguments", arguments_message(request.arguments)},
          {"threads", request.threads},
          {"then", std::move(then)}};
}

CompileRequest request_of(const json& message) {
  CompileRequest request;
  message.at("function").get_to(request.function);
  message.at("defines").get_to(request.defines);
  message.at("threads").get_to(request.threads);
  message.at("options").get_to(request.options);
  request.kind = static_cast<BinaryKind>(message.at("kind").get<int>());
  message.at("architecture").get_to(request.architecture);
  message.at("compiler").get_to(request.compiler);
  message.at("address_sanitizer").get_to(request.address_sanitizer);
  message.at("translate_for").get_to(request.translation.architecture);
  message.at("translator").get_to(request.translation.library);
  message.at("translator_version").get_to(request.translation.version);
  request.arguments = arguments_of(message.at("arguments"));
  for (const json& function : message.at("then")) {
    request.then.push_back({function.at(0), arguments_of(function.at(1)), function.at(2)});
  }
  return request;
}

}  // namespace pascaline
