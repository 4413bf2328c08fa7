#include "config/config_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "config/text.h"
#include "core/error.h"

namespace hpt {
namespace {

// Closes a file descriptor whichever way its function is left.
struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

std::string canonical(const std::string& path) {
  std::error_code ignored;  // a file that is not there is told when it is read
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, ignored);
  return ignored ? path : whole.string();
}

// The one `defaults` entry of a file; nullptr if there is none.
const YamlEntry* find_defaults(const ConfigSource& source) {
  const YamlEntry* found = nullptr;
  for (const YamlEntry& entry : source.root.entries) {
    if (entry.key.text != "defaults") continue;
    const std::string place = source.origin.place(entry.key.line, entry.key.column);
    if (found != nullptr)
      fail(ErrorKind::usage, "{}: defaults: given twice (first in line {})", place, found->key.line);
    const YamlNode& value = entry.value;
    if (value.kind != YamlNode::Kind::scalar || value.text.empty() || has_control_character(value.text)) {
      fail(ErrorKind::usage, "{}: defaults: must be the path of one other config file", place);
    }
    found = &entry;
  }
  return found;
}

ConfigSource source_of(const std::string& text, const std::string& name) {
  const YamlOrigin origin{name, true};
  YamlNode root = parse_yaml(text, origin);
  if (root.kind != YamlNode::Kind::map && root.kind != YamlNode::Kind::none) {
    fail(ErrorKind::usage, "{}: found {}, but a config is a map of sections",
         origin.place(root.line, root.column), root.kind == YamlNode::Kind::list ? "a list" : "text");
  }
  return {origin, std::move(root)};
}

std::string place_of(const ConfigSource& source, const YamlEntry& defaults) {
  return source.origin.place(defaults.value.line, defaults.value.column) + ": defaults";
}

}  // namespace

std::string read_config_text(const std::string& path, const std::string& place) {
  const auto refuse = [&](const std::string& fault) {
    fail(ErrorKind::usage, "{}: the config {} {}", place, shown(path), fault);
  };
  // Without O_NONBLOCK, a pipe that nobody writes to would block here.
  const OpenFile file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (file.descriptor < 0) {
    refuse(
        format("can't be opened: {} (relative paths are from the working directory)", std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(file.descriptor, &status) != 0) refuse(format("can't be read: {}", std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) refuse("is a folder, but must be a file");
  if (!S_ISREG(status.st_mode)) refuse("is a pipe, a device or a socket, but must be a regular file");
  std::string text;
  const std::size_t most = kMaxConfigBytes + 1;  // the file may be growing, or lie about its size
  text.resize(most);
  std::size_t length = 0;
  while (length < most) {
    const ssize_t count = ::read(file.descriptor, text.data() + length, most - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(format("can't be read: {}", std::strerror(errno)));
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length == most) {
    refuse(format("is larger than {} bytes, the most that a config may have", kMaxConfigBytes));
  }
  text.resize(length);
  return text;
}

std::vector<ConfigSource> read_sources(const std::string& text, const std::string& name) {
  std::vector<ConfigSource> sources;
  std::vector<std::string> seen = {canonical(name)};
  sources.push_back(source_of(text, name));
  while (const YamlEntry* defaults = find_defaults(sources.back())) {
    const std::string path = defaults->value.text;
    const std::string place = place_of(sources.back(), *defaults);
    if (std::find(seen.begin(), seen.end(), canonical(path)) != seen.end()) {
      fail(ErrorKind::usage, "{}: {} takes its defaults from itself", place, shown(path));
    }
    if (seen.size() > kMaxDefaultsDepth) {
      fail(ErrorKind::usage, "{}: more than {} files deep", place, kMaxDefaultsDepth);
    }
    seen.push_back(canonical(path));
    sources.push_back(source_of(read_config_text(path, place), path));
  }
  std::reverse(sources.begin(), sources.end());
  return sources;
}

ConfigSource read_lone_source(const std::string& text, const std::string& name) {
  ConfigSource source = source_of(text, name);
  if (const YamlEntry* defaults = find_defaults(source))
    fail(ErrorKind::usage, "{}: a config that was saved holds every key itself", place_of(source, *defaults));
  return source;
}

}  // namespace hpt
