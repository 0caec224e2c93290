#include "python/src/commands.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/data/code_limits.hpp"
#include "app/data/known_names.hpp"
#include "app/documents.hpp"
#include "app/model/model_workload.hpp"
#include "app/options.hpp"
#include "app/sweep/run_status.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "db/merge.hpp"
#include "db/store.hpp"
#include "python/src/command_words.hpp"
#include "python/src/errors.hpp"
#include "python/src/interruptible.hpp"
#include "python/src/without_gil.hpp"
#include "report/comparison.hpp"
#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "report/html.hpp"
#include "report/report.hpp"
#include "report/show.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/probe/probe_report.hpp"
#include "tuner/probe/probe_run.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;
using nlohmann::json;
using Words = std::vector<std::string>;

template <typename Json>
std::string json_text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string kernels(const std::optional<std::string>& name, const std::string& kernels_folder,
                    const std::string& spaces_folder) {
  KernelOptions options;
  options.kernels_folder = kernels_folder;
  options.spaces_folder = spaces_folder;
  if (name) {
    return json_text(kernel_document(options, *name));
  }
  return json_text(kernels_document(options, [](const Error& error) { throw error; }));
}

std::string explain(Words words) {
  CLI::App app;
  KernelOptions kernel;
  DeviceOptions device;
  std::string database;
  kernel.add_kernel_to(app);
  kernel.add_problems_to(app);
  device.add_to(app);
  add_database_option(app, database, "");
  read_words(app, std::move(words));
  return json_text(explain_document(kernel, device, database));
}

std::string status(const std::string& database) {
  const Store store(database_path(database), OpenMode::read_only);
  return json_text(status_json(store, store.sessions()));
}

struct Shown {
  std::string what, kernel, problem, status, objective;
  std::int64_t session = 0;
  std::size_t limit = 0;
};

ShowOptions show_options(const Shown& shown) {
  ShowOptions wanted;
  wanted.what = shown.what == "sessions" ? ShowWhat::sessions
                : shown.what == "trials" ? ShowWhat::trials
                : shown.what == "pareto" ? ShowWhat::pareto
                                         : ShowWhat::winners;
  wanted.objective = shown.objective.empty() ? std::nullopt : objective_from(shown.objective);
  if (!shown.objective.empty() && !wanted.objective) {
    throw ArgumentError(
        fmt::format("objective: there is no '{}'; it is one of time, energy, edp, sustained", shown.objective));
  }
  wanted.limit = shown.limit;
  wanted.filter.kernel = shown.kernel;
  if (!shown.problem.empty()) {
    if (shown.kernel.empty()) {
      throw ArgumentError("problem: it needs the kernel, too");
    }
    wanted.filter.problem = shown.kernel;
    for (const auto& [name, value] : split_settings(shown.problem)) {
      wanted.filter.problem += fmt::format(" {}={}", name, value);
    }
  }
  if (!shown.status.empty()) {
    wanted.filter.status = trial_status_from(shown.status);
    if (!wanted.filter.status) {
      throw ArgumentError(
          fmt::format("unknown status '{}'; use one of {}", shown.status, fmt::join(trial_status_names(), ", ")));
    }
  }
  if (shown.session > 0) {
    wanted.filter.session_id = shown.session;
  }
  return wanted;
}

std::string show(const std::string& database, const Shown& shown) {
  const ShowOptions wanted = show_options(shown);
  const Store store(database_path(database), OpenMode::read_only);
  require_known_kernel(store, shown.kernel);
  return json_text(show_json(store, wanted));
}

struct ReportWish {
  std::string database, format, file, session, against, against_session;
  bool limits = true, compile = true;
  ReportOptions report;
};

std::string report_text(const ReportWish& wish, const Store& store, const ReportComparison* comparison) {
  if (wish.format == "csv") {
    return csv_report(store, wish.report);
  }
  if (wish.format == "md") {
    return markdown_report(store, wish.report, comparison);
  }
  const nlohmann::ordered_json document = document_json(gather_report(store, wish.report), comparison);
  return wish.format == "html" ? html_report(document) : document.dump() + "\n";
}

std::vector<std::int64_t> sessions_of(const Store& store, const std::string& word) {
  return word.empty() ? std::vector<std::int64_t>{} : find_sessions(store, word);
}

// The text, or nothing if it was written to a file.
std::optional<std::string> report(ReportWish wish) {
  if (!wish.file.empty()) {
    require_writable(wish.file);
  }
  const Store store(database_path(wish.database), OpenMode::read_only);
  require_no_database(wish.file, store.file());
  std::optional<Store> other;
  std::optional<ReportComparison> comparison;
  wish.report.sessions = sessions_of(store, wish.session);
  if (!wish.against.empty() || !wish.against_session.empty()) {
    if (!wish.against.empty()) {
      other.emplace(wish.against, OpenMode::read_only);
      require_no_database(wish.file, other->file());
    }
    const Store& older = other ? *other : store;
    comparison =
        compare({&store, wish.report.sessions}, {&older, sessions_of(older, wish.against_session)}, wish.report);
  } else {
    require_known_kernel(store, wish.report.kernel);
    require_known_device(store, wish.report.device);
  }
  std::optional<CodeLimits> limits;
  if (wish.limits && wish.format != "csv") {
    CodeLimitOptions from = limit_options({}, wish.report.spaces_folder, {});
    from.compiles = wish.compile;
    limits.emplace(std::move(from));
    wish.report.limit_of = [&limits](const LimitRequest& request) { return limits->limit_of(request); };
  }
  std::string text = report_text(wish, store, comparison ? &*comparison : nullptr);
  if (wish.file.empty()) {
    return text;
  }
  write_file_atomically(wish.file, text);
  return std::nullopt;
}

std::string workload(Words words) {
  CLI::App app;
  ModelCommandOptions model;
  PassCommandOptions sizes{.usual_prompts = {128, 512, 1024, 2048}, .usual_image = "", .prompts = {}, .image = {}};
  std::string name;
  model.add_to(app);
  sizes.add_to(app);
  app.add_option("--name", name);
  read_words(app, std::move(words));
  model.require_kernels();
  const ModelSessionOptions session = model.session_options();
  const auto device = open_device(session.device.empty() ? list_devices().front().id : session.device);
  const Dispatcher dispatcher(*device, session.dispatcher);
  return observe_workload(model, sizes, name, &dispatcher).text;
}

struct ProbeWish {
  std::string database, device, target, nvrtc, cache;
  std::vector<std::string> only;
  double seconds = 60;
};

ProbeOptions probe_options(const ProbeWish& wish, Interruptible& caller) {
  ProbeOptions wanted;
  for (const std::string& name : wish.only) {
    const auto part = probe_part_from(name);
    if (!part) {
      throw ArgumentError(fmt::format("only: there is no part '{}'", name));
    }
    wanted.only.push_back(*part);
  }
  wanted.seconds = wish.seconds;
  wanted.target = wish.target;
  wanted.nvrtc = wish.nvrtc;
  wanted.kernels = data_folder("kernel_templates") / "probe";
  wanted.cache = wish.cache.empty() ? cache_folder() : std::filesystem::path(wish.cache);
  if (caller.heard()) {
    wanted.on_part = [&caller](ProbePart part) { caller.tell("part", json_text(json{{"part", name_of(part)}})); };
  }
  return wanted;
}

std::optional<std::string> probe_into(Store& store, const ProbeWish& wish, const Interruptible& caller,
                                      const ProbeOptions& wanted) {
  const auto device = open_device(wish.device);
  std::optional<ProbeOutcome> outcome = run_probe(*device, wanted, caller.stop());
  if (!outcome) {
    return std::nullopt;
  }
  if (outcome->probe.values.empty()) {
    throw Error("nothing could be measured on " + wish.device);
  }
  StoredProbe stored{0, std::move(outcome->probe), device_row(device->info()), std::move(outcome->toolkit)};
  stored.probe.uuid = Store::new_run();
  store.add_probe(stored.probe, store.device_id(stored.device), store.toolkit_id(stored.toolkit));
  return json_text(probe_json(stored));
}

// Nothing if it was interrupted.
std::optional<std::string> probe(const ProbeWish& wish, nb::object listener) {
  Interruptible caller(std::move(listener));
  const ProbeOptions wanted = probe_options(wish, caller);
  std::optional<std::string> text;
  caller.run([&] {
    const std::filesystem::path database = database_path(wish.database);
    const bool made_here = !std::filesystem::exists(database);
    try {
      Store store(database, OpenMode::create);
      text = probe_into(store, wish, caller, wanted);
    } catch (const Error&) {
      if (made_here) {
        remove_if_unused(database);
      }
      throw;
    }
    if (made_here && !text) {
      remove_if_unused(database);
    }
  });
  return text;
}

std::string probes(const std::string& database) {
  const Store store(database_path(database), OpenMode::read_only);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const StoredProbe& stored : store.probes(nullptr)) {
    all.push_back(probe_json(stored));
  }
  return json_text(all);
}

// Functions that take a while without calling Python.
using Released = nb::call_guard<WithoutGil>;

}  // namespace

void add_commands(nb::module_& module) {
  module.def("default_database", [] { return default_database().string(); });
  module.def(
      "data_folder", [](const std::string& name) { return data_folder(name).string(); }, nb::arg("name"));
  module.def(
      "devices", [] { return json_text(devices_document()); }, Released());
  module.def("kernels", kernels, nb::arg("name").none(), nb::arg("kernels"), nb::arg("spaces"), Released());
  module.def("explain", explain, nb::arg("words"), Released());
  module.def("status", status, nb::arg("db"), Released());
  module.def(
      "show",
      [](const std::string& database, const std::string& what, const std::string& kernel, const std::string& problem,
         const std::string& state, std::int64_t session, const std::string& objective, std::size_t limit) {
        return show(database, {what, kernel, problem, state, objective, session, limit});
      },
      nb::arg("db"), nb::arg("what"), nb::arg("kernel"), nb::arg("problem"), nb::arg("status"), nb::arg("session"),
      nb::arg("objective"), nb::arg("limit"), Released());
  module.def(
      "report",
      [](const std::string& database, const std::string& format, const std::string& file, const std::string& session,
         const std::string& against, const std::string& against_session, const std::string& kernel,
         const std::string& device_name, const std::string& title, const std::string& calls, bool limits,
         bool compile) {
        ReportWish wish{database, format, file, session, against, against_session, limits, compile, {}};
        wish.report.kernel = kernel;
        wish.report.device = device_name;
        wish.report.workload = calls;
        if (!title.empty()) {
          wish.report.title = title;
        }
        return report(std::move(wish));
      },
      nb::arg("db"), nb::arg("format"), nb::arg("file"), nb::arg("session"), nb::arg("against"),
      nb::arg("against_session"), nb::arg("kernel"), nb::arg("device_name"), nb::arg("title"), nb::arg("workload"),
      nb::arg("limits"), nb::arg("compile"), Released());
  module.def("workload", workload, nb::arg("words"), Released());
  module.def(
      "probe",
      [](const std::string& database, const std::string& device, const std::string& target, const std::string& nvrtc,
         const std::string& cache, const std::vector<std::string>& only, double seconds, nb::object listener) {
        return probe({database, device, target, nvrtc, cache, only, seconds}, std::move(listener));
      },
      nb::arg("db"), nb::arg("device"), nb::arg("target"), nb::arg("nvrtc"), nb::arg("cache"), nb::arg("only"),
      nb::arg("seconds"), nb::arg("listener").none());
  module.def("probes", probes, nb::arg("db"), Released());
}

}  // namespace pascaline::python
