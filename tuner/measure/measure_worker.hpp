#pragma once

namespace pascaline {

/// The loop of the process that owns a device on behalf of a sweep: frames (`frames.hpp`) on stdin and stdout until
/// stdin ends. It is told, in this order,
///
///   setup    device, target, database (path or null), kernels, spaces, nvrtc, cache: of the kernels of models' sites;
///            measure, governor, sensors (path of a trace, or empty), ends_at_s: when this process is
///            to have stopped measuring and waiting, by the system's steady clock, or null; as in the two below
///   problem  space (its JSON), name (of the space's file), values (of dimensions and types), reference (a Binary or
///            null), seed                                                        replaces the problem before it
///   trial    id, config, binary, best_us, ends_at_s
///   finals   id, finalists [{config, binary}], options, ends_at_s
///
/// and tells
///
///   ready     busy_ms, waited_ms: the device is open and the card steady
///   prepared  busy_ms: buffers, inputs and reference results of the problem are there
///   refused   reason: the problem does not fit the device
///   phase     id, phase: what it begins to do, so that the parent can tell whom to blame and how long to wait
///   trial     id, trial, agrees_with (text of the first configuration with the same wrong result, or empty), busy_ms,
///             waited_ms: of it for the card to be steady
///   cut       id, busy_ms, waited_ms: the time was up before the trial came to anything
///   finals    id, result or null, busy_ms, waited_ms
///   telemetry sensors, state, reason, canary_us, unix_ms: twice a second and more
///   gave_up   reason: the governor did, and the trial or finals asked for are not done
///   lost      reason: a fault took the device from this process, which ends
///   fault     reason: of machine or input; this process ends
///
/// Ends with its parent. Returns the process's exit code.
int run_measure_worker();

}  // namespace pascaline
