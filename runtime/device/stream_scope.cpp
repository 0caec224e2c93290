#include "runtime/device/stream_scope.hpp"

#include "runtime/device/device.hpp"

namespace pascaline {

StreamScope::StreamScope(Device& device) : device_(device) { device_.enter(nullptr); }

StreamScope::StreamScope(Device& device, ForeignStream stream) : device_(device) { device_.enter(&stream); }

StreamScope::~StreamScope() { device_.leave(); }

bool StreamScope::captured() const noexcept { return device_.captured(); }

void StreamScope::wait_for(ForeignStream other) { device_.wait_for(other); }

void StreamScope::begin_shared() { device_.begin_shared(); }

void StreamScope::end_shared() { device_.end_shared(); }

}  // namespace pascaline
