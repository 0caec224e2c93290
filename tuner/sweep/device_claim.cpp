#include "tuner/sweep/device_claim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline {

DeviceClaim::DeviceClaim(const std::filesystem::path& folder, const std::string& uuid, const std::string& database) {
  std::error_code unseen;
  std::filesystem::create_directories(folder, unseen);
  const std::string file = (folder / ("device-" + hash_hex(uuid).substr(0, 16) + ".lock")).string();
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) {
    return;
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 4096> text{};
    const ssize_t count = ::pread(descriptor_, text.data(), text.size(), 0);
    other_ = count > 0 ? clean_line(std::string_view(text.data(), static_cast<std::size_t>(count)))
                       : std::string("another process");
    return;
  }
  const std::string text = fmt::format("process {}, into {}", ::getpid(), database);
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    other_.clear();  // the lock alone says that somebody has it
  }
}

DeviceClaim::DeviceClaim(DeviceClaim&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), other_(std::move(other.other_)) {}

DeviceClaim::~DeviceClaim() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

std::filesystem::path DeviceClaim::usual_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && *runtime == '/' ? std::filesystem::path(runtime) / "pascaline" : cache_folder();
}

}  // namespace pascaline
