#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/model/answer_json.hpp"
#include "app/model/model_options.hpp"
#include "model/image/decode.hpp"
#include "model/session/prompt.hpp"
#include "model/session/session.hpp"
#include "python/src/command_words.hpp"
#include "python/src/commands.hpp"
#include "python/src/engines.hpp"
#include "python/src/errors.hpp"
#include "python/src/interruptible.hpp"
#include "python/src/without_gil.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;
using Words = std::vector<std::string>;
using Pixels = nb::ndarray<const std::uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;

// Files, and arrays of [height, width, 3].
std::vector<Image> images_of(const nb::list& given) {
  std::vector<Image> images;
  for (nb::handle one : given) {
    std::string file;
    Pixels pixels;
    if (nb::try_cast(one, file)) {
      try {
        images.push_back(read_image(file));
        note_image(images.back());
      } catch (const Error& error) {
        throw ArgumentError(fmt::format("images: {}", error.what()));
      }
    } else if (nb::try_cast(one, pixels)) {
      Image image{static_cast<std::int64_t>(pixels.shape(0)), static_cast<std::int64_t>(pixels.shape(1)), {}, {}};
      image.pixels.assign(pixels.data(), pixels.data() + pixels.size());
      images.push_back(std::move(image));
    } else {
      throw ArgumentError("images: one is neither a file nor pixels of [height, width, 3] in uint8");
    }
  }
  return images;
}

ChatMessage message_of(const std::string& text, std::size_t images) {
  ChatMessage message;
  message.parts.assign(images, {ChatPart::Kind::image, {}});
  message.parts.push_back({ChatPart::Kind::text, text});
  return message;
}

// What a call of `generate` or `chat` is given.
struct Wish {
  std::string prompt;
  std::string system;
  bool is_raw = false;
};

/// A model that is loaded, with a conversation.
class LanguageModel {
 public:
  explicit LanguageModel(Words words) {
    CLI::App app;
    add_options(app, options_);
    read_words(app, std::move(words));
    const WithoutGil released;
    refuse_fork();
    ModelFolder folder = options_.read_folder();
    limits_ = options_.prompt_limits(folder);
    session_ = options_.open(std::move(folder));
  }
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;
  ~LanguageModel() = default;

  static void add_options(CLI::App& app, ModelCommandOptions& options) {
    options.add_to(app);
    options.add_residency_to(app);
    options.add_template_to(app);
  }

  /// Answers a prompt from the beginning; the conversation is then that.
  std::string generate(const Wish& wish, const nb::list& given, Words words, nb::object listener) {
    const std::vector<Image> images = images_of(given);
    return answer(
        std::move(words), std::move(listener), [&](AnswerOptions& how, const ModelSession::TextReader& reader) {
          PromptLimits limits = limits_;
          std::vector<ChatMessage> messages;
          if (!wish.system.empty()) {
            messages.push_back(text_message(ChatRole::system, wish.system));
          }
          messages.push_back(message_of(wish.prompt, images.size()));
          const ChatPrompt prompt = wish.is_raw ? make_raw_prompt(session_->folder(), wish.prompt, limits)
                                                : make_prompt(session_->folder(), messages, images, limits);
          how.max_tokens = std::min(how.max_tokens, limits.context - static_cast<std::int64_t>(prompt.tokens.size()));
          begun_ = !wish.is_raw;
          return session_->complete(prompt.tokens, prompt.images.images, how, reader);
        });
  }

  /// The user's next message.
  std::string chat(const Wish& wish, const nb::list& given, Words words, nb::object listener) {
    const std::vector<Image> images = images_of(given);
    return answer(std::move(words), std::move(listener),
                  [&](AnswerOptions& how, const ModelSession::TextReader& reader) {
                    if (begun_ && !wish.system.empty()) {
                      throw ArgumentError("system: the conversation has begun; clear it first");
                    }
                    PromptLimits limits = limits_;
                    limits.used = begun_ ? session_->model().length() : 0;
                    constexpr std::int64_t kTextRoom = 64;  // as far as is known before the text is encoded
                    FittedImages fitted;
                    if (!images.empty()) {
                      fitted = fit_prompt_images(session_->folder(), images, kTextRoom, limits);
                    }
                    const ChatMessage message = message_of(wish.prompt, images.size());
                    if (begun_) {
                      return session_->continue_chat(message, fitted.images, how, reader);
                    }
                    std::vector<ChatMessage> messages;
                    if (!wish.system.empty()) {
                      messages.push_back(text_message(ChatRole::system, wish.system));
                    }
                    messages.push_back(message);
                    begun_ = true;
                    return session_->ask(messages, fitted.images, how, reader);
                  });
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    begun_ = false;
    session_->clear();
  }

  [[nodiscard]] std::string device() const { return session_->device_name(); }
  [[nodiscard]] std::int64_t context() const { return limits_.context; }
  [[nodiscard]] std::int64_t used() {
    const std::lock_guard lock(mutex_);
    return session_->model().length();
  }

 private:
  template <typename Work>
  std::string answer(Words words, nb::object listener, const Work& work) {
    CLI::App app;
    SamplingCommandOptions sampling;
    sampling.add_to(app);
    read_words(app, std::move(words));
    refuse_fork();
    Interruptible caller(std::move(listener), true);
    std::string text;
    caller.run([&] {
      const std::lock_guard lock(mutex_);
      AnswerOptions how = sampling.answer_options(session_->folder());
      how.interrupted = [&caller] { return caller.stop().load(); };
      const std::int64_t depth = session_->model().length();
      try {
        const Answer found = work(how, [&caller](std::string_view piece) {
          if (caller.heard()) {
            caller.tell("text", pascaline::json_text(piece, true));
          }
          return !caller.stop();
        });
        if (found.end == AnswerEnd::cancelled) {
          forget();
        }
        text = pascaline::json_text(answer_json(found, *session_, depth), true);
      } catch (const ArgumentError&) {
        throw;
      } catch (...) {
        forget();
        throw;
      }
    });
    return text;
  }

  // A conversation with half an answer is none.
  void forget() {
    begun_ = false;
    session_->clear();
  }

  ModelCommandOptions options_;
  PromptLimits limits_;
  std::unique_ptr<ModelSession> session_;
  std::mutex mutex_;
  bool begun_ = false;
};

Words model_options() {
  CLI::App app;
  ModelCommandOptions options;
  LanguageModel::add_options(app, options);
  return option_names(app);
}

Words sampling_options() {
  CLI::App app;
  SamplingCommandOptions options;
  options.add_to(app);
  return option_names(app);
}

}  // namespace

void add_models(nb::module_& module) {
  nb::class_<LanguageModel>(module, "LanguageModel")
      .def(nb::init<Words>(), nb::arg("words"))
      .def(
          "generate",
          [](LanguageModel& model, const std::string& prompt, const std::string& system, bool is_raw,
             const nb::list& images, Words words, nb::object listener) {
            return model.generate({prompt, system, is_raw}, images, std::move(words), std::move(listener));
          },
          nb::arg("prompt"), nb::arg("system"), nb::arg("raw"), nb::arg("images"), nb::arg("words"),
          nb::arg("listener").none())
      .def(
          "chat",
          [](LanguageModel& model, const std::string& prompt, const std::string& system, const nb::list& images,
             Words words, nb::object listener) {
            return model.chat({prompt, system, false}, images, std::move(words), std::move(listener));
          },
          nb::arg("prompt"), nb::arg("system"), nb::arg("images"), nb::arg("words"), nb::arg("listener").none())
      .def("clear", &LanguageModel::clear, nb::call_guard<WithoutGil>())
      .def_prop_ro("device", &LanguageModel::device)
      .def_prop_ro("context", &LanguageModel::context)
      .def_prop_ro("used", &LanguageModel::used, nb::call_guard<WithoutGil>());
  module.def("model_options", model_options, "Names of the options that say which model runs, and where.");
  module.def("sampling_options", sampling_options, "Names of the options of an answer.");
}

}  // namespace pascaline::python
