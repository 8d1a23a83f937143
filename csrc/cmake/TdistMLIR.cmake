# Finds LLVM and MLIR: LLVM_SYSPATH when given, else the distribution's prefix. Nothing is fetched.

# LLVM's tablegen() names its output relative to the build's root, as CMake expected until 3.20; with
# the new policy the generated headers would be out of date in every build.
cmake_policy(SET CMP0116 OLD)

file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/../docker/versions.toml" tdist_llvm_pin REGEX "^llvm = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+" TDIST_LLVM_VERSION "${tdist_llvm_pin}")
string(REGEX MATCH "^[0-9]+" tdist_llvm_major "${TDIST_LLVM_VERSION}")

if(LLVM_SYSPATH)
  set(TDIST_LLVM_PREFIX "${LLVM_SYSPATH}")
else()
  set(TDIST_LLVM_PREFIX "/usr/lib/llvm-${tdist_llvm_major}")
endif()
if(NOT EXISTS "${TDIST_LLVM_PREFIX}/lib/cmake/mlir/MLIRConfig.cmake")
  message(FATAL_ERROR "no MLIR at ${TDIST_LLVM_PREFIX} (lib/cmake/mlir/MLIRConfig.cmake is missing): "
                      "set LLVM_SYSPATH to a prefix of LLVM and MLIR ${TDIST_LLVM_VERSION}, or run ci/bootstrap")
endif()
find_package(MLIR REQUIRED CONFIG NO_DEFAULT_PATH PATHS "${TDIST_LLVM_PREFIX}/lib/cmake/mlir")
if(NOT LLVM_PACKAGE_VERSION VERSION_GREATER_EQUAL TDIST_LLVM_VERSION
   OR NOT LLVM_PACKAGE_VERSION MATCHES "^${TDIST_LLVM_VERSION}")
  message(FATAL_ERROR "LLVM at ${TDIST_LLVM_PREFIX} is ${LLVM_PACKAGE_VERSION}, and ${TDIST_LLVM_VERSION} is needed")
endif()

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(tdist_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${tdist_llvm_definitions})
include_directories("${CMAKE_CURRENT_SOURCE_DIR}/include" "${CMAKE_CURRENT_BINARY_DIR}/include")
