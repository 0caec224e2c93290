#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/captures.hpp"
#include "python/src/commands.hpp"
#include "python/src/engines.hpp"
#include "python/src/errors.hpp"
#include "python/src/operation_fields.hpp"
#include "python/src/tensors.hpp"
#include "python/src/without_gil.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;

constexpr std::size_t kMaxFields = 24;

// Which of a call's arguments is which field of the operation, in the order of `fields`; -1: none.
using FieldOrder = std::array<int, kMaxFields>;

// A call's arguments as they were given; tensors that are None were left out.
struct Call {
  const FieldOrder& order;
  nb::handle arguments;     // a tuple
  std::string_view device;  // where to compute; empty: where the memory is
  nb::handle stream;        // None: the current one
  Caller caller;
};

nb::handle argument(const Call& call, std::size_t field) {
  const int at = call.order[field];
  return at < 0 ? nb::handle() : nb::handle(PyTuple_GetItem(call.arguments.ptr(), at));
}

void take(double value, bool& field) { field = value != 0; }
void take(double value, std::int64_t& field) { field = static_cast<std::int64_t>(value); }
void take(double value, ElementType& field) { field = static_cast<ElementType>(value); }
void take(double value, ops::Epilogue& field) { field = static_cast<ops::Epilogue>(value); }
void take(double value, NormEpsilon& field) {
  field.nano = std::llround(value * 1e9);
  if (field.nano >= 1 &&
      std::abs(value * 1e9 - static_cast<double>(field.nano)) > 1e-5 * static_cast<double>(field.nano)) {
    throw ArgumentError(
        fmt::format("epsilon: {} is not a whole number of billionths, of which kernels take it", value));
  }
}

// The text with a whole word replaced.
std::string with_word(std::string text, const std::string& word, const std::string& by) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
      text.replace(at, word.size(), by);
    }
  }
  return text;
}

// Names of operands in messages become those of the arguments.
template <typename Op>
std::string in_python(Op& op, std::string message) {
  std::map<const TensorView*, std::string> names;
  fields(op, [&](const char* name, auto& field) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, TensorView>) {
      names[&field] = name;
    }
  });
  Op::operands(op, [&](const char* name, const TensorView& tensor, ops::Use) {
    const auto known = names.find(&tensor);
    if (known != names.end() && known->second != name) {
      message = with_word(std::move(message), name, known->second);
    }
  });
  return message;
}

// The arrays of a call, which are kept as long as this is.
class CallTensors {
 public:
  // Puts a call's arguments into the operation.
  template <typename Op>
  void read(const Call& call, Op& op) {
    // Before any is there: operands that depend on the tensors are buffers that the operation does not have.
    std::array<const TensorView*, ops::Operands::kMax> written;
    std::size_t written_count = 0;
    Op::operands(op, [&](const char*, const TensorView& tensor, ops::Use use) {
      if (ops::is_written(use)) {
        written[written_count++] = &tensor;
      }
    });
    const auto is_written = [&](const TensorView& tensor) {
      return std::find(written.begin(), written.begin() + written_count, &tensor) != written.begin() + written_count;
    };
    std::size_t index = 0;
    fields(op, [&](const char* name, auto& field) {
      const nb::handle given = argument(call, index++);
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, TensorView>) {
        if (given.is_valid() && !given.is_none()) {
          NamedTensor& added = all_[count_];
          added = {name, tensor_of(name, given, is_written(field), call.caller)};
          ++count_;
          field = added.tensor.view;
        }
      } else if (given.is_valid()) {
        take(nb::cast<double>(given), field);
      }
    });
  }

  [[nodiscard]] std::span<const NamedTensor> all() const noexcept { return {all_.data(), count_}; }

 private:
  std::array<NamedTensor, ops::Operands::kMax> all_;
  std::size_t count_ = 0;
};

template <typename Op>
bool is_needed(Op& op) {
  try {
    return ops::is_needed(op);
  } catch (const Error& error) {
    throw ArgumentError(in_python(op, error.what()));
  }
}

template <typename Op>
void count(const Op& op) {
  if constexpr (requires { op.observed(); }) {
    count_call(op.observed());
  } else {
    count_call(op.problem());
  }
}

// Values that kernels take as places, where they lie in host memory and can be looked at: the emulated device reads in
// this process what they say.
template <typename Op>
void require_places(const Op& op) {
  if constexpr (std::is_same_v<Op, ops::AttentionPrefill>) {
    if (!ops::is_given(op.segment_starts)) {
      return;
    }
    const auto* const first = static_cast<const std::int32_t*>(op.segment_starts.data);
    const auto* const last = first + op.segments();
    const std::int64_t queries = op.q.shape[0];
    if (*first != 0 || *last != queries || !std::is_sorted(first, last + 1)) {
      throw ArgumentError(fmt::format("segment_starts: it must ascend from 0 to {}, the number of queries", queries));
    }
  }
}

// On a device; `op` is needed.
template <typename Op>
void launch(Engine& engine, const Op& op, const CallStreams& streams) {
  std::array<void*, ops::Operands::kMax> buffers;
  std::size_t buffer_count = 0;
  Op::operands(op, [&](const char*, const TensorView& tensor, ops::Use) { buffers[buffer_count++] = tensor.data; });
  const ops::KernelProblem problem = op.problem();
  engine.launch(
      Op::kName, streams, {buffers.data(), buffer_count},
      [&](Dispatcher& dispatcher) {
        return dispatcher.find(dispatcher.kernel(problem.kernel()), problem.dimensions(), problem.types());
      },
      [&](Dispatcher& dispatcher) -> const Prepared& { return dispatcher.prepare(problem.named()); });
}

// Without the GIL; whether anything was to be done.
template <typename Op>
bool compute_at(Op& op, Place place, const CallStreams& streams) {
  if (!is_needed(op)) {
    return false;
  }
  refuse_fork();
  if (place < 0) {
    require_places(op);
  }
  if (captures()) {
    count(op);
  }
  if (place == kProcessor) {
    op.compute();
  } else {
    launch(engine_of(Op::kName, place, streams), op, streams);
  }
  return true;
}

template <typename Op>
void run(const Call& call) {
  Op op;
  CallTensors tensors;
  tensors.read(call, op);
  const Place place = place_of(call.device, tensors.all());
  const CallStreams streams = streams_of(place, call.stream, tensors.all());
  bool wrote = false;
  {
    const WithoutGil released;
    wrote = compute_at(op, place, streams);
  }
  if (wrote) {
    note_changes(tensors.all());
  }
}

// Microseconds of the processor for each of so many launches as a program in C++ makes them, on a device.
template <typename Op>
double time_launches(const Call& call, int calls) {
  Op op;
  CallTensors tensors;
  tensors.read(call, op);
  const Place place = place_of(call.device, tensors.all());
  const WithoutGil released;
  if (place == kProcessor || !is_needed(op)) {
    throw ArgumentError("nothing of this is launched on a device");
  }
  using Clock = std::chrono::steady_clock;
  double spent_us = 0;
  engine_of(Op::kName, place, {}).run([&](Dispatcher& dispatcher) {
    ops::run(dispatcher, op);
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < calls; ++i) {
      ops::run(dispatcher, op);
    }
    spent_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  });
  return spent_us / calls;
}

// Names of the arguments in the order of `fields`.
template <typename Op>
std::vector<std::string> names() {
  std::vector<std::string> found;
  Op op;
  fields(op, [&](const char* name, auto&) { found.emplace_back(name); });
  return found;
}

struct Entry {
  const char* name;
  void (*run)(const Call&);
  double (*time)(const Call&, int calls);
  std::vector<std::string> (*names)();
};

template <typename Op>
constexpr Entry entry() {
  return {Op::kName, run<Op>, time_launches<Op>, names<Op>};
}

constexpr Entry kOperations[] = {
    entry<ops::Matmul>(),          entry<ops::NormedMatmul>(),      entry<ops::Mlp>(),
    entry<ops::PatchEmbed>(),      entry<ops::Rmsnorm>(),           entry<ops::Layernorm>(),
    entry<ops::Softmax>(),         entry<ops::Convert>(),           entry<ops::Add>(),
    entry<ops::SiluMultiply>(),    entry<ops::GeluMultiply>(),      entry<ops::GeluTanh>(),
    entry<ops::GeluErf>(),         entry<ops::Transpose>(),         entry<ops::Gather>(),
    entry<ops::RopeVision>(),      entry<ops::PositionEmbedding>(), entry<ops::AttentionPrefill>(),
    entry<ops::AttentionDecode>(), entry<ops::Quantize>(),          entry<ops::QuantizedMatmul>(),
    entry<ops::LogProbability>(),
};

/// An operation that is called with its arguments in the order of the names that it is made with.
class NativeOperation {
 public:
  NativeOperation(const std::string& name, const std::vector<std::string>& arguments)
      : count_(static_cast<Py_ssize_t>(arguments.size())) {
    const auto* const known = std::find_if(std::begin(kOperations), std::end(kOperations),
                                           [&](const Entry& one) { return one.name == name; });
    if (known == std::end(kOperations)) {
      throw ArgumentError(fmt::format("there is no operation '{}'", name));
    }
    entry_ = known;
    const std::vector<std::string> fields = entry_->names();
    order_.fill(-1);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto field = std::find(fields.begin(), fields.end(), arguments[i]);
      if (field == fields.end() || fields.size() > kMaxFields) {
        throw ArgumentError(fmt::format("{} has no argument '{}'", name, arguments[i]));
      }
      order_[static_cast<std::size_t>(field - fields.begin())] = static_cast<int>(i);
    }
  }

  void run(const nb::tuple& arguments, const nb::object& device, const nb::object& stream, bool from_torch) const {
    std::string name;
    entry_->run(call_of(arguments, device, stream, from_torch, name));
  }

  [[nodiscard]] double time(const nb::tuple& arguments, const nb::object& device, int calls) const {
    std::string name;
    return entry_->time(call_of(arguments, device, nb::none(), false, name), std::max(calls, 1));
  }

 private:
  [[nodiscard]] Call call_of(const nb::tuple& arguments, const nb::object& device, nb::handle stream, bool from_torch,
                             std::string& name) const {
    if (PyTuple_Size(arguments.ptr()) != count_) {
      throw ArgumentError(fmt::format("{} takes {} arguments", entry_->name, count_));
    }
    if (!device.is_none()) {
      name = nb::cast<std::string>(device);
    }
    return {order_, arguments, name, stream, from_torch ? Caller::torch_operators : Caller::anybody};
  }

  const Entry* entry_ = nullptr;
  FieldOrder order_{};
  Py_ssize_t count_ = 0;
};

}  // namespace

void add_operations(nb::module_& module) {
  module.def("begin_capture", begin_capture);
  module.def("end_capture", end_capture, nb::arg("capture"));
  nb::class_<NativeOperation>(module, "Operation")
      .def(nb::init<const std::string&, const std::vector<std::string>&>(), nb::arg("name"), nb::arg("arguments"))
      .def("run", &NativeOperation::run, nb::arg("arguments"), nb::arg("device").none(), nb::arg("stream").none(),
           nb::arg("from_torch") = false)
      .def("time", &NativeOperation::time, nb::arg("arguments"), nb::arg("device").none(), nb::arg("calls"));
  module.def(
      "use_database",
      [](const std::optional<std::string>& database) {
        refuse_fork();
        use_database(database ? std::optional<std::filesystem::path>(*database) : std::nullopt);
      },
      nb::arg("db").none(), nb::call_guard<WithoutGil>());
}

}  // namespace pascaline::python
