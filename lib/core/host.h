// Names of this machine and process, for messages.
#pragma once

#include <string>

namespace hpt {

std::string host_name();  // at most 255 characters

}  // namespace hpt
