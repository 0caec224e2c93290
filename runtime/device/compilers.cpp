#include "runtime/device/compilers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/installation.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kAll = "all";
constexpr const char* kNvrtc = "nvrtc";

std::vector<std::string> parts_of(std::string_view wish) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= wish.size();) {
    const std::size_t end = std::min(wish.find(',', begin), wish.size());
    parts.emplace_back(wish.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_version_list(std::string_view wish) {
  const std::vector<std::string> parts = parts_of(wish);
  return std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return is_nvrtc_version(part); });
}

/// Gathers the NVRTC libraries for a target.
class NvrtcGatherer {
 public:
  NvrtcGatherer(const CompileTarget& target, const std::string& driver_version)
      : target_(target), driver_version_(driver_version) {}

  // False, and a line, for one that cannot be used. Of one version the first that is found serves.
  bool add(const NvrtcInfo& info) {
    if (!compiles_for(info, target_.architecture)) {
      leave_out(fmt::format("NVRTC {} is left out: it does not compile for {}", info.version, target_.architecture));
      return false;
    }
    if (const std::string why = why_driver_refuses(info.version, target_.kind, driver_version_); !why.empty()) {
      leave_out(fmt::format("NVRTC {} is left out: {}", info.version, why));
      return false;
    }
    if (std::none_of(choice_.found.begin(), choice_.found.end(),
                     [&](const CompilerInfo& known) { return known.version == info.version; })) {
      choice_.found.push_back({kNvrtc, info.version, info.path});
    }
    return true;
  }

  void leave_out(std::string line) {
    if (std::find(choice_.left_out.begin(), choice_.left_out.end(), line) == choice_.left_out.end()) {
      choice_.left_out.push_back(std::move(line));
    }
  }

  [[nodiscard]] bool has(const std::string& version) const {
    return std::any_of(choice_.found.begin(), choice_.found.end(),
                       [&](const CompilerInfo& known) { return known.version == version; });
  }

  [[nodiscard]] CompilerChoice take() {
    std::stable_sort(choice_.found.begin(), choice_.found.end(), [](const CompilerInfo& a, const CompilerInfo& b) {
      return compare_versions(a.version, b.version) > 0;
    });
    return std::move(choice_);
  }

 private:
  const CompileTarget& target_;
  const std::string& driver_version_;
  CompilerChoice choice_;
};

[[noreturn]] void throw_none_left(const CompilerChoice& choice) {
  std::string lines;
  for (const std::string& line : choice.left_out) {
    lines += (lines.empty() ? "" : "; ") + line;
  }
  throw NvrtcError(fmt::format("no NVRTC can be used: {}", lines));
}

CompilerChoice all_nvrtc(const CompileTarget& target, const std::string& driver_version) {
  NvrtcGatherer gatherer(target, driver_version);
  const std::vector<NvrtcInfo> found = find_nvrtc();
  for (const NvrtcInfo& info : found) {
    gatherer.add(info);
  }
  CompilerChoice choice = gatherer.take();
  if (choice.found.empty()) {
    if (std::none_of(found.begin(), found.end(),
                     [&](const NvrtcInfo& info) { return compiles_for(info, target.architecture); })) {
      throw_no_nvrtc(target.architecture, {}, found);
    }
    throw_none_left(choice);
  }
  return choice;
}

CompilerChoice listed_nvrtc(const CompileTarget& target, const std::string& driver_version, const std::string& wish,
                            MissingCompiler missing) {
  NvrtcGatherer gatherer(target, driver_version);
  const std::vector<NvrtcInfo> all = find_nvrtc();
  std::vector<NvrtcInfo> named;
  for (const std::string& version : parts_of(wish)) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const NvrtcInfo& info) {
      return has_version(info, version) && compiles_for(info, target.architecture);
    });
    if (known == all.end() && missing == MissingCompiler::fault) {
      throw_no_nvrtc(target.architecture, version, all);
    }
    if (known == all.end()) {
      gatherer.leave_out(fmt::format("NVRTC {} is not here any more: {}", version, how_to_get(kNvrtc, version)));
    } else if (std::any_of(named.begin(), named.end(),
                           [&](const NvrtcInfo& other) { return other.version == known->version; })) {
      gatherer.leave_out(fmt::format("NVRTC {} is named twice in --nvrtc {}; it counts once", known->version, wish));
    } else {
      named.push_back(*known);
    }
  }
  for (const NvrtcInfo& info : named) {
    gatherer.add(info);
  }
  CompilerChoice choice = gatherer.take();
  if (choice.found.empty()) {
    throw_none_left(choice);
  }
  return choice;
}

// A user's own choice is taken whatever the driver says of it, as nothing else may take its place.
CompilerChoice one_nvrtc(const CompileTarget& target, const std::string& driver_version, const std::string& nvrtc) {
  const std::string wish = nvrtc_wish(nvrtc);
  const std::vector<NvrtcInfo> found = wanted_nvrtc(wish);
  const NvrtcInfo* first = nullptr;
  for (const NvrtcInfo& info : found) {
    if (!compiles_for(info, target.architecture)) {
      continue;
    }
    first = first == nullptr ? &info : first;
    if (wish.empty() && !why_driver_refuses(info.version, target.kind, driver_version).empty()) {
      continue;
    }
    return {{{kNvrtc, info.version, info.path}}, {}};
  }
  if (first == nullptr) {
    throw_no_nvrtc(target.architecture, wish, found);
  }
  return {{{kNvrtc, first->version, first->path}}, {}};
}

CompilerChoice host_compilers(const std::string& wish) {
  CompilerChoice choice;
  const auto add = [&](const HostCompiler& compiler) {
    choice.found.push_back({compiler.name, compiler.version, compiler.program});
  };
  if (wish != kAll) {
    add(HostCompiler::find());
    if (asks_for_compilers(wish)) {
      choice.left_out.push_back(fmt::format("--nvrtc {} is of no use here: {} compiles for the emulated device", wish,
                                            choice.found.front().text()));
    }
    return choice;
  }
  for (const HostCompiler& compiler : HostCompiler::find_all()) {
    add(compiler);
  }
  return choice;
}

}  // namespace

bool asks_for_compilers(std::string_view wish) {
  return wish == kAll || (wish.find(',') != std::string_view::npos && is_version_list(wish));
}

bool is_compiler_wish(std::string_view wish) { return wish == kAll || is_version_list(wish); }

CompilerChoice find_compilers(const CompileTarget& target, const std::string& driver_version, const std::string& wish,
                              MissingCompiler missing) {
  if (is_emulator_name(target.architecture)) {
    return host_compilers(wish);
  }
  if (wish == kAll) {
    return all_nvrtc(target, driver_version);
  }
  return asks_for_compilers(wish) ? listed_nvrtc(target, driver_version, wish, missing)
                                  : one_nvrtc(target, driver_version, wish);
}

std::vector<CompilerInfo> compilers_at_hand(const CompileTarget& target, const std::string& driver_version,
                                            const std::string& nvrtc) {
  if (is_emulator_name(target.architecture) || nvrtc_wish(nvrtc).empty()) {
    try {
      return find_compilers(target, driver_version, std::string(kAll)).found;
    } catch (const NvrtcError&) {
      // None that the driver takes: the usual one is tried all the same, as the rule may be too strict.
    }
  }
  return find_compilers(target, driver_version, nvrtc).found;
}

std::string cuda_of_driver(const std::string& driver_version) {
  constexpr std::string_view kMark = "(CUDA ";
  const std::size_t mark = driver_version.find(kMark);
  const std::string cuda = mark == std::string::npos ? driver_version : driver_version.substr(mark + kMark.size());
  return cuda.substr(0, cuda.find(')'));
}

std::string why_driver_refuses(const std::string& nvrtc_version, BinaryKind kind, const std::string& driver_version) {
  const std::string cuda = cuda_of_driver(driver_version);
  if (cuda.empty() || cuda.find_first_of("0123456789") != 0) {
    return {};
  }
  if (kind == BinaryKind::ptx && compare_versions(nvrtc_version, cuda) > 0) {
    return fmt::format("this driver reads PTX of CUDA {} and older; update the driver to use it", cuda);
  }
  const std::string major = nvrtc_version.substr(0, nvrtc_version.find('.'));
  if (kind == BinaryKind::cubin && compare_versions(major + ".0", cuda) > 0) {
    return fmt::format("this driver loads code of CUDA {} and older; update the driver to use it", cuda);
  }
  return {};
}

std::string how_to_get(std::string_view compiler, std::string_view version) {
  if (compiler != kNvrtc) {
    return fmt::format("install {} {}, or name it in PASCALINE_HOST_CXX", compiler, version);
  }
  for (const std::string_view brought : {"11.8", "12.9"}) {
    if (const std::string setup = setup_command(fmt::format("--nvrtc-{}", brought));
        version.starts_with(brought) && !setup.empty()) {
      return setup + " installs it";
    }
  }
  return fmt::format("install the NVRTC of CUDA {}", version);
}

}  // namespace pascaline
