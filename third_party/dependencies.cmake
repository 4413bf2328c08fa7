# Finds every library that hpt-train stands on; all come from Debian's packages (or the CUDA toolkit).
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)

# MPI's C++ bindings are not ours; every use goes through the C interface.
target_compile_definitions(MPI::MPI_CXX INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)

# oneDNN's own config file asks for OpenCL, which only its GPU half needs.
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(dnnl INTERFACE)
target_link_libraries(dnnl INTERFACE ${DNNL_LIBRARY})
target_include_directories(dnnl SYSTEM INTERFACE ${DNNL_INCLUDE})

# The serial OpenBLAS is linked by its own folder: each rank, thread or process, calls it on its own.
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-serial REQUIRED)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-serial x86_64-linux-gnu/openblas-serial REQUIRED)
add_library(openblas INTERFACE)
target_link_libraries(openblas INTERFACE ${OPENBLAS_LIBRARY})
target_include_directories(openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
get_filename_component(OPENBLAS_FOLDER ${OPENBLAS_LIBRARY} DIRECTORY)
list(APPEND CMAKE_BUILD_RPATH ${OPENBLAS_FOLDER})
list(APPEND CMAKE_INSTALL_RPATH ${OPENBLAS_FOLDER})

find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(xxhash INTERFACE)
target_link_libraries(xxhash INTERFACE ${XXHASH_LIBRARY})
target_include_directories(xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})

if(HPT_TESTS)
  find_package(Catch2 2.13 REQUIRED)
endif()
