#include <fmt/format.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tuner/cli/model_options.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct GenerateCommandOptions {
  ModelCommandOptions model;
  SamplingCommandOptions sampling;
  std::string prompt;
  std::string system;
  std::vector<std::string> images;
  bool as_json = false;
};

std::vector<ChatMessage> messages_of(const GenerateCommandOptions& options) {
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) {
    messages.push_back(text_message(ChatRole::system, options.system));
  }
  ChatMessage message;
  for (std::size_t i = 0; i < options.images.size(); ++i) {
    message.parts.push_back({ChatPart::Kind::image, {}});
  }
  message.parts.push_back({ChatPart::Kind::text, options.prompt});
  messages.push_back(std::move(message));
  return messages;
}

json to_json(const Answer& answer, Session& session) {
  return {{"text", answer.text},
          {"tokens", answer.tokens},
          {"end", name_of(answer.end)},
          {"prompt_tokens", answer.prompt_tokens},
          {"prompt_ms", answer.prompt_ms},
          {"decode_ms", answer.decode_ms},
          {"tokens_per_s", answer.tokens_per_second()},
          {"device", session.device_name()}};
}

int generate(const GenerateCommandOptions& options) {
  const auto session = options.model.open();
  const AnswerOptions how = options.sampling.answer_options(*session);
  std::vector<Patches> pictures;
  for (const std::string& file : options.images) {
    pictures.push_back(session->read_picture(file));
  }
  catch_interrupts();
  const Answer answer = session->ask(messages_of(options), pictures, how, [&](std::string_view piece) {
    if (!options.as_json) {
      fmt::print("{}", piece);
      std::fflush(stdout);
    }
    return !interrupted();
  });
  if (options.as_json) {
    fmt::print("{}\n", to_json(answer, *session).dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    fmt::print("\n");
  }
  return interrupted() ? kInterrupted : kSuccess;
}

}  // namespace

void add_generate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("generate", "Answer one prompt, with pictures if there are any");
  const auto options = std::make_shared<GenerateCommandOptions>();
  options->model.add_to(*command);
  command->add_option("-p,--prompt", options->prompt, "What the user says")->required();
  command->add_option("--system", options->system, "What the system says first");
  command->add_option("-i,--image", options->images, "A PNG or JPEG picture before the prompt (repeatable)");
  options->sampling.add_to(*command);
  command->add_flag("--json", options->as_json, "Print JSON when the answer is complete");
  command->footer(
      "Examples:\n"
      "  pascaline generate --model Qwen3-VL-2B-Instruct --prompt 'Name three rivers.'\n"
      "  pascaline generate --model Qwen3-VL-2B-Instruct --image cat.jpg --prompt 'Describe.' --greedy --json");
  command->callback([&action, options] { action = [options] { return generate(*options); }; });
}

}  // namespace pascaline::cli
