#pragma once

#include <SQLiteCpp/Transaction.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "db/connection.hpp"
#include "db/store.hpp"

namespace pascaline {

struct Store::Impl {
  explicit Impl(std::unique_ptr<Connection> opened) : connection(std::move(opened)) {}

  std::unique_ptr<Connection> connection;
  std::unordered_map<std::int64_t, std::string> problem_texts;

  /// Text of a stored problem; empty if there is none with that id.
  const std::string& problem_text(std::int64_t problem_id);
  /// Inserts trial and samples into the transaction that is open; returns the trial's id.
  std::int64_t insert_trial(std::int64_t session_id, const ContextIds& context, const Trial& trial);
  /// The trial with its samples; those of the trial whose result it shares if it has none. Throws Error if there is no
  /// such trial.
  StoredTrial trial_with_samples(std::int64_t trial_id);
  void insert_telemetry(std::int64_t session_id, const TelemetryRow& row);
  /// Forgets that the configuration is on the device.
  void forget_attempt(std::int64_t session_id, const ContextIds& context, const std::string& config_text);
  /// Runs `work` in one transaction that holds the write lock from its start.
  template <typename Work>
  void transact(Work&& work) {
    SQLite::Transaction transaction(connection->database(), SQLite::TransactionBehavior::IMMEDIATE);
    work();
    transaction.commit();
  }
};

[[nodiscard]] inline std::int64_t unix_ms_now() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace pascaline
