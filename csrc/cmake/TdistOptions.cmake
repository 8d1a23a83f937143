# What holds for every target of this project: language level, warnings, sanitizers, link pool.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_MESSAGE LAZY)
# Targets are built and installed into the same relative places, so one run path serves both.
set(CMAKE_BUILD_WITH_INSTALL_RPATH OFF)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Build types of upstream Triton, under its names.
set(CMAKE_C_FLAGS_TRITONRELBUILDWITHASSERTS "-O2 -g")
set(CMAKE_CXX_FLAGS_TRITONRELBUILDWITHASSERTS "-O2 -g")
set(CMAKE_C_FLAGS_TRITONBUILDWITHO1 "-O1")
set(CMAKE_CXX_FLAGS_TRITONBUILDWITHO1 "-O1")

# Only for our own targets: link it with target_link_libraries(... PRIVATE tdist_options).
add_library(tdist_options INTERFACE)
target_compile_options(tdist_options INTERFACE -Wall -Wextra)

if(TDIST_SANITIZE)
  add_compile_options(-fsanitize=${TDIST_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TDIST_SANITIZE})
endif()

if(TDIST_USE_LLD)
  add_link_options(-fuse-ld=lld)
endif()
if(TDIST_PARALLEL_LINK_JOBS)
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS tdist_link=${TDIST_PARALLEL_LINK_JOBS})
  set(CMAKE_JOB_POOL_LINK tdist_link)
endif()
