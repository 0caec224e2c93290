#pragma once

namespace pascaline {

/// Waits for all that others of this process gave the default stream of the device whose context is current in the
/// calling thread, and what that waits for. Throws CudaError if any of it failed.
void synchronize_default_stream();

}  // namespace pascaline
