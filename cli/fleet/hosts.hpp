#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/fleet/submissions.hpp"

namespace pascaline::cli {

/// One line of what a program said, for a message.
[[nodiscard]] std::string clean_note(std::string_view text);

/// `--ssh`: names of hosts, by commas.
CLI::Option* add_hosts_option(CLI::App& command, std::vector<std::string>& hosts, const std::string& help);

/// Throws Error naming all hosts that cannot be used, with the reasons: no answer over ssh without a password, or a
/// clock that differs by more than an hour.
void require_hosts(const std::vector<std::string>& hosts);

/// Folder of a fleet on a host, relative to the user's home there: of its own for each host, as homes may be shared.
[[nodiscard]] std::string folder_on_host(const Fleet& fleet, const std::string& host);

/// Copies this program, the libraries it needs beyond the C library, its data and the fleet's plan into the host's
/// folder and checks that it runs there. Throws Error naming the host.
void bring_program(const std::string& host, const std::string& there, const std::string& folder);

/// Starts the shards on the host, one after the other, so that they outlive the connection. Throws Error.
void start_on_host(const HostShards& host);

/// Asks the hosts among the sources how their shards stand; one that is not, or does not answer, leaves its shards
/// unknown, and a note.
void add_hosts(const std::vector<HostShards>& hosts, const FleetSources& sources, std::vector<ShardStatus>& shards,
               std::vector<std::string>& notes);

/// Copies databases and logs of the host's shards into `into`; returns why not, or an empty text.
[[nodiscard]] std::string fetch_from_host(const HostShards& host, const std::filesystem::path& into);

}  // namespace pascaline::cli
