#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/options.hpp"
#include "core/space/space.hpp"
#include "core/util/paths.hpp"
#include "python/src/commands.hpp"
#include "python/src/engines.hpp"
#include "python/src/errors.hpp"
#include "python/src/tensors.hpp"
#include "python/src/without_gil.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;

constexpr std::uintptr_t kBufferAlignment = 16;

// Elements of an array that lies without gaps.
std::int64_t dense_elements(const std::string& name, const TensorView& view) {
  std::int64_t elements = 1;
  for (int i = 0; i < view.rank; ++i) {
    elements *= view.shape[static_cast<std::size_t>(i)];
  }
  if (view.row_stride != 0 && elements != 0) {
    throw ArgumentError(fmt::format("{}: its rows are farther apart than they are long; pass a contiguous copy", name));
  }
  return elements;
}

// What an array must be in a problem.
struct Wanted {
  std::string type;                           // of its elements
  ElementType stored = ElementType::float32;  // bytes of a packed matrix and of structures
  std::int64_t elements = 0;
};

Wanted wanted_of(const BoundSpace& bound, const Argument& argument) {
  const ElementType type = bound.type_of(argument);
  const Config config = bound.default_config();
  if (is_matrix_format(type) || (argument.composite && !argument.composite->is_vector)) {
    return {argument.composite ? argument.composite->name : std::string(name_of(type)), ElementType::uint8,
            static_cast<std::int64_t>(bound.buffer_bytes(argument, config))};
  }
  return {std::string(name_of(type)), type, bound.value(argument, config)};
}

// That an array is what the kernel's argument is.
void require_fits(const std::string& name, const std::string& kernel, const Problem& problem, const Wanted& wanted,
                  const TensorView& view) {
  const std::int64_t elements = dense_elements(name, view);
  if (view.type != wanted.stored) {
    throw ArgumentError(fmt::format(
        "{}: it is {}, but {} takes {}", name, name_of(view.type), kernel,
        wanted.type != name_of(wanted.stored) ? fmt::format("the bytes of {}, as uint8", wanted.type) : wanted.type));
  }
  if (elements != wanted.elements) {
    throw ArgumentError(
        fmt::format("{}: it has {} elements, but {} takes {}", name, elements, problem.text(), wanted.elements));
  }
}

void require_aligned(const Argument& argument, const TensorView& view) {
  if (reinterpret_cast<std::uintptr_t>(view.data) % kBufferAlignment != 0) {
    throw ArgumentError(fmt::format("{}: its address is not a multiple of {} bytes", argument.name, kBufferAlignment));
  }
}

// Between an array in host memory and a buffer of its size.
std::span<std::byte> bytes_of_array(const TensorView& view, const Buffer& buffer) {
  return {static_cast<std::byte*>(view.data), buffer.bytes()};
}

// The database with that name, or without one the user's; nothing if it is not there.
std::optional<std::filesystem::path> existing(const std::string& database) {
  std::filesystem::path file = database.empty() ? default_database() : std::filesystem::path(database);
  return std::filesystem::exists(file) ? std::optional(std::move(file)) : std::nullopt;
}

// Never destroyed; with the GIL.
std::vector<std::unique_ptr<Engine>>& kept_engines() {
  static auto& kept = *new std::vector<std::unique_ptr<Engine>>;
  return kept;
}

/// A kernel of the caller's own: its search space, and on each device that it ran on, what dispatches it.
class OwnKernel {
 public:
  /// Folders with NAME.cu and NAME.json. Throws SpaceError for the latter.
  OwnKernel(std::string name, const std::string& kernels, const std::string& spaces)
      : kernels_(kernels), spaces_(spaces), space_(Space::load(spaces_ / (name + ".json"))), name_(std::move(name)) {
    for (const Argument& argument : space_.arguments) {
      if (argument.kind == ArgumentKind::buffer && argument.access != Access::scratch) {
        buffers_.push_back(&argument);
      }
    }
  }
  OwnKernel(const OwnKernel&) = delete;
  OwnKernel& operator=(const OwnKernel&) = delete;
  /// Waits for what was launched. What a graph was given stays, as nobody tells when that graph goes.
  ~OwnKernel() {
    for (auto& [name, place] : places_) {
      if (place->engine && place->engine->was_captured()) {
        kept_engines().push_back(std::move(place->engine));
      }
    }
  }

  /// Names of the arrays that a launch takes.
  [[nodiscard]] nb::list arrays() const {
    nb::list names;
    for (const Argument* argument : buffers_) {
      names.append(nb::str(argument->name.c_str()));
    }
    return names;
  }

  /// Launches the best variant that is known for the problem on the arrays; on a GPU on the caller's stream and without
  /// waiting, with its engine kept for ever once a graph has such a launch.
  void launch(const std::string& problem_text, const nb::tuple& arrays, const std::string& device,
              const nb::object& stream, const std::string& database) {
    const std::vector<NamedTensor> tensors = tensors_of(arrays);
    Place place = place_of(device, tensors);
    const CallStreams streams = streams_of(place, stream, tensors);
    if (place < 0) {
      place = kEmulator;  // that kernel is the only code that there is
    }
    launch_on(place, problem_text, tensors, streams, database);
    note_changes(tensors);
  }

  /// The same on copies of arrays in host memory on that device (empty: the first GPU, or the emulated device); what
  /// the kernel writes is copied back.
  void run(const std::string& problem_text, const nb::tuple& arrays, const std::string& device,
           const std::string& database) {
    const std::vector<NamedTensor> tensors = tensors_of(arrays);
    for (const NamedTensor& named : tensors) {
      if (!named.tensor.in_host_memory()) {
        throw ArgumentError(
            fmt::format("{}: it is on {}, and is copied from host memory only; launch takes it where it is", named.name,
                        name_of_place(named.tensor.place)));
      }
    }
    {
      const WithoutGil released;
      const Problem problem = problem_of(problem_text);
      refuse_fork();
      DeviceOptions chosen;
      chosen.device = device;
      const std::string place = chosen.chosen_device();
      OnPlace& at = on_place(place);
      const std::lock_guard lock(at.mutex);
      engine_at(at, place, database).run([&](Dispatcher& dispatcher) { run_on(dispatcher, problem, tensors); });
    }
    note_changes(tensors);
  }

  /// Looks for winners again, in that database.
  void reload(const std::string& database) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, place] : places_) {
      const std::lock_guard place_lock(place->mutex);
      place->known.clear();
      if (place->engine) {
        place->engine->reload(existing(database));
      }
    }
  }

 private:
  // A problem that was asked for, by its text.
  struct Known {
    Problem problem;
    std::vector<Wanted> wanted;  // of buffers_
    const Prepared* prepared = nullptr;
  };
  struct OnPlace {
    std::mutex mutex;  // guards what follows
    std::unique_ptr<Engine> engine;
    std::map<std::string, Known> known;
  };

  void launch_on(Place place, const std::string& problem_text, const std::vector<NamedTensor>& tensors,
                 const CallStreams& streams, const std::string& database) {
    const WithoutGil released;
    refuse_fork();
    std::vector<void*> addresses;
    for (const NamedTensor& named : tensors) {
      addresses.push_back(named.tensor.view.data);
    }
    OnPlace& at = on_place(name_of_place(place));
    const std::lock_guard lock(at.mutex);
    if (!at.engine) {
      refuse_capture(name_.c_str(), place, streams);
    }
    Engine& engine = engine_at(at, name_of_place(place), database);
    Known* known = nullptr;
    engine.launch(
        name_.c_str(), streams, addresses,
        [&](const Dispatcher& dispatcher) {
          known = &known_problem(at, dispatcher, problem_text);
          for (std::size_t i = 0; i < tensors.size(); ++i) {
            require_fits(buffers_[i]->name, name_, known->problem, known->wanted[i], tensors[i].tensor.view);
            require_aligned(*buffers_[i], tensors[i].tensor.view);
          }
          return known->prepared;
        },
        [&](Dispatcher& dispatcher) -> const Prepared& {
          known->prepared = &dispatcher.prepare(known->problem);
          return *known->prepared;
        });
  }

  [[nodiscard]] std::vector<NamedTensor> tensors_of(const nb::tuple& arrays) const {
    if (arrays.size() != buffers_.size()) {
      std::string names;
      for (const Argument* argument : buffers_) {
        names += (names.empty() ? "" : ", ") + argument->name;
      }
      throw ArgumentError(fmt::format("{} takes {} arrays ({}), not {}", name_, buffers_.size(), names, arrays.size()));
    }
    std::vector<NamedTensor> tensors;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      tensors.push_back({buffers_[i]->name, tensor_of(buffers_[i]->name, arrays[i], is_output(*buffers_[i]))});
    }
    return tensors;
  }

  [[nodiscard]] Problem problem_of(const std::string& text) const {
    try {
      return space_.problem(text.empty() ? std::vector<std::pair<std::string, std::string>>{} : split_settings(text));
    } catch (const Error& error) {
      throw ArgumentError(error.what());
    }
  }

  [[nodiscard]] Known& known_problem(OnPlace& at, const Dispatcher& dispatcher, const std::string& text) const {
    const auto found = at.known.find(text);
    if (found != at.known.end()) {
      return found->second;
    }
    Known known{problem_of(text), {}, nullptr};
    const BoundSpace bound(space_, known.problem, dispatcher.target().limits);
    for (const Argument* argument : buffers_) {
      known.wanted.push_back(wanted_of(bound, *argument));
    }
    return at.known.emplace(text, std::move(known)).first->second;
  }

  OnPlace& on_place(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<OnPlace>& place = places_[name];
    if (!place) {
      place = std::make_unique<OnPlace>();
    }
    return *place;
  }

  Engine& engine_at(OnPlace& at, const std::string& place, const std::string& database) const {
    if (!at.engine) {
      DispatcherOptions options;
      options.kernels = kernels_;
      options.spaces = spaces_;
      options.database = existing(database);
      at.engine = std::make_unique<Engine>(place, options);
    }
    return *at.engine;
  }

  void run_on(Dispatcher& dispatcher, const Problem& problem, const std::vector<NamedTensor>& tensors) const {
    const BoundSpace bound(space_, problem, dispatcher.target().limits);
    Device& device = dispatcher.device();
    std::vector<Buffer> copies;
    std::vector<void*> addresses;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const Argument& argument = *buffers_[i];
      const TensorView& view = tensors[i].tensor.view;
      require_fits(argument.name, name_, problem, wanted_of(bound, argument), view);
      copies.push_back(device.allocate(bound.buffer_bytes(argument, bound.default_config())));
      device.upload(copies.back(), bytes_of_array(view, copies.back()));
      addresses.push_back(copies.back().data());
    }
    dispatcher.launch(dispatcher.prepare(problem), addresses);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (is_output(*buffers_[i])) {
        device.download(bytes_of_array(tensors[i].tensor.view, copies[i]), copies[i]);
      }
    }
  }

  std::filesystem::path kernels_;
  std::filesystem::path spaces_;
  Space space_;
  std::string name_;
  std::vector<const Argument*> buffers_;  // of space_
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<OnPlace>> places_;
};

}  // namespace

void add_kernels(nb::module_& module) {
  nb::class_<OwnKernel>(module, "OwnKernel")
      .def(nb::init<std::string, const std::string&, const std::string&>(), nb::arg("name"), nb::arg("kernels"),
           nb::arg("spaces"))
      .def("arrays", &OwnKernel::arrays)
      .def("launch", &OwnKernel::launch, nb::arg("problem"), nb::arg("arrays"), nb::arg("device"),
           nb::arg("stream").none(), nb::arg("db"))
      .def("run", &OwnKernel::run, nb::arg("problem"), nb::arg("arrays"), nb::arg("device"), nb::arg("db"))
      .def("reload", &OwnKernel::reload, nb::arg("db"), nb::call_guard<WithoutGil>());
}

}  // namespace pascaline::python
