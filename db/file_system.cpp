#include "db/file_system.hpp"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>

namespace pascaline {
namespace {

namespace fs = std::filesystem;

struct KnownType {
  std::uint64_t type;
  std::string_view name;
};

// From linux/magic.h, and from the sources of those that are not in Linux itself (Lustre, GPFS, BeeGFS, PanFS, ...).
constexpr std::array<KnownType, 17> kNetworkTypes{{
    {0x6969, "NFS"},
    {0x517B, "SMB"},
    {0xFE534D42, "SMB"},
    {0xFF534D42, "CIFS"},
    {0x01021997, "9p"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x00C36400, "CephFS"},
    {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},
    {0x73757245, "Coda"},
    {0x564C, "NCP"},
    {0xAAD7AAEA, "PanFS"},
    {0x20030528, "OrangeFS"},
    {0x7461636F, "OCFS2"},
    {0x01161970, "GFS2"},
}};
constexpr std::uint64_t kFuse = 0x65735546;
constexpr std::array<std::string_view, 20> kNetworkFuse{
    "sshfs", "s3fs",     "gcsfuse", "glusterfs", "ceph",     "rclone", "goofys", "davfs", "curlftpfs", "juicefs",
    "mfs",   "lizardfs", "cvmfs",   "mount-s3",  "smbnetfs", "nfs",    "beegfs", "hdfs",  "blobfuse",  "seaweedfs"};

std::mutex pretended_mutex;
std::optional<FileSystem> pretended;

// Of the file system with that device number (https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html).
std::string mounted_as(dev_t device) {
  std::ifstream mounts("/proc/self/mountinfo");
  const std::string wanted = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string number;
    words >> id >> parent >> number;
    const auto separator = line.find(" - ");
    if (number == wanted && separator != std::string::npos) {
      std::istringstream rest(line.substr(separator + 3));
      std::string type;
      rest >> type;
      return type;
    }
  }
  return {};
}

}  // namespace

FileSystem file_system_of(const fs::path& file) {
  std::error_code error;
  fs::path place = fs::absolute(file, error);
  while (!fs::exists(place, error) && place.has_relative_path()) {
    place = place.parent_path();
  }
  struct statfs system {};
  struct stat status {};
  if (::statfs(place.c_str(), &system) != 0 || ::stat(place.c_str(), &status) != 0) {
    return {};
  }
  return {static_cast<std::uint64_t>(system.f_type) & 0xFFFFFFFF, mounted_as(status.st_dev)};
}

std::optional<std::string> network_name_of(const FileSystem& system) {
  if (system.type == kFuse) {
    const bool remote = std::any_of(kNetworkFuse.begin(), kNetworkFuse.end(), [&](std::string_view name) {
      return system.mounted_as.find(name) != std::string::npos;
    });
    return remote ? std::optional(system.mounted_as) : std::nullopt;
  }
  const auto* const found = std::find_if(kNetworkTypes.begin(), kNetworkTypes.end(),
                                         [&](const KnownType& known) { return known.type == system.type; });
  return found == kNetworkTypes.end() ? std::nullopt : std::optional<std::string>(found->name);
}

std::optional<std::string> network_file_system(const fs::path& file) {
  const std::lock_guard lock(pretended_mutex);
  return network_name_of(pretended ? *pretended : file_system_of(file));
}

void pretend_file_system(std::optional<FileSystem> system) {
  const std::lock_guard lock(pretended_mutex);
  pretended = std::move(system);
}

}  // namespace pascaline
