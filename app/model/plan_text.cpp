#include "app/model/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace pascaline {
namespace {

using nlohmann::json;

double plan_mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string part_lines(const std::vector<MemoryPart>& parts) {
  std::string lines;
  for (const MemoryPart& part : parts) {
    lines += fmt::format("{:>12.1f} MiB  {}\n", plan_mebibytes(part.bytes), part.name);
  }
  return lines;
}

// "layer 3" or "layers 0-5, 7": those in a place; empty if none is.
std::string layers_in(const std::vector<Place>& layers, Place place) {
  std::string runs;
  std::size_t count = 0;
  for (std::size_t first = 0; first < layers.size(); ++first) {
    if (layers[first] != place) {
      continue;
    }
    std::size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == place) {
      ++last;
    }
    runs += fmt::format("{}{}", runs.empty() ? "" : ", ", first);
    runs += last > first ? fmt::format("-{}", last) : "";
    count += last - first + 1;
    first = last;
  }
  return count == 0 ? runs : fmt::format("{} {}", count == 1 ? "layer" : "layers", runs);
}

// "vision tower", or how many of its parts are in a place; empty if none is.
std::string tower_in(const ModelPlan& plan, Place place) {
  const std::size_t all = plan.sizes.tower.size();
  std::size_t count = 0;
  for (std::size_t part = 0; part < all; ++part) {
    count += plan.placement.place_of_tower(part) == place ? 1 : 0;
  }
  return count == 0     ? std::string()
         : count == all ? std::string("vision tower")
                        : fmt::format("{} of {} parts of the vision tower", count, all);
}

// A line for each place where something is.
std::string place_lines(const ModelPlan& plan) {
  const Placement& placement = plan.placement;
  std::string lines;
  for (const Place place : {Place::device, Place::streamed, Place::processor}) {
    std::vector<std::string> parts;
    if (placement.embedding == place) {
      parts.emplace_back("embedding");
    }
    if (std::string layers = layers_in(placement.layers, place); !layers.empty()) {
      parts.push_back(std::move(layers));
    }
    if (placement.head == place) {
      parts.emplace_back("head");
    }
    if (std::string tower = tower_in(plan, place); !tower.empty()) {
      parts.push_back(std::move(tower));
    }
    lines += parts.empty() ? "" : fmt::format("  {:<10} {}\n", name_of(place), fmt::join(parts, ", "));
  }
  return lines;
}

std::string rate_lines(const PlaceRates& rates, std::string_view type) {
  std::string lines = "measured:\n";
  lines += fmt::format("{:>12.1f} GB/s  copying from the host to the device\n", 1e-9 * rates.copy);
  lines +=
      fmt::format("{:>12.1f} GB/s  weights in {}, one token on the processor\n", 1e-9 * rates.processor_bytes, type);
  lines += fmt::format("{:>12.1f} GFLOP/s  the same, many tokens\n", 1e-9 * rates.processor_flops);
  lines += fmt::format("{:>12.1f} GB/s  copying within the device's memory\n", 1e-9 * rates.device_bytes);
  lines += rates.device_flops > 0
               ? fmt::format("{:>12.1f} GFLOP/s  the device's float32 operations at its highest clock\n",
                             1e-9 * rates.device_flops)
               : "              the device does not tell its clock: it is counted with its memory's rate alone\n";
  return lines;
}

std::string choice_name(const PlacementChoice& choice, bool has_vision) {
  const Placement& placement = choice.placement;
  std::string name =
      fmt::format("{} of {} layers on the device", placement.count(Place::device), placement.layers.size());
  for (const Place place : {Place::streamed, Place::processor}) {
    if (const std::size_t count = placement.count(place); count > 0) {
      name += fmt::format(", {} {}", count, place == Place::streamed ? "streamed" : "on the processor");
    }
  }
  name += placement.head == Place::processor ? ", head on the processor" : "";
  if (!has_vision || placement.vision == Place::device) {
    return name;
  }
  return name + (placement.vision == Place::streamed ? ", vision tower streamed" : ", vision tower on the processor");
}

double tokens_per_second(const PassTimes& times) { return times.token > 0 ? 1 / times.token : 0; }
double prompt_rate(const PassTimes& times) {
  return times.prompt > 0 ? static_cast<double>(kPlannedPrompt) / times.prompt : 0;
}

std::string choice_lines(const ModelPlan& plan) {
  const std::int64_t patches = plan.sizes.expected_patches;
  std::string lines = fmt::format(
      "expected from weights alone, without attention: tokens/s of decoding and of a prompt of {}{}, and seconds of "
      "all "
      "with an answer of {}:\n",
      kPlannedPrompt, patches > 0 ? fmt::format(", seconds of images of {} patches", patches) : "", kPlannedAnswer);
  for (const PlacementChoice& choice : plan.choices) {
    const std::string images = patches > 0 ? fmt::format(" {:>8.3f} s", choice.times.images) : "";
    lines +=
        fmt::format("{:>12.1f} {:>10.1f}{} {:>8.2f} s  {}{}\n", tokens_per_second(choice.times),
                    prompt_rate(choice.times), images, choice.times.answer(),
                    choice_name(choice, plan.sizes.has_vision()), &choice == &plan.choices.front() ? " (chosen)" : "");
  }
  return lines;
}

json parts_json(const std::vector<MemoryPart>& parts) {
  json all = json::array();
  for (const MemoryPart& part : parts) {
    all.push_back({{"name", part.name}, {"bytes", part.bytes}});
  }
  return all;
}

json times_json(const PassTimes& times) {
  return {{"decode_tokens_per_s", tokens_per_second(times)},
          {"prompt_tokens_per_s", prompt_rate(times)},
          {"prompt_s", times.prompt},
          {"images_s", times.images},
          {"answer_s", times.answer()}};
}

json placement_json(const Placement& placement, bool has_vision) {
  json layers = json::array();
  for (const Place place : placement.layers) {
    layers.push_back(name_of(place));
  }
  json out{{"embedding", name_of(placement.embedding)}, {"layers", layers}, {"head", name_of(placement.head)}};
  if (has_vision) {
    out["vision"] = name_of(placement.vision);
    if (placement.vision == Place::streamed) {
      out["vision_parts"] = {{"streamed", placement.streamed_of_tower()}, {"all", placement.tower.size()}};
    }
  }
  return out;
}

}  // namespace

std::string plan_text(const SessionPlan& session) {
  const ModelPlan& plan = session.model;
  std::string text = fmt::format("{}; weights {}, cache {}\n", session.device_name, session.options.weights.name(),
                                 name_of(session.options.cache));
  text += fmt::format("{} memory: {:.1f} MiB of {:.1f} MiB free\n", plan.on_processor ? "the machine's" : "device",
                      plan_mebibytes(plan.device_bytes), plan_mebibytes(plan.device_free));
  text += part_lines(plan.device);
  if (plan.on_processor) {
    return text + "all of the model runs on the processor\n";
  }
  if (!plan.host.empty()) {
    text += fmt::format("host memory: {:.1f} MiB\n", plan_mebibytes(plan.host_bytes)) + part_lines(plan.host);
  }
  text += "where it runs:\n" + place_lines(plan);
  text += !plan.can_record() ? "decoding steps: kernel by kernel, as a graph needs the whole decoder on the device\n"
          : session.options.graphs ? "decoding steps: launched as a graph\n"
                                   : "decoding steps: kernel by kernel\n";
  if (plan.rates) {
    text += rate_lines(*plan.rates, session.options.weights.name());
    text += choice_lines(plan);
  }
  return text;
}

json plan_json(const SessionPlan& session) {
  const ModelPlan& plan = session.model;
  json out{{"device", session.device_name},
           {"weights", session.options.weights.name()},
           {"kv_cache", name_of(session.options.cache)},
           {"attention", session.options.attention.name()},
           {"device_bytes", plan.device_bytes},
           {"device_free_bytes", plan.device_free},
           {"device_parts", parts_json(plan.device)},
           {"host_bytes", plan.host_bytes},
           {"host_parts", parts_json(plan.host)},
           {"graph", session.options.graphs && plan.can_record()}};
  if (plan.on_processor) {
    return out;
  }
  out["placement"] = placement_json(plan.placement, plan.sizes.has_vision());
  if (plan.rates) {
    out["rates"] = {{"copy_bytes_per_s", plan.rates->copy},
                    {"processor_bytes_per_s", plan.rates->processor_bytes},
                    {"processor_flops", plan.rates->processor_flops},
                    {"device_bytes_per_s", plan.rates->device_bytes},
                    {"device_flops", plan.rates->device_flops}};
    out["expected"] = times_json(plan.choices.front().times);
    out["choices"] = json::array();
    for (const PlacementChoice& choice : plan.choices) {
      json entry = times_json(choice.times);
      entry["placement"] = placement_json(choice.placement, plan.sizes.has_vision());
      out["choices"].push_back(std::move(entry));
    }
  }
  return out;
}

void print_plan(const SessionPlan& plan, bool as_json) {
  fmt::print("{}", as_json ? plan_json(plan).dump(2) + "\n" : plan_text(plan));
}

}  // namespace pascaline
