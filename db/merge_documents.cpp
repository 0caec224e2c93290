#include <tuple>

#include "db/merge_rows.hpp"
#include "db/rows.hpp"

namespace pascaline {

// The readers themselves judge, so that all that passes can be read later. Limits of a device need no look: what in
// them is not as it should be counts as absent.
void check_documents(Connection& from) {
  Query problem = from.query("SELECT kernel, dimensions, types FROM problems ORDER BY id");
  while (problem.step()) {
    std::ignore = read_problem(problem);
  }
  Query trial = from.query("SELECT config FROM trials ORDER BY id");
  while (trial.step()) {
    std::ignore = read_config(trial, "trials");
  }
  Query attempt = from.query("SELECT config FROM attempts");
  while (attempt.step()) {
    std::ignore = read_config(attempt, "attempts");
  }
  check_probes(from);
}

}  // namespace pascaline
