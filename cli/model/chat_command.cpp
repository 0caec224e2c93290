#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "app/model/answer_json.hpp"
#include "app/model/model_options.hpp"
#include "app/model/thermal_text.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/pasted_path.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/stop_check.hpp"
#include "model/image/decode.hpp"

namespace pascaline::cli {
namespace {

constexpr const char* kHelp =
    "/image FILE  add an image to your next message\n"
    "/clear       start a new conversation\n"
    "/stats       show how fast the last answer was, how full the context and how warm the card is\n"
    "/help        this list\n"
    "/quit        quit (so does end of input)\n";

// Tokens that a message takes beside its images, as far as is known before it is written.
constexpr std::int64_t kTextRoom = 64;

struct ChatCommandOptions {
  ModelCommandOptions model;
  SamplingCommandOptions sampling;
  std::string system;
  bool as_json = false;
};

// Where a conversation is told: answers and notes on standard output; or answers and errors there, as a line of JSON
// each, and notes on standard error.
class ChatOutput {
 public:
  explicit ChatOutput(bool as_json) : as_json_(as_json) {}

  [[nodiscard]] bool as_json() const noexcept { return as_json_; }
  void note(std::string_view text) const { fmt::print(as_json_ ? stderr : stdout, "{}", text); }
  void piece(std::string_view text) const {
    if (!as_json_) {
      print_piece(text);
    }
  }
  void answer(const Answer& answer, const ModelSession& session, std::int64_t depth) const {
    if (as_json_) {
      print_line(answer_json(answer, session, depth));
    } else {
      fmt::print("{}\n", answer.end == AnswerEnd::end_token ? "" : fmt::format(" [{}]", name_of(answer.end)));
    }
  }
  void error(const std::string& text) const {
    if (as_json_) {
      print_line({{"error", text}});
    } else {
      fmt::print("{}\n", text);
    }
  }

 private:
  static void print_line(const nlohmann::json& value) {
    fmt::print("{}\n", json_text(value, true));
    std::fflush(stdout);
  }

  bool as_json_;
};

// One conversation on a terminal, or of lines from a file.
class Conversation {
 public:
  Conversation(ModelSession& session, const AnswerOptions& how, const PromptLimits& limits, std::string system,
               const ChatOutput& output, bool on_terminal)
      : session_(&session),
        how_(how),
        limits_(limits),
        system_(std::move(system)),
        output_(&output),
        on_terminal_(on_terminal) {}

  // Whether to continue.
  bool take(const std::string& line) {
    if (line == "/quit" || line == "/exit") {
      return false;
    }
    if (line == "/image" || line.starts_with("/image ") || line.starts_with("/image\t")) {
      const std::string before = std::exchange(why_held_back_, "the image before it could not be read");
      add_image(line);
      why_held_back_ = before;
    } else if (line == "/clear") {
      clear();
    } else if (line == "/stats") {
      print_statistics();
    } else if (line == "/help") {
      output_->note(kHelp);
    } else if (!line.empty() && line.front() == '/') {
      why_held_back_ = "the command before it is unknown";
      output_->error(fmt::format("unknown command {}; /help lists the commands", line));
    } else if (!line.empty()) {
      answer(line);
    }
    return true;
  }

  // What helps where the context or the memory for it is full, beside a larger one.
  [[nodiscard]] const char* way_out() const {
    return begun_ || session_->model().length() > 0 || !images_.empty()
               ? "; /clear starts a new conversation with an empty context"
               : "";
  }

  // Whether a message was not answered, as an image or a command was missing.
  [[nodiscard]] bool has_skipped() const noexcept { return has_skipped_; }

  // What was to be said with images is said again without them, if it went wrong.
  void drop_images() {
    if (!images_.empty()) {
      output_->note("the images are dropped\n");
      images_.clear();
    }
  }

 private:
  void clear() {
    begun_ = false;
    why_held_back_.clear();
    images_.clear();
    last_.reset();
    session_->clear();
    output_->note("a new conversation\n");
  }

  void add_image(const std::string& line) {
    const std::size_t begin = line.find_first_not_of(" \t", 6);
    if (begin == std::string::npos) {
      throw Error("which file? /image FILE");
    }
    (void)session_->folder().preprocessor();  // a model that only reads text, before the file
    const Image image = read_image(pasted_path(line.substr(begin)));
    note_image(image);
    PromptLimits limits = limits_;
    limits.used = begun_ ? session_->model().length() : limits_.used;
    std::int64_t text = kTextRoom;
    for (const std::size_t tokens : tokens_of(images_, session_->config())) {
      text += static_cast<std::int64_t>(tokens);
    }
    FittedImages fitted = fit_prompt_images(session_->folder(), {&image, 1}, text, limits);
    note_fitted(fitted, limits.context);
    images_.push_back(std::move(fitted.images[0]));
    const PatchGrid& grid = images_.back().grid;
    output_->note(fmt::format("an image of {} x {} patches\n", grid.h, grid.w));
  }

  // Nobody reads the error about an image or a command in a pipe before the next message is sent, which was written for
  // that image, or after that command.
  [[nodiscard]] bool skip_message() {
    const std::string why = std::exchange(why_held_back_, {});
    if (why.empty() || on_terminal_) {
      return false;
    }
    images_.clear();
    output_->error("this message is not answered because " + why);
    has_skipped_ = true;
    return true;
  }

  void answer(const std::string& text) {
    if (skip_message()) {
      return;
    }
    ChatMessage message;
    message.parts.assign(images_.size(), {ChatPart::Kind::image, {}});
    message.parts.push_back({ChatPart::Kind::text, text});
    const auto print = [this](std::string_view piece) {
      output_->piece(piece);
      return !interrupted();
    };
    const std::int64_t depth = begun_ ? session_->model().length() : 0;
    if (begun_) {
      last_ = session_->continue_chat(message, images_, how_, print);
    } else {
      std::vector<ChatMessage> messages;
      if (!system_.empty()) {
        messages.push_back(text_message(ChatRole::system, system_));
      }
      messages.push_back(message);
      last_ = session_->ask(messages, images_, how_, print);
    }
    begun_ = true;
    images_.clear();
    how_.sampling.seed += 1;
    output_->answer(*last_, *session_, depth);
    if (last_->end == AnswerEnd::context) {
      output_->note(fmt::format("the context of {} tokens is full{}\n", limits_.context, way_out()));
    }
  }

  void print_statistics() {
    if (last_) {
      output_->note(fmt::format("prompt: {} in {:.0f} ms; answer: {}, {:.1f} per second; ",
                                counted(last_->prompt_tokens, "token"), last_->prompt_ms,
                                counted(last_->tokens.size(), "token"), last_->tokens_per_second()));
    } else {
      output_->note("no answer yet; ");
    }
    output_->note(
        fmt::format("context: {} of {} tokens\n", session_->model().length(), session_->model().options().context));
    output_->note(thermal_line(*session_));
  }

  ModelSession* session_;
  AnswerOptions how_;
  PromptLimits limits_;
  std::string system_;
  const ChatOutput* output_;
  bool on_terminal_;
  bool begun_ = false;
  std::string why_held_back_;  // of the next message; empty: it is not
  bool has_skipped_ = false;
  std::vector<Patches> images_;
  std::optional<Answer> last_;
};

// Tokens that a conversation begins with, which must fit the context, with one of the answer.
std::int64_t count_beginning(const ModelFolder& model, const std::string& system, const PromptLimits& limits) {
  std::vector<ChatMessage> messages{text_message(ChatRole::user, "")};
  if (!system.empty()) {
    messages.insert(messages.begin(), text_message(ChatRole::system, system));
  }
  return static_cast<std::int64_t>(make_prompt(model, messages, {}, limits).tokens.size());
}

int chat(const ChatCommandOptions& options) {
  ModelFolder folder = options.model.read_folder();
  AnswerOptions how = options.sampling.answer_options(folder);
  how.interrupted = [] { return interrupted().load(); };
  PromptLimits limits = options.model.prompt_limits(folder);
  limits.used = count_beginning(folder, options.system, limits);
  if (options.model.plan) {
    options.model.show_plan(folder, {}, options.as_json);
    return kSuccess;
  }
  const auto session = options.model.open(std::move(folder));
  const ChatOutput output(options.as_json);
  const bool on_terminal = isatty(STDIN_FILENO) != 0 && !options.as_json;
  Conversation conversation(*session, how, limits, options.system, output, on_terminal);
  if (on_terminal) {
    fmt::print("{}; /help lists commands\n", session->device_name());
  }
  catch_interrupts();
  // They also end waiting for a line.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction interrupt = {};
    sigaction(signal, nullptr, &interrupt);
    interrupt.sa_flags &= ~SA_RESTART;
    sigaction(signal, &interrupt, nullptr);
  }
  std::string line;
  for (;;) {
    tell_thermal_events(*session);  // of the last answer, and before the prompt
    if (on_terminal) {
      fmt::print("> ");
      std::fflush(stdout);
    }
    if (interrupted() || !std::getline(std::cin, line)) {
      break;
    }
    tell_thermal_events(*session);  // of the time of waiting for the line
    line.erase(line.find_last_not_of(" \t\r") + 1);
    try {
      if (!conversation.take(line)) {
        break;
      }
    } catch (const DeviceLostError&) {
      throw;
    } catch (const StoppedError&) {
      break;
    } catch (const ContextFullError& error) {
      output.error(clean_line(error.what()) + conversation.way_out());
      conversation.drop_images();
    } catch (const OutOfMemoryError& error) {
      output.error(clean_lines(error.what()) + conversation.way_out());
      conversation.drop_images();
    } catch (const Error& error) {
      output.error(clean_lines(error.what()));
      conversation.drop_images();
    }
  }
  tell_thermal_events(*session);
  return interrupted() ? kInterrupted : conversation.has_skipped() ? kFault : kSuccess;
}

void add_chat_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("chat", "Chat with a model, line by line");
  const auto options = std::make_shared<ChatCommandOptions>();
  options->model.add_to(*command);
  options->model.add_residency_to(*command);
  options->model.add_template_to(*command);
  command->add_option("--system", options->system, "What the system says first");
  options->sampling.add_to(*command);
  command->add_flag("--json", options->as_json,
                    "Print each complete answer, and each error, as one line of JSON; the rest goes to standard error");
  command->footer(
      std::string("Every line is a message, except:\n") + kHelp +
      "FILE is a PNG, JPEG or WebP image, named as a terminal or file manager pastes it: in quotes, with\n"
      "backslashes before spaces, starting with ~/, or as a file:// URL. If it cannot be read, or a command is\n"
      "unknown, and input is not a terminal, the next message is not answered, and the final exit code is 1.\n"
      "\nExamples:\n  pascaline chat --model Qwen3-VL-2B-Instruct --db tuned.db\n"
      "  pascaline chat --model SmolLM2-135M-Instruct.Q4_1.gguf\n"
      "  printf 'Hello!\\nAnd in French?\\n' | pascaline chat --model Qwen3-VL-2B-Instruct --json");
  command->callback([&action, options] { action = [options] { return chat(*options); }; });
}

const Command kChatCommand(Heading::models, 2, add_chat_command);

}  // namespace

}  // namespace pascaline::cli
