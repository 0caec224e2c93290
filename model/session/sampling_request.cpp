#include "model/session/sampling_request.hpp"

#include <algorithm>

#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

bool draws(const SamplingRequest& request, const GenerationConfig& generation) {
  return request.temperature ? *request.temperature != 0 : generation.do_sample && !request.greedy;
}

// Whether the request takes that setting from the model's makers.
bool uses(const SamplingRequest& request, SamplingUse use, bool as_recommended) {
  switch (use) {
    case SamplingUse::answer:
      return true;
    case SamplingUse::draw:
      return as_recommended;
    case SamplingUse::temperature:
      return as_recommended && !request.temperature;
    case SamplingUse::top_k:
      return as_recommended && !request.top_k;
    case SamplingUse::top_p:
      return as_recommended && !request.top_p;
    case SamplingUse::min_p:
      return as_recommended && !request.min_p;
    case SamplingUse::repetition_penalty:
      return !request.repetition;
    case SamplingUse::presence_penalty:
      return !request.presence;
  }
  return true;
}

}  // namespace

ops::SamplingSettings requested_sampling(const SamplingRequest& request, const GenerationConfig& generation,
                                         std::int64_t vocabulary) {
  const bool as_recommended = generation.do_sample && draws(request, generation);
  for (const SamplingFault& fault : generation.faults) {
    if (uses(request, fault.use, as_recommended)) {
      throw ModelError(fault.text);
    }
  }
  ops::SamplingSettings settings;
  settings.seed = request.seed;
  settings.repetition = request.repetition.value_or(static_cast<float>(generation.repetition_penalty));
  settings.presence = request.presence.value_or(static_cast<float>(generation.presence_penalty));
  if (as_recommended) {
    settings.temperature = static_cast<float>(generation.temperature);
    settings.top_k = static_cast<std::int32_t>(std::min<std::int64_t>(generation.top_k, vocabulary));
    settings.top_p = static_cast<float>(generation.top_p);
    settings.min_p = static_cast<float>(generation.min_p);
  }
  settings.temperature = request.temperature.value_or(settings.temperature);
  settings.top_k = request.top_k.value_or(settings.top_k);
  settings.top_p = request.top_p.value_or(settings.top_p);
  settings.min_p = request.min_p.value_or(settings.min_p);
  ops::check_settings(settings);
  return settings;
}

}  // namespace pascaline
