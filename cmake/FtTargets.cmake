# Helpers that every folder of this project uses to declare its targets.
#
#   ft_add_library(NAME SOURCES a.cc ... [DEPS t ...] [PRIVATE_DEPS t ...] [MLIR] [EXCEPTIONS] [NO_PRECOMPILED])
#   ft_add_tool(NAME SOURCES ... DEPS ... [MLIR] [EXCEPTIONS])      a program in build/bin
#   ft_add_test(NAME SOURCES x_test.cc DEPS ... [MLIR] [LABELS ...]) a GoogleTest program, known to ctest
#
# MLIR marks targets that include LLVM headers: these are compiled without exceptions, as LLVM itself is, unless
# EXCEPTIONS says otherwise. NO_PRECOMPILED is for targets with options of their own that change code: a precompiled header
# is read with the options that it was written with. Includes are always relative to the root of the project.

set(FT_WARNINGS -Wall -Wextra -Wno-unused-parameter)

# The precompiled header that fits, if one does.
function(_ft_precompiled target)
  cmake_parse_arguments(ARG "MLIR;EXCEPTIONS;NO_PRECOMPILED;TEST" "" "" ${ARGN})
  if(ARG_NO_PRECOMPILED OR (ARG_MLIR AND ARG_EXCEPTIONS))
    return()
  endif()
  if(ARG_MLIR)
    set(kind mlir)
  elseif(ARG_TEST)
    set(kind test)
  else()
    set(kind plain)
  endif()
  target_precompile_headers(${target} REUSE_FROM ft_precompiled_${kind})
endfunction()

function(_ft_configure target)
  cmake_parse_arguments(ARG "MLIR;EXCEPTIONS;NO_PRECOMPILED;TEST" "" "SOURCES;DEPS;PRIVATE_DEPS;LABELS" ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_compile_options(${target} PRIVATE ${FT_WARNINGS})
  # Of all targets, that precompiled headers fit: how fmt is linked.
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  if(ARG_MLIR)
    target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(${target} PUBLIC ${LLVM_DEFINITIONS_LIST})
    target_link_libraries(${target} PUBLIC MLIR LLVM)
    if(NOT ARG_EXCEPTIONS)
      target_compile_options(${target} PRIVATE -fno-exceptions)
    endif()
  endif()
  target_link_libraries(${target} PUBLIC ${ARG_DEPS})
  if(ARG_PRIVATE_DEPS)
    target_link_libraries(${target} PRIVATE ${ARG_PRIVATE_DEPS})
  endif()
  _ft_precompiled(${target} ${ARGN})
endfunction()

function(ft_add_library name)
  cmake_parse_arguments(ARG "MLIR;EXCEPTIONS;NO_PRECOMPILED;TEST" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  _ft_configure(${name} ${ARGN})
endfunction()

function(ft_add_tool name)
  cmake_parse_arguments(ARG "MLIR;EXCEPTIONS;NO_PRECOMPILED;TEST" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${FT_STATIC_SOURCES})
  _ft_configure(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

function(ft_add_test name)
  if(NOT FT_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "MLIR;EXCEPTIONS;NO_PRECOMPILED;TEST" "" "SOURCES;DEPS;PRIVATE_DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${FT_STATIC_SOURCES})
  _ft_configure(${name} ${ARGN} TEST)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME ${name} COMMAND ${name})
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()
