// What this process holds of the machine's memory, as the kernel counts it.
#pragma once

#include <cstddef>
#include <string>

namespace hpt {

// Bytes that are resident now, and the most that were at one time; 0 where the system does not tell.
std::size_t resident_bytes();
std::size_t peak_resident_bytes();

// How much more the process could take, for a message: what its own limit leaves, or what the host has free.
std::string memory_left();

// A library's large buffers go back to the system as soon as they are freed. Otherwise the C library raises,
// with each, the size from which it does so, and keeps up to twice the largest. For the whole process; it
// costs page faults, 1 to 4 % of a step of products that two threads share.
void give_back_large_blocks();

}  // namespace hpt
