#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "core/space/space.hpp"
#include "tuner/measure/given_data.hpp"

namespace pascaline {

struct ReportOptions;  // report/report.hpp

/// The command line is wrong, whatever files and machine there are: exit code 2, with where to read on.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Kernel, space and problem options that several subcommands share.
struct KernelOptions {
  std::string kernel = "matmul";
  std::string kernels_folder;  ///< empty: the installed ones
  std::string spaces_folder;
  std::vector<std::string> problems;  ///< "M=1,N=2048,K=2048,STORAGE=float32"
  std::vector<std::string> settings;  ///< "BLOCK_M=64"
  std::vector<std::string> inputs;    ///< "x=x.npy"
  std::vector<std::string> answers;   ///< the same

  void add_kernel_to(CLI::App& command);
  /// Only `--kernels` and `--spaces`.
  void add_folders_to(CLI::App& command);
  void add_problems_to(CLI::App& command);
  void add_settings_to(CLI::App& command);
  /// `--input` and `--answer`.
  void add_given_to(CLI::App& command);

  [[nodiscard]] std::filesystem::path kernels() const;
  [[nodiscard]] std::filesystem::path spaces() const;
  /// The space of `kernel`, or of that name; throws Error if there is none, with the kernel that was probably meant.
  [[nodiscard]] Space load_space() const { return load_space(kernel); }
  [[nodiscard]] Space load_space(const std::string& name) const;
  /// The problems given, or the space's example problem.
  [[nodiscard]] std::vector<Problem> load_problems(const Space& space) const;
  /// The files of `--input` and `--answer`, with absolute paths; throws UsageError naming what is not NAME=FILE.
  [[nodiscard]] GivenFiles given() const;
  /// The default configuration with the settings given.
  [[nodiscard]] Config load_config(const BoundSpace& bound) const;
};

/// Names of the kernels that have a search space in the folder, sorted; none if it cannot be read.
[[nodiscard]] std::vector<std::string> kernel_names(const std::filesystem::path& spaces);

/// What `--nvrtc` says of itself, where it takes one and where several may be tried.
inline constexpr const char* kNvrtcHelp =
    "NVRTC to use: a version such as 11.8, or a library's path (default: the one each winner was built by)";
inline constexpr const char* kNvrtcChoiceHelp =
    "NVRTC to use: a version such as 11.8, several to choose among (11.8,12.9 or all), or a library's path";

/// Device, target and compiler options that several subcommands share.
struct DeviceOptions {
  std::string device;  ///< empty: cuda:0 where there is a GPU, else emulator
  std::string target;
  std::string nvrtc;
  std::string cache;

  void add_to(CLI::App& command, const char* nvrtc_help = kNvrtcHelp);
  [[nodiscard]] std::string chosen_device() const;
  [[nodiscard]] std::filesystem::path cache_path() const;
};

/// `--db`, with the user's default database.
void add_database_option(CLI::App& command, std::string& database, const std::string& what);
[[nodiscard]] std::filesystem::path database_path(const std::string& given);

/// `--kernel`, `--device-name`, `--title`, `--workload` and `--spaces`: what a report is of.
void add_report_options(CLI::App& command, ReportOptions& report);

/// Accepts one of these names; of another it says which was probably meant.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> names);
/// Accepts a text that is not empty, as a shell's unset variable would be.
[[nodiscard]] CLI::Validator not_empty();
/// Accepts a finite number from `low` to `high`, both included; anything else is a wrong command line.
[[nodiscard]] CLI::Validator number_within(double low, double high);
/// Accepts a whole number from `low` to `high`, both included, in decimal digits. For `transform`, not
/// `check`: it takes leading zeros away, which the parser would read as octal.
[[nodiscard]] CLI::Validator whole_number(std::int64_t low,
                                          std::int64_t high = std::numeric_limits<std::int64_t>::max());
/// The same of an unsigned integer of 64 bits, every value.
[[nodiscard]] CLI::Validator any_unsigned();
/// Accepts a size with its unit, such as 1.5GiB; see `parse_byte_size`.
[[nodiscard]] CLI::Validator byte_size();

/// Accepts an architecture of code whose limits are known (`sm_61`), or the emulator's name beside them.
[[nodiscard]] CLI::Validator architecture_name(bool with_emulator);
/// Accepts what `--target` may be: such an architecture, or one that is newer, as a device's own.
[[nodiscard]] CLI::Validator target_name();
/// Accepts the name of a device, whether it is here or not: "cuda:N", "emulator" or, if asked for, "cpu".
[[nodiscard]] CLI::Validator device_name(bool with_processor = false);
/// Accepts "all" or names of devices separated by commas.
[[nodiscard]] CLI::Validator device_list();
/// Accepts a part of a sweep, such as 2/4; see `parse_shard`.
[[nodiscard]] CLI::Validator shard_text();
/// Accepts a duration with its unit, such as 90m, within these bounds.
[[nodiscard]] CLI::Validator duration(double least_s, double most_s = std::numeric_limits<double>::infinity());
/// Accepts a time such as 07:00; see `parse_time_of_day`.
[[nodiscard]] CLI::Validator time_of_day();
/// Accepts a version of NVRTC, a list of them, "all" however it is written, or a path. For `transform`: it writes "all"
/// in small letters.
[[nodiscard]] CLI::Validator nvrtc_choice();

/// Throws Error with the reason if `write_file_atomically` cannot write `file`, which is better known before long work.
void require_writable(const std::filesystem::path& file);
/// Whether two paths lead to one place, which need not be there yet.
[[nodiscard]] bool is_same_place(const std::filesystem::path& one, const std::filesystem::path& other);
/// Throws Error if the file is that of a database, or one beside it: what it holds took a night.
void require_no_database(const std::filesystem::path& file, const std::filesystem::path& database);

/// Default number of compile workers: every processor.
[[nodiscard]] std::size_t default_jobs();

/// The words this process was started with, the program's name first.
[[nodiscard]] std::vector<std::string> own_words();

/// The command line of this process, as a shell reads it: for the record.
[[nodiscard]] std::string command_line();

/// Settings "NAME=value,…" as pairs; throws UsageError naming the piece that is not one. Commas in a value are in
/// brackets, as in Shape<64, 32>, or the value is quoted as `setting_text` writes it.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> split_settings(const std::string& text);

}  // namespace pascaline
