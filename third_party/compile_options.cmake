# One interface target that every target of ours links: warnings, instruction set, sanitizers.
add_library(hpt_options INTERFACE)
target_include_directories(hpt_options INTERFACE ${CMAKE_SOURCE_DIR}/lib)
target_compile_options(hpt_options INTERFACE -Wall -Wextra -Werror)
# g++ 12 sees overflows that are not there in inlined buffers of fmt and std::string (GCC bugs 104475, 105651).
target_compile_options(hpt_options INTERFACE -Wno-stringop-overflow -Wno-restrict)
if(HPT_NATIVE)
  target_compile_options(hpt_options INTERFACE -march=native)
endif()
if(HPT_SANITIZE)
  # Under sanitizers g++ 12 also sees uninitialised reads inside <regex> that are not there (GCC bug 105562).
  target_compile_options(hpt_options INTERFACE -Wno-maybe-uninitialized)
  target_compile_options(hpt_options INTERFACE -fsanitize=${HPT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(hpt_options INTERFACE -fsanitize=${HPT_SANITIZE})
endif()

# Compiled once, used again: by path relative to the source folder, so that clones and build folders share.
find_program(HPT_CCACHE ccache)
if(HPT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HPT_CCACHE})
endif()
