// Counts the calls of operator new; a test program with counting_new.cpp among its sources has its own.
#pragma once

#include <cstdint>

// Since the program's start, by all threads.
std::int64_t num_allocations();
