#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/model/answer_json.hpp"
#include "app/model/model_options.hpp"
#include "app/model/thermal_text.hpp"
#include "cli/command.hpp"
#include "model/image/decode.hpp"

namespace pascaline::cli {
namespace {

struct GenerateCommandOptions {
  ModelCommandOptions model;
  SamplingCommandOptions sampling;
  std::string prompt;
  std::string system;
  std::vector<std::string> images;
  bool is_raw = false;
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

// What the user asked for, checked before anything is loaded.
struct PreparedRequest {
  ChatPrompt prompt;
  AnswerOptions how;
};

PreparedRequest prepare(const GenerateCommandOptions& options, const ModelFolder& model) {
  PreparedRequest request;
  request.how = options.sampling.answer_options(model);
  std::vector<Image> images;
  if (!options.images.empty()) {
    (void)model.preprocessor();
  }
  for (const std::string& file : options.images) {
    images.push_back(read_image(file));
    note_image(images.back());
  }
  PromptLimits limits = options.model.prompt_limits(model);
  limits.answer = options.sampling.max_tokens.value_or(1);
  request.prompt = options.is_raw ? make_raw_prompt(model, options.prompt, limits)
                                  : make_prompt(model, messages_of(options), images, limits);
  const auto length = static_cast<std::int64_t>(request.prompt.tokens.size());
  request.how.max_tokens = std::min(request.how.max_tokens, limits.context - length);
  note_fitted(request.prompt.images, limits.context);
  return request;
}

// An answer that does not end by itself should not pass for one that does.
void note_end(const Answer& answer) {
  if (answer.end == AnswerEnd::max_tokens) {
    fmt::print(stderr, "pascaline: the answer was cut off after {} tokens; allow more with --max-tokens or --context\n",
               answer.tokens.size());
  } else if (answer.end == AnswerEnd::context) {
    fmt::print(stderr, "pascaline: the answer was cut off because the context is full; allow more with --context\n");
  }
}

int generate(const GenerateCommandOptions& options) {
  ModelFolder folder = options.model.read_folder(options.is_raw ? ModelParts::words : ModelParts::all);
  PreparedRequest request = prepare(options, folder);
  ModelRequest needed = request.prompt.request(request.how.max_tokens);
  needed.is_all = true;
  if (options.model.plan) {
    options.model.show_plan(folder, needed, options.as_json);
    return kSuccess;
  }
  const auto session = options.model.open(std::move(folder), needed);
  if (!options.as_json) {
    tell_thermal_events(*session);  // before the answer begins
  }
  catch_interrupts();
  request.how.interrupted = [] { return interrupted().load(); };
  const Answer answer =
      session->complete(request.prompt.tokens, request.prompt.images.images, request.how, [&](std::string_view piece) {
        if (!options.as_json) {
          print_piece(piece);
        }
        return !interrupted();
      });
  if (options.as_json) {
    fmt::print("{}\n", json_text(answer_json(answer, *session), false));
  } else {
    fmt::print("\n");
    std::fflush(stdout);
    note_end(answer);
    note_thermal(*session);
  }
  return interrupted() ? kInterrupted : kSuccess;
}

void add_generate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("generate", "Answer one prompt, optionally with images");
  const auto options = std::make_shared<GenerateCommandOptions>();
  options->model.add_to(*command);
  options->model.add_residency_to(*command);
  options->model.add_template_to(*command);
  command->add_option("-p,--prompt", options->prompt, "What the user says")->required();
  CLI::Option* system = command->add_option("--system", options->system, "What the system says first");
  CLI::Option* images =
      command->add_option("-i,--image", options->images, "A PNG, JPEG or WebP image before the prompt (repeatable)");
  command
      ->add_flag("--raw", options->is_raw,
                 "Continue the prompt as it is, without a chat template: it begins with the token of beginning where "
                 "the model's texts do, and special tokens that are spelled out in it count")
      ->excludes(system, images, command->get_option("--template"), command->get_option("--max-image-tokens"));
  options->sampling.add_to(*command);
  command->add_flag("--json", options->as_json, "Print JSON when the answer is complete");
  command->footer(
      "Examples:\n"
      "  pascaline generate --model Qwen3-VL-2B-Instruct --prompt 'Name three rivers.'\n"
      "  pascaline generate --model Qwen3-VL-2B-Instruct --image cat.jpg --prompt 'Describe.' --greedy --json\n"
      "  pascaline generate --model SmolLM2-135M-Instruct.Q4_1.gguf --greedy --prompt 'What is photosynthesis?'\n"
      "  pascaline generate --model Qwen3-VL-2B-Q4_K_M.gguf --mmproj mmproj-Qwen3-VL-2B-F16.gguf -i cat.jpg -p "
      "'Describe.'\n"
      "  pascaline generate --model SmolLM2-135M-Instruct.Q4_1.gguf --raw --prompt 'Once upon a time' -n 40");
  command->callback([&action, options] { action = [options] { return generate(*options); }; });
}

const Command kGenerateCommand(Heading::models, 1, add_generate_command);

}  // namespace

}  // namespace pascaline::cli
