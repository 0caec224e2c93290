#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
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

#include "cli/command.hpp"
#include "core/space/space.hpp"
#include "python/src/commands.hpp"
#include "python/src/engines.hpp"
#include "python/src/errors.hpp"
#include "python/src/tensors.hpp"

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

// That an array is what the kernel's argument is, in this problem.
void require_fits(const BoundSpace& bound, const Argument& argument, const TensorView& view) {
  const ElementType type = bound.type_of(argument);
  const std::int64_t elements = dense_elements(argument.name, view);
  const bool packed = is_matrix_format(type);
  if (view.type != (packed ? ElementType::uint8 : type)) {
    throw ArgumentError(
        fmt::format("{}: it is {}, but {} takes {}", argument.name, name_of(view.type), bound.space().kernel,
                    packed ? fmt::format("the bytes of {}, as uint8", name_of(type)) : std::string(name_of(type))));
  }
  const Config config = bound.default_config();
  const auto wanted =
      packed ? static_cast<std::int64_t>(bound.buffer_bytes(argument, config)) : bound.value(argument, config);
  if (elements != wanted) {
    throw ArgumentError(fmt::format("{}: it has {} elements, but {} takes {}", argument.name, elements,
                                    bound.problem().text(), wanted));
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
  ~OwnKernel() = default;

  /// Names of the arrays that a launch takes.
  [[nodiscard]] nb::list arrays() const {
    nb::list names;
    for (const Argument* argument : buffers_) {
      names.append(nb::str(argument->name.c_str()));
    }
    return names;
  }

  /// Launches the best variant that is known for the problem on the arrays and waits for it.
  void launch(const std::string& problem_text, const nb::tuple& arrays, const std::string& device,
              const std::optional<std::string>& database) {
    const std::map<std::string, Tensor> tensors = tensors_of(arrays);
    std::string place = place_of(device, tensors);
    if (place == kProcessor) {
      place = "emulator";  // that kernel is the only code that there is
    }
    const nb::gil_scoped_release released;
    const Problem problem = problem_of(problem_text);
    refuse_fork();
    engine(place, database).run([&](Dispatcher& dispatcher) { launch_on(dispatcher, problem, tensors); });
  }

  /// The same on copies of arrays in host memory on that device (empty: the first GPU, or the emulated device); what
  /// the kernel writes is copied back.
  void run(const std::string& problem_text, const nb::tuple& arrays, const std::string& device,
           const std::optional<std::string>& database) {
    const std::map<std::string, Tensor> tensors = tensors_of(arrays);
    for (const auto& [name, tensor] : tensors) {
      if (tensor.device != kProcessor) {
        throw ArgumentError(fmt::format(
            "{}: it is on {}, and is copied from host memory only; launch takes it where it is", name, tensor.device));
      }
    }
    const nb::gil_scoped_release released;
    const Problem problem = problem_of(problem_text);
    refuse_fork();
    cli::DeviceOptions chosen;
    chosen.device = device;
    engine(chosen.chosen_device(), database).run([&](Dispatcher& dispatcher) { run_on(dispatcher, problem, tensors); });
  }

  /// Looks for winners again, in that database.
  void reload(const std::optional<std::string>& database) {
    const std::lock_guard lock(mutex_);
    for (auto& [place, engine] : engines_) {
      if (engine) {
        engine->reload(database ? std::optional<std::filesystem::path>(*database) : std::nullopt);
      }
    }
  }

 private:
  [[nodiscard]] std::map<std::string, Tensor> tensors_of(const nb::tuple& arrays) const {
    if (arrays.size() != buffers_.size()) {
      std::string names;
      for (const Argument* argument : buffers_) {
        names += (names.empty() ? "" : ", ") + argument->name;
      }
      throw ArgumentError(fmt::format("{} takes {} arrays ({}), not {}", name_, buffers_.size(), names, arrays.size()));
    }
    std::map<std::string, Tensor> tensors;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      tensors.emplace(buffers_[i]->name, tensor_of(buffers_[i]->name, arrays[i], is_output(*buffers_[i])));
    }
    return tensors;
  }

  [[nodiscard]] Problem problem_of(const std::string& text) const {
    try {
      return space_.problem(text.empty() ? std::vector<std::pair<std::string, std::string>>{}
                                         : cli::split_settings(text));
    } catch (const Error& error) {
      throw ArgumentError(error.what());
    }
  }

  Engine& engine(const std::string& place, const std::optional<std::string>& database) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Engine>& engine = engines_[place];
    if (!engine) {
      DispatcherOptions options;
      options.kernels = kernels_;
      options.spaces = spaces_;
      if (database) {
        options.database = *database;
      }
      engine = std::make_unique<Engine>(place, options);
    }
    return *engine;
  }

  void launch_on(Dispatcher& dispatcher, const Problem& problem, const std::map<std::string, Tensor>& tensors) const {
    const BoundSpace bound(space_, problem, dispatcher.target().limits);
    std::vector<void*> addresses;
    for (const Argument* argument : buffers_) {
      const TensorView& view = tensors.at(argument->name).view;
      require_fits(bound, *argument, view);
      require_aligned(*argument, view);
      addresses.push_back(view.data);
    }
    dispatcher.launch(dispatcher.prepare(problem), addresses);
  }

  void run_on(Dispatcher& dispatcher, const Problem& problem, const std::map<std::string, Tensor>& tensors) const {
    const BoundSpace bound(space_, problem, dispatcher.target().limits);
    Device& device = dispatcher.device();
    std::vector<Buffer> copies;
    std::vector<void*> addresses;
    for (const Argument* argument : buffers_) {
      const TensorView& view = tensors.at(argument->name).view;
      require_fits(bound, *argument, view);
      copies.push_back(device.allocate(bound.buffer_bytes(*argument, bound.default_config())));
      device.upload(copies.back(), bytes_of_array(view, copies.back()));
      addresses.push_back(copies.back().data());
    }
    dispatcher.launch(dispatcher.prepare(problem), addresses);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (is_output(*buffers_[i])) {
        device.download(bytes_of_array(tensors.at(buffers_[i]->name).view, copies[i]), copies[i]);
      }
    }
  }

  std::filesystem::path kernels_;
  std::filesystem::path spaces_;
  Space space_;
  std::string name_;
  std::vector<const Argument*> buffers_;  // of space_
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Engine>> engines_;
};

}  // namespace

void add_kernels(nb::module_& module) {
  nb::class_<OwnKernel>(module, "OwnKernel")
      .def(nb::init<std::string, const std::string&, const std::string&>(), nb::arg("name"), nb::arg("kernels"),
           nb::arg("spaces"))
      .def("arrays", &OwnKernel::arrays)
      .def("launch", &OwnKernel::launch, nb::arg("problem"), nb::arg("arrays"), nb::arg("device"), nb::arg("db").none())
      .def("run", &OwnKernel::run, nb::arg("problem"), nb::arg("arrays"), nb::arg("device"), nb::arg("db").none())
      .def("reload", &OwnKernel::reload, nb::arg("db").none(), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace pascaline::python
