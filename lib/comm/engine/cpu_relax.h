// What a loop that looks for news does between two looks: lets the core's other thread run, and saves power.
#pragma once

namespace hpt {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hpt
