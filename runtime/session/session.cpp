#include "runtime/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/error.hpp"
#include "runtime/image/decode.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/decoder.hpp"

namespace pascaline {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<PatchView> views_of(std::span<const Patches> pictures) {
  std::vector<PatchView> views;
  for (const Patches& picture : pictures) {
    views.push_back({picture.grid.h, picture.grid.w, picture.view()});
  }
  return views;
}

// The device that is meant: the one named, else the first GPU, else the processor.
std::string device_id(const std::string& wanted) {
  if (!wanted.empty()) {
    return wanted;
  }
  const DeviceInfo first = list_devices().front();
  return first.kind == DeviceKind::cuda ? first.id : "cpu";
}

void check_preprocessor(const PreprocessorConfig& preprocessor, const VisionConfig& vision) {
  if (preprocessor.patch_values() != vision.patch_values() || preprocessor.merge_size != vision.merge) {
    throw Error(
        fmt::format("preprocessor_config.json cuts pictures into patches of {} values, merged {} x {}; config.json "
                    "has patches of {} values, merged {} x {}",
                    preprocessor.patch_values(), preprocessor.merge_size, preprocessor.merge_size,
                    vision.patch_values(), vision.merge, vision.merge));
  }
}

WeightSource open_weights(const SessionOptions& options, const ModelConfig& config) {
  return options.random_weights ? random_weights(config, 1)
                                : checkpoint_weights(Checkpoint::open(options.model, config));
}

}  // namespace

std::string_view name_of(AnswerEnd end) noexcept {
  static constexpr std::array<std::string_view, 4> kNames{"end_token", "most_tokens", "context", "cancelled"};
  return kNames[static_cast<std::size_t>(end)];
}

double Answer::tokens_per_second() const noexcept {
  return decode_ms > 0 && tokens.size() > 1 ? 1e3 * static_cast<double>(tokens.size() - 1) / decode_ms : 0;
}

Session::Session(const SessionOptions& options)
    : config_(load_model_config(options.model)), generation_(load_generation_config(options.model, config_)) {
  const auto is_wanted = [&](const char* file) {
    return !options.numbers_only && (!options.random_weights || std::filesystem::exists(options.model / file));
  };
  if (is_wanted("tokenizer.json")) {
    check_chat_template(options.model);
    tokenizer_ = Tokenizer::load(options.model / "tokenizer.json", static_cast<std::size_t>(config_.text.vocab));
  }
  if (is_wanted("preprocessor_config.json")) {
    preprocessor_ = read_preprocessor_config(options.model / "preprocessor_config.json");
    check_preprocessor(*preprocessor_, config_.vision);
    if (options.most_image_tokens > 0) {
      preprocessor_ = limit_tokens(*preprocessor_, options.most_image_tokens);
    }
  }
  WeightSource weights = open_weights(options, config_);
  open_device(options);
  model_ = std::make_unique<Model>(*executor_, config_, weights, options.options);
}

Session::~Session() = default;

void Session::open_device(const SessionOptions& options) {
  const std::string id = device_id(options.device);
  if (id == "cpu") {
    device_ = pascaline::open_device("host");
    executor_ = std::make_unique<Executor>(*device_);
    return;
  }
  check_bundle(options.dispatcher);
  device_ = pascaline::open_device(id);
  dispatcher_ = std::make_unique<Dispatcher>(*device_, options.dispatcher);
  executor_ = std::make_unique<Executor>(*dispatcher_);
}

const Tokenizer& Session::tokenizer() const {
  if (!tokenizer_) {
    throw Error("the model folder has no tokenizer.json, which texts need");
  }
  return *tokenizer_;
}

std::string Session::device_name() const {
  return executor_->on_processor() ? fmt::format("cpu, {}", device_->info().name)
                                   : fmt::format("{}, {}", device_->info().id, device_->info().name);
}

ops::SamplingSettings Session::default_sampling(std::uint64_t seed) const {
  ops::SamplingSettings settings;
  settings.seed = seed;
  settings.repetition = static_cast<float>(generation_.repetition_penalty);
  settings.presence = static_cast<float>(generation_.presence_penalty);
  if (generation_.do_sample) {
    settings.temperature = static_cast<float>(generation_.temperature);
    settings.top_k = static_cast<std::int32_t>(std::min<std::int64_t>(generation_.top_k, config_.text.vocab));
    settings.top_p = static_cast<float>(generation_.top_p);
  }
  return settings;
}

Patches Session::read_picture(const std::filesystem::path& file) const {
  if (!preprocessor_) {
    throw Error("the model folder has no preprocessor_config.json, which pictures need");
  }
  return preprocess(read_image(file), *preprocessor_);
}

std::vector<std::size_t> Session::tokens_of(std::span<const Patches> pictures) const {
  std::vector<std::size_t> result;
  for (const Patches& picture : pictures) {
    result.push_back(static_cast<std::size_t>(picture.grid.rows() / (config_.vision.merge * config_.vision.merge)));
  }
  return result;
}

bool Session::ends(TokenId token) const noexcept {
  const auto& eos = generation_.eos_tokens;
  return std::find(eos.begin(), eos.end(), token) != eos.end();
}

Answer Session::ask(std::span<const ChatMessage> messages, std::span<const Patches> pictures,
                    const AnswerOptions& options, const TextReader& reader) {
  return complete(encode_chat(tokenizer(), messages, tokens_of(pictures)), pictures, options, reader);
}

Answer Session::complete(std::span<const TokenId> tokens, std::span<const Patches> pictures,
                         const AnswerOptions& options, const TextReader& reader) {
  model_->clear();
  conversation_.clear();
  return answer({tokens.begin(), tokens.end()}, pictures, options, reader);
}

Answer Session::go_on(const ChatMessage& message, std::span<const Patches> pictures, const AnswerOptions& options,
                      const TextReader& reader) {
  return answer(encode_next_turn(tokenizer(), message, tokens_of(pictures)), pictures, options, reader);
}

Answer Session::answer(std::vector<TokenId> tokens, std::span<const Patches> pictures, const AnswerOptions& options,
                       const TextReader& reader) {
  Answer result;
  result.prompt_tokens = static_cast<std::int64_t>(tokens.size());
  std::optional<StreamDecoder> decoder;
  if (tokenizer_) {
    decoder.emplace(*tokenizer_);
  }
  const auto give = [&](const std::string& piece) {
    result.text += piece;
    return piece.empty() || !reader || reader(piece);
  };
  Clock::time_point begin = Clock::now();
  const std::vector<PatchView> views = views_of(pictures);
  model_->append({tokens, views});
  conversation_.insert(conversation_.end(), tokens.begin(), tokens.end());
  model_->set_sampling(options.sampling, conversation_);
  TokenId token = model_->sample();
  result.prompt_ms = milliseconds_since(begin);
  begin = Clock::now();
  for (;;) {
    if (ends(token)) {
      break;
    }
    result.tokens.push_back(token);
    const bool wanted = give(decoder ? decoder->push(token) : std::string());
    if (!wanted || static_cast<std::int64_t>(result.tokens.size()) >= options.most_tokens) {
      result.end = wanted ? AnswerEnd::most_tokens : AnswerEnd::cancelled;
      break;
    }
    if (model_->length() >= model_->options().context) {
      result.end = AnswerEnd::context;
      break;
    }
    const TokenId next = model_->step();
    conversation_.push_back(token);
    token = next;
  }
  result.decode_ms = milliseconds_since(begin);
  if (result.end == AnswerEnd::most_tokens || result.end == AnswerEnd::cancelled) {
    keep_last(token);
  }
  if (decoder) {
    give(decoder->finish());
  }
  return result;
}

// The last token of an answer that was cut off belongs to the conversation. It is appended as a step does, which takes
// no token for a picture's place.
void Session::keep_last(TokenId token) {
  if (model_->length() < model_->options().context) {
    (void)model_->step();
    conversation_.push_back(token);
  }
}

}  // namespace pascaline
