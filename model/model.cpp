#include "model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "model/memory_layout.hpp"
#include "model/model_sites.hpp"
#include "model/requirements.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

// Nothing is taken of the device before all of it is known to fit.
MemoryLayout plan_of(Executor& executor, const ModelConfig& config, const ModelOptions& options) {
  check_supported(config);
  if (executor.observes_only()) {
    MemoryLayout plan;
    plan.residency = ModelResidency::on_device(static_cast<std::size_t>(config.text.layers));
    return plan;
  }
  return lay_out_model({&executor.device(), &executor.memory(), executor.on_processor()}, config, options);
}

std::unique_ptr<Processor> processor_for(const ModelResidency& residency, const Executor& device) {
  return residency.all_on_device() ? nullptr : std::make_unique<Processor>(device);
}

std::optional<KvCache> cache_of(Executor* executor, const TextConfig& config, const ModelOptions& options,
                                std::size_t layers) {
  std::optional<KvCache> cache;
  if (layers > 0) {
    cache.emplace(executor->memory(), config, options.cache, options.context, static_cast<std::int64_t>(layers));
  }
  return cache;
}

template <typename T>
void put(DeviceMemory& memory, DeviceSpan to, std::span<const T> values) {
  memory.upload({}, to, std::as_bytes(values));
}

// Images as the decoder counts them; the model has a vision tower if there are some.
std::vector<ImageTokens> token_grids(std::span<const PatchView> images, const ModelConfig& config) {
  std::vector<ImageTokens> result;
  for (const PatchView& image : images) {
    const std::int64_t merge = config.vision.value().merge;
    result.push_back({image.rows / merge, image.columns / merge});
  }
  return result;
}

// The token that stands for an image, or one that no prompt has.
std::int32_t image_token_of(const ModelConfig& config) noexcept {
  return config.vision ? static_cast<std::int32_t>(config.vision->image_token) : -1;
}

// The images' parts that lie in the rows `first` to `first + count` of a prompt.
std::vector<ImageRows> images_between(const PromptPositions& positions, const ImageFeatures& features,
                                      std::int64_t first, std::int64_t count) {
  std::vector<ImageRows> result;
  std::int64_t before = 0;  // tokens of earlier images
  for (const ImageRun& run : positions.images) {
    const std::int64_t begin = std::max(run.first, first);
    const std::int64_t end = std::min(run.first + run.count, first + count);
    if (begin < end) {
      const std::int64_t feature = before + begin - run.first;
      ImageRows& rows = result.emplace_back();
      rows.first = begin - first;
      rows.embeddings = rows_of(features.embeddings, feature, end - begin);
      for (const TensorView& layer : features.deepstack) {
        rows.deepstack.push_back(rows_of(layer, feature, end - begin));
      }
    }
    before += run.count;
  }
  return result;
}

}  // namespace

Processor::Processor(const Executor& device)
    : host(open_device("emulator")), executor(*host), linear(executor), fusion(Fusion::off) {
  executor.report_to(device);
}

Model::Model(Executor& executor, ModelConfig config, WeightSource& weights, const ModelOptions& options)
    : executor_(&executor),
      config_(std::move(config)),
      options_(checked_options(config_, options)),
      plan_(plan_of(executor, config_, options_)),
      processor_(processor_for(plan_.residency, executor)),
      weights_(
          load_weights(config_, weights,
                       {&executor.memory(), processor_ ? &processor_->executor.memory() : nullptr, &plan_.residency},
                       options_.weights)),
      cache_(cache_of(&executor, config_.text, options_,
                      plan_.residency.layers.size() - plan_.residency.count(Residency::processor))),
      host_cache_(cache_of(processor_ ? &processor_->executor : nullptr, config_.text, options_,
                           plan_.residency.count(Residency::processor))),
      linear_(executor),
      fusion_(options.fusion,
              plan_for_model(options.fusion_file, device_row(executor.device().info()),
                             sites_of_model(config_, weights_, options_.cache, options_.attention),
                             [&](const std::string& text) { executor.warn(text); }),
              executor.dispatcher()),
      stream_(),
      decoder_(side(Residency::device), side(Residency::processor), config_.text, weights_.text, plan_.residency,
               weights_.blocks.empty() ? nullptr : &stream_.emplace(executor.memory(), weights_), options_.context,
               options_.chunk, options_.attention),
      sampler_(executor, config_.text.vocab, no_numbers_text(options_.weights, options_.cache)) {
  const bool sees_there = plan_.residency.vision == Residency::processor;
  if (config_.vision) {
    tower_.emplace(sees_there ? processor_->linear : linear_, sees_there ? processor_->fusion : fusion_,
                   *config_.vision, weights_.vision, stream_ ? &*stream_ : nullptr);
  }
  options_.graphs = options_.graphs && plan_.can_record();
  if (weights_.not_pinned_bytes > 0) {
    executor.warn(fmt::format("{} MiB of weights could not be page-locked, so they are copied to {} more slowly",
                              weights_.not_pinned_bytes >> 20, executor.device().info().id));
  }
  if (options_.weights.has_packed_formats() && !executor.on_processor() && plan_.residency.device_decodes()) {
    linear_.reserve(options_.chunk, LinearLayers::widest(config_.text));
  }
  DeviceMemory& memory = executor.memory();
  const auto chunk = static_cast<std::size_t>(options_.chunk);
  pass_memory_ = memory.allocate_raw(5 * chunk * sizeof(std::int32_t) + 4 * DeviceMemory::kAlignment);
  next_memory_ = memory.allocate_raw(4 * DeviceMemory::kAlignment);
  logits_memory_ = memory.allocate_raw(static_cast<std::size_t>(config_.text.vocab) * sizeof(float));
}

DecoderSide Model::side(Residency where) {
  if (where == Residency::device) {
    return {&linear_, &fusion_, cache_ ? &*cache_ : nullptr};
  }
  return processor_ ? DecoderSide{&processor_->linear, &processor_->fusion, host_cache_ ? &*host_cache_ : nullptr}
                    : DecoderSide{};
}

std::vector<Problem> Model::sites() const {
  return sites_of_model(config_, weights_, options_.cache, options_.attention);
}

ModelMemory Model::memory() const {
  const std::uint64_t tower = tower_ ? tower_->bytes() : 0;
  const bool sees_there = plan_.residency.vision == Residency::processor;
  return {weights_.bytes,
          decoder_.bytes() + linear_.bytes() + (sees_there ? 0 : tower) + (stream_ ? stream_->bytes() : 0) +
              pass_memory_.bytes() + next_memory_.bytes() + logits_memory_.bytes() + rows_memory_.bytes() +
              features_memory_.bytes(),
          cache_ ? cache_->bytes() : 0,
          weights_.host_bytes + decoder_.host_bytes() + (sees_there ? tower : 0) +
              (host_cache_ ? host_cache_->bytes() : 0)};
}

void Model::clear() {
  length_ = 0;
  delta_ = 0;
  images_end_ = 0;
  has_logits_ = false;
  has_token_ = false;
}

// What the cache holds beyond is written again before it is read.
void Model::shorten(std::int64_t length) {
  if (length < images_end_ || length > length_) {
    throw Error(fmt::format("a sequence of {} tokens{} cannot be shortened to {}", length_,
                            images_end_ > 0 ? fmt::format(" with images within the first {}", images_end_) : "",
                            length));
  }
  if (length < length_) {
    length_ = length;
    has_logits_ = has_token_ = false;
  }
}

void Model::check(const Prompt& prompt) const {
  if (!prompt.images.empty()) {
    (void)vision_of(config_);
  }
  if (prompt.tokens.empty()) {
    throw Error("an empty prompt");
  }
  const auto wrong = std::find_if(prompt.tokens.begin(), prompt.tokens.end(),
                                  [&](std::int32_t token) { return token < 0 || token >= config_.text.vocab; });
  if (wrong != prompt.tokens.end()) {
    throw Error(fmt::format("token {} of the prompt is {}; the vocabulary has {}", wrong - prompt.tokens.begin(),
                            *wrong, config_.text.vocab));
  }
  const auto count = static_cast<std::int64_t>(prompt.tokens.size());
  if (count > options_.context - length_) {
    throw ContextFullError(fmt::format(
        "{} new tokens exceed the context of {}; {} are in use; ask for a larger one with --context{}", count,
        options_.context, length_, prompt.images.empty() ? "" : ", or for smaller images with --max-image-tokens"));
  }
}

// The next images can have their memory again.
void Model::reserve_cache(std::int64_t tokens) {
  if (host_cache_) {
    host_cache_->reserve(tokens);
  }
  if (!cache_) {
    return;
  }
  try {
    cache_->reserve(tokens);
  } catch (const OutOfMemoryError&) {
    if (!tower_ || !tower_->release()) {
      throw;
    }
    cache_->reserve(tokens);
  }
}

bool Model::append(const Prompt& prompt, const LogitsReader& reader, const std::function<bool()>& goes_on) {
  check(prompt);
  const auto count = static_cast<std::int64_t>(prompt.tokens.size());
  const auto images = token_grids(prompt.images, config_);
  const PromptPositions positions = mrope_positions(prompt.tokens, image_token_of(config_), images, length_, delta_);
  reserve_cache(length_ + count);
  const ImageFeatures features = encode(prompt.images);
  const std::int64_t before = length_;
  has_logits_ = has_token_ = false;
  try {
    for (std::int64_t first = 0; first < count; first += options_.chunk) {
      if (goes_on && !goes_on()) {
        length_ = before;
        return false;
      }
      const std::int64_t rows = std::min(options_.chunk, count - first);
      run_chunk(prompt, positions, features, first, rows);
      if (reader) {
        read_rows(first, rows, reader);
      }
      length_ += rows;
      if (first + rows == count) {
        decoder_.project(rows - 1, 1, {logits_memory_.data(), ElementType::float32, {1, config_.text.vocab}});
      }
    }
    executor_->device().synchronize();
  } catch (...) {
    length_ = before;
    throw;
  }
  delta_ = positions.delta;
  images_end_ = prompt.images.empty() ? images_end_ : length_;
  has_logits_ = true;
  return true;
}

ImageFeatures Model::encode(std::span<const PatchView> images) {
  if (!images.empty()) {
    (void)vision_of(config_);
  }
  const ImageFeatures features = tower_ ? tower_->encode(images) : ImageFeatures{};
  return plan_.residency.vision == Residency::processor && !images.empty() ? on_device(features) : features;
}

// What the processor made of images, copied to where the decoder expects it.
ImageFeatures Model::on_device(const ImageFeatures& features) {
  DeviceMemory& memory = executor_->memory();
  const std::size_t bytes = span_of(features.embeddings).bytes;
  const std::size_t apart =
      (bytes + DeviceMemory::kAlignment - 1) / DeviceMemory::kAlignment * DeviceMemory::kAlignment;
  const std::size_t needed = apart * (1 + features.deepstack.size());
  if (needed > features_memory_.bytes()) {
    features_memory_ = RawBuffer();
    features_memory_ = memory.allocate_raw(needed);
  }
  ImageFeatures there = features;
  std::size_t offset = 0;
  const auto bring = [&](TensorView& tensor) {
    const DeviceSpan to = features_memory_.span().slice(offset, bytes);
    memory.upload({}, to, {static_cast<const std::byte*>(tensor.data), bytes});
    tensor.data = to.data;
    offset += apart;
  };
  bring(there.embeddings);
  std::for_each(there.deepstack.begin(), there.deepstack.end(), bring);
  memory.synchronize(StreamId{});
  return there;
}

void Model::run_chunk(const Prompt& prompt, const PromptPositions& positions, const ImageFeatures& features,
                      std::int64_t first, std::int64_t count) {
  DeviceMemory& memory = executor_->memory();
  const auto rows = static_cast<std::size_t>(count);
  const auto offset = static_cast<std::size_t>(first);
  const std::size_t row_bytes = (rows * sizeof(std::int32_t) + 15) / 16 * 16;
  const DeviceSpan tokens = pass_memory_.span().slice(0, rows * sizeof(std::int32_t));
  const DeviceSpan slots = pass_memory_.span().slice(row_bytes, rows * sizeof(std::int32_t));
  const DeviceSpan position_memory = pass_memory_.span().slice(2 * row_bytes, 3 * rows * sizeof(std::int32_t));
  const DeviceSpan length = next_memory_.span().slice(0, sizeof(std::int32_t));

  std::vector<std::int32_t> slot_numbers(rows);
  std::iota(slot_numbers.begin(), slot_numbers.end(), static_cast<std::int32_t>(length_));
  std::vector<std::int32_t> position_numbers;
  for (const std::vector<std::int32_t>& axis : positions.axes) {
    const auto begin = axis.begin() + first;
    position_numbers.insert(position_numbers.end(), begin, begin + count);
  }
  const std::array<std::int32_t, 1> new_length{static_cast<std::int32_t>(length_ + count)};
  put<std::int32_t>(memory, tokens, prompt.tokens.subspan(offset, rows));
  put<std::int32_t>(memory, slots, slot_numbers);
  put<std::int32_t>(memory, position_memory, position_numbers);
  put<std::int32_t>(memory, length, new_length);
  memory.synchronize(StreamId{});

  TextPass pass;
  pass.tokens = tensor_in(tokens, ElementType::int32, {count});
  pass.positions = tensor_in(position_memory, ElementType::int32, {3, count});
  pass.slots = tensor_in(slots, ElementType::int32, {count});
  pass.length = tensor_in(length, ElementType::int32, {1});
  pass.cached = length_;
  pass.images = images_between(positions, features, first, count);
  decoder_.forward(pass);
}

void Model::read_rows(std::int64_t first, std::int64_t count, const LogitsReader& reader) {
  const auto vocabulary = static_cast<std::size_t>(config_.text.vocab);
  if (!rows_memory_) {
    rows_memory_ = executor_->memory().allocate_raw(kLogitRows * vocabulary * sizeof(float));
  }
  std::vector<float> values;
  for (std::int64_t row = 0; row < count; row += kLogitRows) {
    const std::int64_t rows = std::min(kLogitRows, count - row);
    const TensorView logits = tensor_in(rows_memory_.span(), ElementType::float32, {rows, config_.text.vocab});
    decoder_.project(row, rows, logits);
    values.resize(static_cast<std::size_t>(rows) * vocabulary);
    executor_->memory().download({}, std::as_writable_bytes(std::span(values)), span_of(logits));
    executor_->memory().synchronize(StreamId{});
    reader(first + row, values);
  }
}

void Model::require_logits() const {
  if (!has_logits_) {
    throw Error("no tokens have been read yet, so none can follow");
  }
}

std::vector<float> Model::logits() {
  require_logits();
  std::vector<float> values(static_cast<std::size_t>(config_.text.vocab));
  executor_->memory().download({}, std::as_writable_bytes(std::span(values)), logits_memory_.span());
  executor_->memory().synchronize(StreamId{});
  return values;
}

void Model::set_sampling(const ops::SamplingSettings& settings, std::span<const std::int32_t> seen) {
  sampler_.set(settings, seen);
}

}  // namespace pascaline
