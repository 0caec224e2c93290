#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/binary.hpp"
#include "core/space/space.hpp"
#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/compilers.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/compiler_axis.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// Something whose fastest configuration is wanted, on one kind of device: a kernel, or a site of a model. All problems
/// of a plan with its space share it.
class Tunable {
 public:
  Tunable(const Space& own, const Space& searched, const CompilerAxis& built_by, KernelSource made_of)
      : space(&searched), own_space(&own), compilers(&built_by), source(std::move(made_of)) {}
  Tunable(const Tunable&) = delete;
  Tunable& operator=(const Tunable&) = delete;
  virtual ~Tunable() = default;

  /// Returns what makes a configuration's code: a request for the builder, or the code itself where nothing is compiled
  /// ahead. `own_bound`: the own space with the problem; `config`: of the space that is searched.
  [[nodiscard]] virtual std::variant<CompileRequest, Binary> build(const BoundSpace& own_bound, const Config& config,
                                                                   const CompileTarget& target) const = 0;
  /// True if a reference is built, too, with whose results others are compared.
  [[nodiscard]] virtual bool has_reference() const = 0;
  /// True if all configurations are compared, so that a winner among some of them would mean nothing.
  [[nodiscard]] virtual bool compares_all() const = 0;
  /// True if a decision stands until finals show that it is wrong, and if results of other searches are of use.
  [[nodiscard]] virtual bool is_lasting() const = 0;
  /// True if the model computes this problem of it by launching the other problem.
  [[nodiscard]] virtual bool launches(const SweepProblem& own, const Problem& other) const = 0;
  /// Seconds that its problems are guessed to take where none was measured; nothing if nothing is known.
  [[nodiscard]] virtual std::optional<double> guessed_s(const PlannedWork& work) const = 0;

  const Space* space;      ///< that is searched: with the compiler, if there are several
  const Space* own_space;  ///< under which trials are stored
  const CompilerAxis* compilers;
  KernelSource source;
  ContextIds context{};  ///< the rows that its trials hang on, without a problem and with the first toolkit
  std::vector<Store::Measured> measured{};  ///< on such a device before this run
  std::vector<Store::MeasuredElsewhere> measured_elsewhere{};
  std::vector<Winner> winners{};  ///< on all devices, where there is any on another or of other element types
};

/// A CUDA kernel. The compiler is one of its parameters, if there are several.
class KernelTunable final : public Tunable {
 public:
  using Tunable::Tunable;
  [[nodiscard]] std::variant<CompileRequest, Binary> build(const BoundSpace& own_bound, const Config& config,
                                                           const CompileTarget& target) const override;
  [[nodiscard]] bool has_reference() const override { return true; }
  [[nodiscard]] bool compares_all() const override { return false; }
  [[nodiscard]] bool is_lasting() const override { return true; }
  [[nodiscard]] bool launches(const SweepProblem& /*own*/, const Problem& /*other*/) const override { return false; }
  [[nodiscard]] std::optional<double> guessed_s(const PlannedWork& /*work*/) const override { return std::nullopt; }
};

/// A site of a model. Its configurations are the ways to compute it, each a sequence of kernels, built where they are
/// measured by the compilers of their winners: what is fastest changes with these.
class SiteTunable final : public Tunable {
 public:
  using Tunable::Tunable;
  [[nodiscard]] std::variant<CompileRequest, Binary> build(const BoundSpace& own_bound, const Config& config,
                                                           const CompileTarget& target) const override;
  [[nodiscard]] bool has_reference() const override { return false; }
  [[nodiscard]] bool compares_all() const override { return true; }
  [[nodiscard]] bool is_lasting() const override { return false; }
  [[nodiscard]] bool launches(const SweepProblem& own, const Problem& other) const override;
  [[nodiscard]] std::optional<double> guessed_s(const PlannedWork& work) const override;
};

/// One for each space, in that order. `searched` takes the spaces with the compiler among their parameters; all must
/// outlive the result. Throws as KernelSource::load.
[[nodiscard]] std::vector<std::unique_ptr<Tunable>> load_tunables(const std::vector<Space>& spaces,
                                                                  const SweepOptions& options,
                                                                  const CompilerAxis& compilers,
                                                                  const CompilerAxis& first_compiler,
                                                                  std::deque<Space>& searched);

}  // namespace pascaline
