# triton_dist/_build_info.py: what this build is made of. It is written at build time, since the hash
# of the sources changes without a new configure step.

file(GLOB_RECURSE tdist_hashed_sources CONFIGURE_DEPENDS
     "${CMAKE_CURRENT_SOURCE_DIR}/cmake/*.cmake"
     "${CMAKE_CURRENT_SOURCE_DIR}/include/*"
     "${CMAKE_CURRENT_SOURCE_DIR}/lib/*"
     "${CMAKE_CURRENT_SOURCE_DIR}/runtime/*"
     "${CMAKE_CURRENT_SOURCE_DIR}/tools/*"
     "${CMAKE_CURRENT_SOURCE_DIR}/torch/*")
list(PREPEND tdist_hashed_sources "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt")

# LLVM_PACKAGE_VERSION is known only after MLIR has been found, so the call waits until the end.
function(tdist_write_build_info)
  set(sources_file "${CMAKE_CURRENT_BINARY_DIR}/build_info_sources.txt")
  list(JOIN tdist_hashed_sources "\n" sources)
  file(CONFIGURE OUTPUT "${sources_file}" CONTENT "${sources}\n" @ONLY)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/_build_info.py")
  set(writer "${CMAKE_CURRENT_SOURCE_DIR}/cmake/WriteBuildInfo.cmake")
  set(template "${CMAKE_CURRENT_SOURCE_DIR}/cmake/_build_info.py.in")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND
      "${CMAKE_COMMAND}" "-DSOURCES_FILE=${sources_file}" "-DROOT=${CMAKE_CURRENT_SOURCE_DIR}"
      "-DTEMPLATE=${template}" "-DOUTPUT=${output}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
      "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      "-DLLVM_PREFIX=${TDIST_LLVM_PREFIX}" "-DLLVM_VERSION=${LLVM_PACKAGE_VERSION}" -P "${writer}"
    DEPENDS ${tdist_hashed_sources} "${sources_file}" "${writer}" "${template}"
    COMMENT "Writing _build_info.py"
    VERBATIM)
  add_custom_target(tdist_build_info ALL DEPENDS "${output}")
  install(FILES "${output}" DESTINATION triton_dist)
endfunction()
cmake_language(DEFER CALL tdist_write_build_info)
