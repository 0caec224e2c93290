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

// "layer 3" or "layers 0-5, 7": those of a residency; empty if none is.
std::string layers_in(const std::vector<Residency>& layers, Residency where) {
  std::string runs;
  std::size_t count = 0;
  for (std::size_t first = 0; first < layers.size(); ++first) {
    if (layers[first] != where) {
      continue;
    }
    std::size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == where) {
      ++last;
    }
    runs += fmt::format("{}{}", runs.empty() ? "" : ", ", first);
    runs += last > first ? fmt::format("-{}", last) : "";
    count += last - first + 1;
    first = last;
  }
  return count == 0 ? runs : fmt::format("{} {}", count == 1 ? "layer" : "layers", runs);
}

// "vision tower", or how many of its parts are of a residency; empty if none is.
std::string tower_in(const MemoryLayout& plan, Residency where) {
  const std::size_t all = plan.sizes.tower.size();
  std::size_t count = 0;
  for (std::size_t part = 0; part < all; ++part) {
    count += plan.residency.residency_of_tower(part) == where ? 1 : 0;
  }
  return count == 0     ? std::string()
         : count == all ? std::string("vision tower")
                        : fmt::format("{} of {} parts of the vision tower", count, all);
}

// A line for each residency where something is.
std::string residency_lines(const MemoryLayout& plan) {
  const ModelResidency& residency = plan.residency;
  std::string lines;
  for (const Residency where : {Residency::device, Residency::streamed, Residency::processor}) {
    std::vector<std::string> parts;
    if (residency.embedding == where) {
      parts.emplace_back("embedding");
    }
    if (std::string layers = layers_in(residency.layers, where); !layers.empty()) {
      parts.push_back(std::move(layers));
    }
    if (residency.head == where) {
      parts.emplace_back("head");
    }
    if (std::string tower = tower_in(plan, where); !tower.empty()) {
      parts.push_back(std::move(tower));
    }
    lines += parts.empty() ? "" : fmt::format("  {:<10} {}\n", name_of(where), fmt::join(parts, ", "));
  }
  return lines;
}

std::string rate_lines(const ResidencyRates& rates, std::string_view type) {
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

std::string choice_name(const ResidencyChoice& choice, bool has_vision) {
  const ModelResidency& residency = choice.residency;
  std::string name =
      fmt::format("{} of {} layers on the device", residency.count(Residency::device), residency.layers.size());
  for (const Residency where : {Residency::streamed, Residency::processor}) {
    if (const std::size_t count = residency.count(where); count > 0) {
      name += fmt::format(", {} {}", count, where == Residency::streamed ? "streamed" : "on the processor");
    }
  }
  name += residency.head == Residency::processor ? ", head on the processor" : "";
  if (!has_vision || residency.vision == Residency::device) {
    return name;
  }
  return name +
         (residency.vision == Residency::streamed ? ", vision tower streamed" : ", vision tower on the processor");
}

double tokens_per_second(const PassTimes& times) { return times.token > 0 ? 1 / times.token : 0; }
double prompt_rate(const PassTimes& times) {
  return times.prompt > 0 ? static_cast<double>(kPlannedPrompt) / times.prompt : 0;
}

std::string choice_lines(const MemoryLayout& plan) {
  const std::int64_t patches = plan.sizes.expected_patches;
  std::string lines = fmt::format(
      "expected from weights alone, without attention: tokens/s of decoding and of a prompt of {}{}, and seconds of "
      "all "
      "with an answer of {}:\n",
      kPlannedPrompt, patches > 0 ? fmt::format(", seconds of images of {} patches", patches) : "", kPlannedAnswer);
  for (const ResidencyChoice& choice : plan.choices) {
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

json residency_json(const ModelResidency& residency, bool has_vision) {
  json layers = json::array();
  for (const Residency where : residency.layers) {
    layers.push_back(name_of(where));
  }
  json out{{"embedding", name_of(residency.embedding)}, {"layers", layers}, {"head", name_of(residency.head)}};
  if (has_vision) {
    out["vision"] = name_of(residency.vision);
    if (residency.vision == Residency::streamed) {
      out["vision_parts"] = {{"streamed", residency.streamed_of_tower()}, {"all", residency.tower.size()}};
    }
  }
  return out;
}

}  // namespace

std::string plan_text(const SessionEstimate& session) {
  const MemoryLayout& plan = session.model;
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
  text += "where it runs:\n" + residency_lines(plan);
  text += !plan.can_record() ? "decoding steps: kernel by kernel, as a graph needs the whole decoder on the device\n"
          : session.options.graphs ? "decoding steps: launched as a graph\n"
                                   : "decoding steps: kernel by kernel\n";
  if (plan.rates) {
    text += rate_lines(*plan.rates, session.options.weights.name());
    text += choice_lines(plan);
  }
  return text;
}

json plan_json(const SessionEstimate& session) {
  const MemoryLayout& plan = session.model;
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
  out["residency"] = residency_json(plan.residency, plan.sizes.has_vision());
  if (plan.rates) {
    out["rates"] = {{"copy_bytes_per_s", plan.rates->copy},
                    {"processor_bytes_per_s", plan.rates->processor_bytes},
                    {"processor_flops", plan.rates->processor_flops},
                    {"device_bytes_per_s", plan.rates->device_bytes},
                    {"device_flops", plan.rates->device_flops}};
    out["expected"] = times_json(plan.choices.front().times);
    out["choices"] = json::array();
    for (const ResidencyChoice& choice : plan.choices) {
      json entry = times_json(choice.times);
      entry["residency"] = residency_json(choice.residency, plan.sizes.has_vision());
      out["choices"].push_back(std::move(entry));
    }
  }
  return out;
}

void print_plan(const SessionEstimate& plan, bool as_json) {
  fmt::print("{}", as_json ? plan_json(plan).dump(2) + "\n" : plan_text(plan));
}

}  // namespace pascaline
