#include "tests/cli/simulated_command.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "app/sweep/prepared_sweep.hpp"
#include "cli/command.hpp"
#include "cli/tune/shown_sweep.hpp"
#include "core/error.hpp"
#include "tests/db/fixtures.hpp"
#include "tuner/simulation/simulation.hpp"

namespace pascaline::testing {

ProgramResult simulate_command(const std::filesystem::path& folder, const std::vector<std::string>& words,
                               const SimulatedWorld& world) {
  ::setenv("PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE, 1);
  CLI::App app;
  CLI::App* const command = app.add_subcommand("sweep");
  SweepCommandOptions options;
  add_sweep_options(*command, options);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  Simulation simulation(world, {list_devices().back()});
  ProgramResult result;
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen((folder / "stdout").c_str(), "w"),
                                                              std::fclose);
    try {
      result.exit_code =
          cli::run_shown(prepare_sweep(std::move(options), *command), out.get(), false, simulation.services());
    } catch (const Error& error) {
      result.exit_code = cli::kFault;
      result.error = std::string("pascaline: ") + error.what() + "\n";
    }
  }
  result.out = bytes_of(folder / "stdout");
  return result;
}

}  // namespace pascaline::testing
