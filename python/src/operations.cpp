#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/captures.hpp"
#include "python/src/commands.hpp"
#include "python/src/engines.hpp"
#include "python/src/errors.hpp"
#include "python/src/operation_fields.hpp"
#include "python/src/tensors.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;

// A call's arguments as they were given; tensors that are None were left out.
struct Call {
  nb::dict tensors;
  std::map<std::string, double> numbers;
  std::string device;  // where to compute; empty: where the memory is
};

void take(double value, bool& field) { field = value != 0; }
void take(double value, std::int64_t& field) { field = static_cast<std::int64_t>(value); }
void take(double value, ElementType& field) { field = static_cast<ElementType>(value); }
void take(double value, ops::Epilogue& field) { field = static_cast<ops::Epilogue>(value); }
void take(double value, NormEpsilon& field) { field.nano = std::llround(value * 1e9); }

bool is_written_tensor(const std::vector<std::pair<const TensorView*, ops::Use>>& uses, const TensorView* tensor) {
  for (const auto& [used, use] : uses) {
    if (used == tensor && ops::is_written(use)) {
      return true;
    }
  }
  return false;
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

template <typename Op>
void run(const Call& call) {
  Op op;
  std::map<std::string, Tensor> tensors;
  std::vector<std::pair<const TensorView*, ops::Use>> uses;
  // Those that depend on the tensors are buffers that the operation does not have.
  Op::operands(op, [&](const char*, const TensorView& tensor, ops::Use use) { uses.emplace_back(&tensor, use); });
  fields(op, [&](const char* name, auto& field) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, TensorView>) {
      if (call.tensors.contains(name) && !call.tensors[name].is_none()) {
        Tensor tensor = tensor_of(name, call.tensors[name], is_written_tensor(uses, &field));
        field = tensor.view;
        tensors.emplace(name, std::move(tensor));
      }
    } else if (const auto number = call.numbers.find(name); number != call.numbers.end()) {
      take(number->second, field);
    }
  });
  const std::string place = place_of(call.device, tensors);
  const nb::gil_scoped_release released;
  bool needed = false;
  try {
    needed = ops::is_needed(op);
  } catch (const Error& error) {
    throw ArgumentError(in_python(op, error.what()));
  }
  if (!needed) {
    return;
  }
  refuse_fork();
  if (captures()) {
    if constexpr (requires { op.observed(); }) {
      count_call(op.observed());
    } else {
      count_call(op.problem());
    }
  }
  if (place == kProcessor) {
    op.compute();
  } else {
    engine_of(place).run([&](Dispatcher& dispatcher) { ops::launch(dispatcher, op); });
  }
}

struct Entry {
  const char* name;
  void (*run)(const Call&);
};

template <typename Op>
constexpr Entry entry() {
  return {Op::kName, run<Op>};
}

constexpr Entry kOperations[] = {
    entry<ops::Matmul>(),          entry<ops::NormedMatmul>(),      entry<ops::Mlp>(),
    entry<ops::PatchEmbed>(),      entry<ops::Rmsnorm>(),           entry<ops::Layernorm>(),
    entry<ops::Softmax>(),         entry<ops::Convert>(),           entry<ops::Add>(),
    entry<ops::SiluMultiply>(),    entry<ops::GeluMultiply>(),      entry<ops::GeluTanh>(),
    entry<ops::GeluErf>(),         entry<ops::Transpose>(),         entry<ops::Gather>(),
    entry<ops::RopeVision>(),      entry<ops::PositionEmbedding>(), entry<ops::AttentionPrefill>(),
    entry<ops::AttentionDecode>(), entry<ops::Quantize>(),          entry<ops::QuantizedMatmul>(),
};

void run_operation(const std::string& name, const nb::dict& tensors, const std::map<std::string, double>& numbers,
                   const std::string& device) {
  for (const Entry& known : kOperations) {
    if (known.name == name) {
      known.run({tensors, numbers, device});
      return;
    }
  }
  throw ArgumentError(fmt::format("there is no operation '{}'", name));
}

}  // namespace

void add_operations(nb::module_& module) {
  module.def("begin_capture", begin_capture);
  module.def("end_capture", end_capture, nb::arg("capture"));
  module.def("run_operation", run_operation, nb::arg("name"), nb::arg("tensors"), nb::arg("numbers"),
             nb::arg("device"));
  module.def(
      "use_database",
      [](const std::optional<std::string>& database) {
        refuse_fork();
        use_database(database ? std::optional<std::filesystem::path>(*database) : std::nullopt);
      },
      nb::arg("db").none(), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace pascaline::python
