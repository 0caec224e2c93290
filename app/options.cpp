#include "app/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <thread>

#include "app/text.hpp"
#include "core/argument_error.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/byte_size.hpp"
#include "core/util/paths.hpp"
#include "core/util/suggestion.hpp"
#include "model/fusion/site_space.hpp"
#include "report/report.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
namespace {

// The value of a parameter written as text, in the type its values have.
Value value_from(const Parameter& parameter, const std::string& text) {
  for (const Value& value : parameter.values) {
    if (to_text(value) == text) {
      return value;
    }
  }
  std::vector<std::string> known;
  for (const Value& value : parameter.values) {
    known.push_back(setting_text(value));
  }
  throw Error(
      fmt::format("{} is not among the values of {} ({})", setting_text(text), parameter.name, fmt::join(known, ", ")));
}

std::string no_parameter_text(const Space& space, const std::string& name) {
  std::vector<std::string> known;
  for (const Parameter& parameter : space.parameters) {
    known.push_back(parameter.name);
  }
  return fmt::format("kernel '{}' has no parameter '{}'{}; `pascaline kernels {}` lists them", space.kernel, name,
                     did_you_mean(name, known), space.kernel);
}

// The end of the value that begins there: the closing quote of a quoted one, else the next comma, but for commas inside
// brackets that are closed again.
std::size_t end_of_value(const std::string& text, std::size_t start) {
  if (start < text.size() && text[start] == '"') {
    std::size_t at = start + 1;
    while (at < text.size() && text[at] != '"') {
      at += text[at] == '\\' ? 2 : 1;
    }
    if (at >= text.size() || (at + 1 < text.size() && text[at + 1] != ',')) {
      throw UsageError(fmt::format("{} in '{}': a quoted value ends with a double quote, before a comma or the end",
                                   text.substr(start), text));
    }
    return at + 1;
  }
  constexpr std::string_view kOpening = "<([{";
  constexpr std::string_view kClosing = ">)]}";
  std::string open;
  for (std::size_t at = start; at < text.size(); ++at) {
    const std::size_t kind = kOpening.find(text[at]);
    if (kind != std::string_view::npos) {
      open += kClosing[kind];
    } else if (!open.empty() && text[at] == open.back()) {
      open.pop_back();
    } else if (text[at] == ',' && open.empty()) {
      return at;
    }
  }
  return open.empty() ? text.size() : std::min(text.find(',', start), text.size());
}

// A value without the quotes of `setting_text`, if it has them.
std::string unquoted(const std::string& value) {
  if (!value.starts_with('"')) {
    return value;
  }
  std::string out;
  for (std::size_t at = 1; at + 1 < value.size(); ++at) {
    at += value[at] == '\\' ? 1 : 0;
    out += value[at];
  }
  return out;
}

template <typename T>
CLI::Validator whole_number_of(T low, T high) {
  const bool bounded = high != std::numeric_limits<std::int64_t>::max();
  const auto check = [low, high, bounded](std::string& text) -> std::string {
    T value{};
    const char* const last = text.data() + text.size();
    const auto [end, fault] = std::from_chars(text.data(), last, value);
    if (fault == std::errc{} && end == last && value >= low && value <= high) {
      text = std::to_string(value);
      return "";
    }
    // Digits that do not fit name the end of the range, too.
    const std::string range = bounded || fault == std::errc::result_out_of_range
                                  ? fmt::format("from {} to {}", low, high)
                                  : fmt::format("of at least {}", low);
    return fmt::format("must be a whole number {}, not '{}'", range, text);
  };
  return {check, bounded ? fmt::format("in [{} - {}]", low, high) : fmt::format(">= {}", low)};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> split_settings(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::size_t equals = text.find('=', start);
    const bool named = equals < comma && equals > start;
    const std::size_t end = named ? end_of_value(text, equals + 1) : comma;
    const std::string piece = text.substr(start, end - start);
    if (!named || equals + 1 == end) {
      throw UsageError(fmt::format("'{}' is not NAME=value (in '{}')", piece, text));
    }
    const std::string name = text.substr(start, equals - start);
    if (std::any_of(out.begin(), out.end(), [&](const auto& setting) { return setting.first == name; })) {
      throw UsageError(fmt::format("{} is given twice in '{}'", name, text));
    }
    out.emplace_back(name, unquoted(text.substr(equals + 1, end - equals - 1)));
    start = end + 1;
  }
  return out;
}

void KernelOptions::add_kernel_to(CLI::App& command) {
  command.add_option("-k,--kernel", kernel, "Kernel: the common stem of its .cu and its .json")->capture_default_str();
  add_folders_to(command);
}

void KernelOptions::add_folders_to(CLI::App& command) {
  command.add_option("--kernels", kernels_folder, "Folder of kernel templates (default: the installed ones)");
  command.add_option("--spaces", spaces_folder, "Folder of search spaces (default: the installed ones)");
}

void KernelOptions::add_problems_to(CLI::App& command) {
  command.add_option("-p,--problem", problems, "A shape: DIMENSION=value,…,TYPE=element type (repeatable)");
}

void KernelOptions::add_settings_to(CLI::App& command) {
  command.add_option(
      "-s,--set", settings,
      "Parameter=value instead of the default's (repeatable, or comma-separated). A text with commas in double quotes");
}

void KernelOptions::add_given_to(CLI::App& command) {
  command
      .add_option(
          "--input", inputs,
          "NAME=FILE: contents of the input buffer NAME, instead of random numbers; FILE is a .npy file or raw bytes "
          "(repeatable)")
      ->allow_extra_args(false);
  command
      .add_option(
          "--answer", answers,
          "NAME=FILE: expected contents of the output buffer NAME, instead of the reference's result; FILE as for "
          "--input (repeatable)")
      ->allow_extra_args(false);
}

GivenFiles KernelOptions::given() const {
  const auto read = [](const char* option, const std::vector<std::string>& texts) {
    GivenFiles::Named named;
    for (const std::string& text : texts) {
      const std::size_t equals = text.find('=');
      if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
        throw UsageError(fmt::format("{} {}: expected NAME=FILE, the name of a buffer and a file", option, text));
      }
      named.emplace_back(text.substr(0, equals), std::filesystem::absolute(text.substr(equals + 1)));
    }
    return named;
  };
  return {read("--input", inputs), read("--answer", answers)};
}

std::filesystem::path KernelOptions::kernels() const {
  return kernels_folder.empty() ? data_folder("kernel_templates") : std::filesystem::path(kernels_folder);
}

std::filesystem::path KernelOptions::spaces() const {
  return spaces_folder.empty() ? data_folder("search_spaces") : std::filesystem::path(spaces_folder);
}

std::vector<std::string> kernel_names(const std::filesystem::path& spaces) {
  std::vector<std::string> names;
  std::error_code unseen;
  for (const auto& entry : std::filesystem::directory_iterator(spaces, unseen)) {
    const std::filesystem::path& file = entry.path();
    if (file.extension() == ".json" && !why_no_kernel_name(file.stem().string())) {
      names.push_back(file.stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Space KernelOptions::load_space(const std::string& name) const {
  if (why_no_kernel_name(name)) {
    throw UsageError(fmt::format(
        "'{}' is not a kernel name; give the stem of its .cu, and its folders with --kernels and --spaces", name));
  }
  if (is_site(name)) {
    return site_space(name);
  }
  const auto file = kernel_file(spaces(), name, ".json");
  try {
    return Space::load(file);
  } catch (const SpaceError&) {
    std::error_code unseen;
    if (std::filesystem::exists(file, unseen)) {
      throw;
    }
    throw ArgumentError(fmt::format("there is no kernel '{}': no {}{}; `pascaline kernels` lists all kernels", name,
                                    file.string(), did_you_mean(name, kernel_names(spaces()))));
  }
}

std::vector<Problem> KernelOptions::load_problems(const Space& space) const {
  std::vector<Problem> out;
  for (const std::string& text : problems) {
    out.push_back(space.problem(split_settings(text)));
  }
  if (out.empty()) {
    out.push_back(space.example_problem());
  }
  return out;
}

Config KernelOptions::load_config(const BoundSpace& bound) const {
  const Space& space = bound.space();
  std::vector<Config::Setting> values = bound.default_config().settings();
  for (const std::string& text : settings) {
    for (const auto& [name, value] : split_settings(text)) {
      const auto parameter = std::find_if(space.parameters.begin(), space.parameters.end(),
                                          [&key = name](const Parameter& p) { return p.name == key; });
      if (parameter == space.parameters.end()) {
        throw Error(no_parameter_text(space, name));
      }
      const auto setting =
          std::find_if(values.begin(), values.end(), [&key = name](const auto& s) { return s.first == key; });
      setting->second = value_from(*parameter, value);
    }
  }
  return Config(std::move(values));
}

void DeviceOptions::add_to(CLI::App& command, const char* nvrtc_help) {
  command.add_option("-d,--device", device, "cuda:N or emulator (default: cuda:0 where there is a GPU, else emulator)")
      ->check(device_name());
  command
      .add_option("--target", target,
                  "Architecture whose code is run, e.g. sm_61 (default: the device's own); on the emulator only its "
                  "limits count")
      ->check(target_name());
  command.add_option("--nvrtc", nvrtc, nvrtc_help)->transform(nvrtc_choice());
  command.add_option("--cache", cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
}

std::string DeviceOptions::chosen_device() const {
  if (!device.empty()) {
    return device;
  }
  return list_devices().front().id;
}

std::filesystem::path DeviceOptions::cache_path() const {
  return cache.empty() ? cache_folder() : std::filesystem::path(cache);
}

void add_database_option(CLI::App& command, std::string& database, const std::string& what) {
  command.add_option("--db", database, what + " (default: $PASCALINE_DB or ~/.local/share/pascaline/tuned.db)");
}

void add_report_options(CLI::App& command, ReportOptions& report) {
  command.add_option("-k,--kernel", report.kernel, "Only this kernel");
  command.add_option("--device-name", report.device, "Only this device, by its full name");
  command.add_option("--title", report.title, "Title of the report")->capture_default_str()->check(not_empty());
  command.add_option("-w,--workload", report.workload,
                     "Workload whose call counts weight the speedups in HTML and JSON, or none (default: the latest "
                     "sweep of a model on the device, if there is one)");
  command.add_option("--spaces", report.spaces_folder, "Folder of the workload's search spaces")
      ->check(CLI::ExistingDirectory);
}

std::filesystem::path database_path(const std::string& given) {
  return given.empty() ? default_database() : std::filesystem::path(given);
}

std::vector<std::string> own_words() {
  const std::string text = read_file("/proc/self/cmdline");  // each ends with a zero byte
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\0', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

std::string command_line() {
  std::string text;
  for (const std::string& word : own_words()) {
    text += (text.empty() ? "" : " ") + shell_word(word);
  }
  return text;
}

CLI::Validator one_of(std::vector<std::string> names) {
  std::string shown = fmt::format("{{{}}}", fmt::join(names, ","));
  const auto check = [names = std::move(names)](const std::string& text) -> std::string {
    return std::find(names.begin(), names.end(), text) != names.end()
               ? std::string()
               : fmt::format("there is no '{}'{}; it is one of {}", text, did_you_mean(text, names),
                             fmt::join(names, ", "));
  };
  return {check, std::move(shown)};
}

CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? std::string("it is empty") : std::string(); }, ""};
}

CLI::Validator number_within(double low, double high) {
  const std::string range = fmt::format("[{} - {}]", low, high);
  // CLI::Range lets NaN pass, which is neither below nor above anything.
  const auto check = [low, high, range](std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool whole = !text.empty() && end == text.c_str() + text.size();
    return whole && value >= low && value <= high ? "" : fmt::format("{} is not a number in {}", text, range);
  };
  return {check, "FLOAT in " + range};
}

CLI::Validator whole_number(std::int64_t low, std::int64_t high) { return whole_number_of(low, high); }

CLI::Validator any_unsigned() { return whole_number_of(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()); }

CLI::Validator byte_size() {
  const auto check = [](const std::string& text) -> std::string {
    try {
      (void)parse_byte_size(text);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  return {check, "SIZE"};
}

bool is_same_place(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code ignored;
  const std::filesystem::path first = std::filesystem::weakly_canonical(one, ignored);
  const std::filesystem::path second = std::filesystem::weakly_canonical(other, ignored);
  return one == other || (!first.empty() && first == second) || std::filesystem::equivalent(one, other, ignored);
}

void require_no_database(const std::filesystem::path& file, const std::filesystem::path& database) {
  for (const char* end : {"", "-wal", "-shm"}) {
    std::error_code missing;  // what is not there cannot be overwritten
    if (std::filesystem::equivalent(file, database.string() + end, missing)) {
      throw ArgumentError(fmt::format("{} is the database in use; give another file", file.string()));
    }
  }
}

void require_writable(const std::filesystem::path& file) {
  if (file.empty()) {
    throw Error("cannot write '', which is not a file name; give a file");
  }
  std::error_code unseen;  // what cannot be looked at cannot be written, either
  if (std::filesystem::is_directory(file, unseen)) {
    throw ArgumentError(fmt::format("cannot write {}: it is a folder; give a file", file.string()));
  }
  // Devices such as /dev/stdout are never replaced, and links stay what they are.
  if (std::filesystem::exists(file, unseen) && !std::filesystem::is_regular_file(file, unseen)) {
    if (::access(file.c_str(), W_OK) != 0) {
      throw Error(fmt::format("cannot write {}: {}; give another file", file.string(), std::strerror(errno)));
    }
    return;
  }
  const auto target =
      std::filesystem::is_symlink(file, unseen) ? std::filesystem::weakly_canonical(file, unseen) : file;
  const auto folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  const bool is_other = std::filesystem::exists(folder, unseen) && !std::filesystem::is_directory(folder, unseen);
  if (is_other || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    const int reason = is_other ? ENOTDIR : errno;
    throw Error(fmt::format("cannot write {}: the folder {} cannot be written: {}; give another file", file.string(),
                            folder.string(), std::strerror(reason)));
  }
}

std::size_t default_jobs() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace pascaline
