#pragma once

#include <string>

#include "core/trial.hpp"
#include "db/connection.hpp"

namespace pascaline {

// Columns of the table `trials`, and of the view `trial_details`, that hold the fields of a trial: those of
// `for_each_field`, in its order and with its names. A configuration has two columns, its text and its JSON; a
// TimeSummary has four.

/// Their names, separated by commas.
[[nodiscard]] const std::string& trial_columns();
[[nodiscard]] int trial_column_count();

/// "?,?,?": that many parameters of a statement.
[[nodiscard]] std::string parameter_list(int count);

/// Binds the columns' values to the parameters from `index` on; returns the index after the last.
int bind_trial_columns(Query& to, int index, const Trial& trial);

/// Columns of `read_trial` in `trial_details`: the problem's, those above, and the trial whose result it shares.
[[nodiscard]] std::string detail_trial_columns();
/// Takes them from the query's current column on. Throws BadColumnError for what is no problem or configuration, Error
/// for an unknown status, stage or element type.
[[nodiscard]] Trial read_trial(Query& row);

}  // namespace pascaline
