#include "model/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/memory_layout.hpp"
#include "model/model_sites.hpp"
#include "model/requirements.hpp"
#include "model/residency/filled_rows.hpp"
#include "model/session/foreign_database.hpp"
#include "model/session/prompt.hpp"
#include "model/text/decoder.hpp"
#include "model/text/stop_strings.hpp"
#include "runtime/device/device_names.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/memory/unbacked_memory.hpp"

namespace pascaline {
namespace {

using Clock = std::chrono::steady_clock;

// Where the text of a token ends of which a character is not complete yet.
constexpr std::size_t kWithinCharacter = std::string::npos;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<PatchView> views_of(std::span<const Patches> images) {
  std::vector<PatchView> views;
  for (const Patches& image : images) {
    views.push_back({image.grid.h, image.grid.w, image.view()});
  }
  return views;
}

void warn(const std::string& text) { fmt::print(stderr, "pascaline: warning: {}\n", text); }

// The devices of this machine, asked for once, and only if somebody wants to know.
class DevicesHere {
 public:
  [[nodiscard]] const std::vector<DeviceInfo>& all() {
    if (devices_.empty()) {
      devices_ = list_devices();  // the emulator at least
    }
    return devices_;
  }

 private:
  std::vector<DeviceInfo> devices_;
};

// The device that is meant: the one named, else the first GPU, else the processor.
std::string device_id(const std::string& wanted, DevicesHere& here) {
  if (!wanted.empty()) {
    return device_id_of(wanted);
  }
  const DeviceInfo& first = here.all().front();
  return first.kind == DeviceKind::cuda ? first.id : "cpu";
}

ModelParts parts_of(const ModelSessionOptions& options) {
  return options.numbers_only ? ModelParts::numbers : options.random_weights ? ModelParts::present : ModelParts::all;
}

// Winners of other devices would be of no use, which is better said than left to be wondered at.
void check_database(const std::filesystem::path& database, const std::string& id, bool may_be_foreign,
                    DevicesHere& here) {
  for (const DeviceInfo& device : here.all()) {
    const std::string reason = device.id == id ? reason_database_is_foreign(database, device) : std::string();
    if (!reason.empty() && !may_be_foreign) {
      throw Error(reason);
    }
    if (!reason.empty()) {
      warn(fmt::format("{}; default configurations are used", clean_line(reason)));
    }
  }
}

// Throws as opening it does if it is not there.
DeviceInfo info_of_device(const std::string& id, DevicesHere& here) {
  for (const DeviceInfo& device : here.all()) {
    if (device.id == id) {
      return device;
    }
  }
  return pascaline::open_device(id)->info();
}

WeightSource open_weights(const ModelFolder& folder, const ModelSessionOptions& options) {
  if (options.observe_only) {
    return weights_without_values(folder.config());
  }
  return options.random_weights ? random_weights(folder.config(), 1)
                                : checkpoint_weights(Checkpoint::open(folder.location(), folder.config()));
}

WeightRecipe fitting_weights(DeviceMemory& memory, const ModelConfig& config, ModelOptions options,
                             const std::vector<WeightRecipe>& choices) {
  constexpr double kMiB = 1 << 20;
  const std::uint64_t free = memory.state().free_bytes;
  std::string too_large;
  for (const WeightRecipe& choice : choices) {
    options.weights = choice;
    std::uint64_t bytes = 0;
    for (const MemoryPart& part : memory_parts(memory, config, options)) {
      bytes += part.bytes;
    }
    const double needed = static_cast<double>(bytes) / kMiB;
    const bool fits = bytes <= free;
    if (fits || &choice == &choices.back()) {
      fmt::print(stderr, "pascaline: weights {}: the model needs {:.0f} of {:.0f} MiB free{}\n", choice.name(), needed,
                 static_cast<double>(free) / kMiB, too_large);
      return choice;
    }
    too_large += fmt::format("{} {:.0f} with {}", too_large.empty() ? ";" : ",", needed, choice.name());
  }
  return options.weights;
}

// Matrices that are stored in another format than they are to be kept in, not counting those that become one weight
// with others and are not all stored in one format.
std::map<ElementType, std::size_t> quantized_again(const WeightSource& source, const ModelConfig& config,
                                                   const WeightRecipe& wanted) {
  std::map<ElementType, std::size_t> again;
  ModelWeights unused;
  for (const WeightEntry& weight : weight_table(config, unused, wanted)) {
    std::set<ElementType> stored;
    for (const TensorSpec& tensor : weight.tensors) {
      const auto rows = source.rows(tensor);
      stored.insert(rows ? rows->format.type : ElementType::float32);
    }
    const ElementType type = wanted.of(weight);
    if (stored.size() == 1 && is_matrix_format(*stored.begin()) && *stored.begin() != type && is_matrix_format(type)) {
      again[*stored.begin()] += weight.tensors.size();
    }
  }
  return again;
}

// Rounding rounded values again costs accuracy that the original does not lose.
void warn_of_formats(const WeightSource& source, const ModelConfig& config, const WeightRecipe& wanted) {
  if (const auto hidden = wanted.hidden_patterns(source.tensors()); !hidden.empty()) {
    warn(hidden_patterns_text(wanted.name(), hidden));
  }
  std::size_t again = 0;
  ElementType stored{};
  for (const auto& [format, count] : quantized_again(source, config, wanted)) {
    again += count;
    stored = format;
  }
  if (again > 0) {
    warn(fmt::format(
        "{} stored in another format ({}) than {} asks for: quantizing twice loses accuracy; leave out "
        "--weights, or quantize the original model",
        again == 1 ? "1 matrix is" : fmt::format("{} matrices are", again), name_of(stored), wanted.name()));
  }
}

// As `ModelSession::device_name`.
std::string shown_name(const std::string& id, const DeviceInfo& device) {
  return fmt::format("{}, {}", id == "cpu" ? id : device.id, device.name);
}

}  // namespace

SessionEstimate estimate_session(const ModelFolder& folder, const ModelSessionOptions& options) {
  SessionEstimate plan;
  plan.options = checked_options(folder.config(), options.options, folder.location());
  check_supported(folder.config(), folder.location());
  DevicesHere here;
  const std::string id = device_id(options.device, here);
  check_device_name(id, {"cpu"});
  const bool on_processor = id == "cpu";
  const std::unique_ptr<Device> device = open_device(on_processor ? "emulator" : id);
  MemoryPool memory(device->memory(), options.memory_limit);
  if (!options.weight_choices.empty()) {
    plan.options.weights = fitting_weights(memory, folder.config(), plan.options, options.weight_choices);
  }
  plan.device_name = shown_name(id, device->info());
  plan.model = lay_out_model({device.get(), &memory, on_processor}, folder.config(), plan.options, Measure::always);
  return plan;
}

std::string_view name_of(AnswerEnd end) noexcept {
  static constexpr std::array<std::string_view, 5> kNames{"end_token", "stop_string", "max_tokens", "context",
                                                          "cancelled"};
  return kNames[static_cast<std::size_t>(end)];
}

double Answer::tokens_per_second() const noexcept {
  return decode_ms > 0 && tokens.size() > 1 ? 1e3 * static_cast<double>(tokens.size() - 1) / decode_ms : 0;
}

double Answer::prompt_tokens_per_second() const noexcept {
  return prompt_ms > 0 ? 1e3 * static_cast<double>(prompt_tokens) / prompt_ms : 0;
}

ModelSession::ModelSession(const ModelSessionOptions& options)
    : ModelSession(ModelFolder(options.model, parts_of(options)), options) {}

ModelSession::ModelSession(ModelFolder folder, const ModelSessionOptions& options) : folder_(std::move(folder)) {
  ModelOptions decided = checked_options(config(), options.options, folder_.location());
  DevicesHere here;
  const std::string device = device_id(options.device, here);
  check_device_name(device, {"cpu"});
  const bool has_kernels = device != "cpu";
  if (options.observe_only && !has_kernels) {
    throw Error("a session on the processor launches no kernels that could be observed");
  }
  if (has_kernels && options.dispatcher.database) {
    check_database(*options.dispatcher.database, device, options.database_may_be_foreign, here);
  }
  if (has_kernels) {
    check_bundle(options.dispatcher);
  }
  WeightSource weights = open_weights(folder_, options);
  open_device(device, options);
  if (options.observe_only) {  // on the emulated device, as if on the one that is meant
    const DeviceInfo meant = info_of_device(device, here);
    name_ = fmt::format("{}, {}", device, meant.name);
    decided.fusion_file = plan_for_device(std::move(decided.fusion_file), device_row(meant), warn);
    if (!decided.fusion_file.name.empty()) {
      decided.fusion_file.device = device_row(device_->info());
    }
  }
  if (!options.weight_choices.empty()) {
    decided.weights = fitting_weights(*memory_, config(), decided, options.weight_choices);
  }
  warn_of_formats(weights, config(), decided.weights);
  constexpr std::uint64_t kWorthSaying = 1 << 20;
  if (const auto note = filled_rows_note(config(), decided.weights, kWorthSaying)) {
    fmt::print(stderr, "pascaline: {}\n", *note);
  }
  model_ = std::make_unique<Model>(*executor_, config(), weights, decided);
  if (options.observe_only) {  // whose executor tells nothing
    (void)plan_for_model(decided.fusion_file, decided.fusion_file.device, model_->sites(), warn);
  }
}

ModelSession::~ModelSession() = default;

void ModelSession::open_device(const std::string& id, const ModelSessionOptions& options) {
  if (options.observe_only) {
    device_ = pascaline::open_device("emulator");
    unbacked_ = std::make_unique<UnbackedMemory>();
    memory_ = std::make_unique<MemoryPool>(*unbacked_);
    executor_ = std::make_unique<Executor>(Executor::ObserveOnly{}, *device_, *memory_);
    return;
  }
  device_ = pascaline::open_device(id == "cpu" ? "emulator" : id);
  name_ = shown_name(id, device_->info());
  memory_ = std::make_unique<MemoryPool>(device_->memory(), options.memory_limit);
  if (id == "cpu") {
    executor_ = std::make_unique<Executor>(*device_, memory_.get());
    return;
  }
  dispatcher_ = std::make_unique<Dispatcher>(*device_, options.dispatcher, memory_.get());
  for (const std::string& line : dispatcher_->missing_compilers()) {
    fmt::print(stderr, "pascaline: note: {}\n", clean_line(line));
  }
  executor_ = std::make_unique<Executor>(*dispatcher_);
}

Answer ModelSession::ask(std::span<const ChatMessage> messages, std::span<const Patches> images,
                         const AnswerOptions& options, const TextReader& reader) {
  return complete(folder_.encode_messages(messages, tokens_of(images, config())), images, options, reader);
}

void ModelSession::clear() {
  model_->clear();
  conversation_.clear();
}

Answer ModelSession::complete(std::span<const TokenId> tokens, std::span<const Patches> images,
                              const AnswerOptions& options, const TextReader& reader) {
  clear();
  return answer({tokens.begin(), tokens.end()}, images, options, reader);
}

Answer ModelSession::continue_chat(const ChatMessage& message, std::span<const Patches> images,
                                   const AnswerOptions& options, const TextReader& reader) {
  return answer(encode_next_turn(tokenizer(), message, tokens_of(images, config()), folder_.chat_template()), images,
                options, reader);
}

Answer ModelSession::answer(std::vector<TokenId> tokens, std::span<const Patches> images, const AnswerOptions& options,
                            const TextReader& reader) {
  warn_of_no_end();
  Answer result;
  result.prompt_tokens = static_cast<std::int64_t>(tokens.size());
  std::optional<StreamDecoder> decoder;
  if (folder_.has_tokenizer()) {
    decoder.emplace(folder_.tokenizer());
  }
  StopStrings stop(options.stop);
  std::size_t decoded = 0;        // bytes of text
  std::vector<std::size_t> ends;  // where that of each token ends
  const auto give = [&](const std::string& piece) {
    result.text += piece;
    return piece.empty() || !reader || reader(piece);
  };
  Clock::time_point begin = Clock::now();
  const std::vector<PatchView> views = views_of(images);
  const auto goes_on = [&] { return !options.interrupted || !options.interrupted(); };
  if (!model_->append({tokens, views}, {}, goes_on)) {
    result.end = AnswerEnd::cancelled;
    result.prompt_ms = milliseconds_since(begin);
    return result;
  }
  conversation_.insert(conversation_.end(), tokens.begin(), tokens.end());
  model_->set_sampling(options.sampling, conversation_);
  TokenId token = model_->sample();
  result.prompt_ms = milliseconds_since(begin);
  begin = Clock::now();
  for (;;) {
    if (folder_.ends(token)) {
      break;
    }
    result.tokens.push_back(token);
    const std::string piece = decoder ? decoder->push(token) : std::string();
    decoded += piece.size();
    ends.push_back(decoder && decoder->is_within_character() ? kWithinCharacter : decoded);
    const bool wanted = give(stop.push(piece));
    if (stop.found()) {
      result.end = AnswerEnd::stop_string;
      break;
    }
    if (!wanted || static_cast<std::int64_t>(result.tokens.size()) >= options.max_tokens) {
      result.end = wanted ? AnswerEnd::max_tokens : AnswerEnd::cancelled;
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
  if (result.end == AnswerEnd::max_tokens || result.end == AnswerEnd::cancelled) {
    keep_last(token);
  } else if (result.end == AnswerEnd::stop_string) {
    keep_shown(result, ends);
  }
  give(stop.push(decoder ? decoder->finish() : std::string()) + stop.finish());
  return result;
}

void ModelSession::warn_of_no_end() {
  if (folder_.generation().eos_tokens.empty() && !std::exchange(warned_of_no_end_, true)) {
    warn(fmt::format("{} names no token that ends an answer ({}); every answer continues to its limit",
                     folder_.path().string(),
                     is_gguf_path(folder_.path()) ? "tokenizer.ggml.eos_token_id, eot_token_id or eom_token_id"
                                                  : "eos_token_id in generation_config.json or config.json"));
  }
}

// The last token of an answer that was cut off belongs to the conversation. It is appended as a step does, which takes
// no token for an image's position.
void ModelSession::keep_last(TokenId token) {
  if (model_->length() < model_->options().context) {
    (void)model_->step();
    conversation_.push_back(token);
  }
}

// Of an answer that a stop string ended, what was shown belongs to the conversation: the tokens after it are forgotten,
// and of a token that only begins with it that part is read again.
void ModelSession::keep_shown(const Answer& answer, std::span<const std::size_t> ends) {
  std::size_t kept = 0;   // tokens
  std::size_t shown = 0;  // bytes of their text
  for (std::size_t i = 0; i < ends.size() && shown < answer.text.size(); ++i) {
    if (ends[i] == kWithinCharacter) {
      continue;
    }
    if (ends[i] > answer.text.size()) {
      break;
    }
    kept = i + 1;
    shown = ends[i];
  }
  const std::size_t forgotten = answer.tokens.size() - 1 - kept;  // the last one was not read
  model_->shorten(model_->length() - static_cast<std::int64_t>(forgotten));
  conversation_.resize(conversation_.size() - forgotten);
  std::vector<TokenId> rest = tokenizer().encode(std::string_view(answer.text).substr(shown), AddedTokens::ignore);
  const auto room = static_cast<std::size_t>(model_->options().context - model_->length());
  rest.resize(std::min(rest.size(), room));
  if (!rest.empty()) {
    (void)model_->append({rest, {}});
    conversation_.insert(conversation_.end(), rest.begin(), rest.end());
  }
}

}  // namespace pascaline
