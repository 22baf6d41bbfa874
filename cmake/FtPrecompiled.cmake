# Precompiled headers: what most sources include and takes longest to read. They change nothing but the time of a build:
# every source still includes what it uses, which `make lint` checks without them (CMAKE_DISABLE_PRECOMPILE_HEADERS=ON).
# A target takes one only where all its options that matter to code are those of the header; _ft_configure decides.
set(FT_PRECOMPILED_PLAIN
  <algorithm> <cmath> <cstdint> <cstring> <functional> <map> <memory> <optional> <string> <string_view> <utility> <vector>
  [["absl/status/status.h"]] [["absl/status/statusor.h"]] [["absl/strings/str_cat.h"]] [["absl/types/span.h"]]
  [["fmt/format.h"]])
set(FT_PRECOMPILED_MLIR
  ${FT_PRECOMPILED_PLAIN}
  [["mlir/Dialect/Func/IR/FuncOps.h"]] [["mlir/IR/DialectImplementation.h"]] [["mlir/IR/PatternMatch.h"]]
  [["mlir/Parser/Parser.h"]] [["mlir/Pass/Pass.h"]] [["llvm/ADT/MapVector.h"]] [["llvm/ADT/StringMap.h"]]
  [["llvm/ADT/TypeSwitch.h"]] [["dialects/ft/dialect.h"]])

# ft_add_precompiled(NAME HEADERS header ... DEPS library ... [MLIR])
function(ft_add_precompiled name)
  cmake_parse_arguments(ARG "MLIR" "" "HEADERS;DEPS" ${ARGN})
  set(mlir "")
  if(ARG_MLIR)
    set(mlir MLIR)
  endif()
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled/empty.cc)
  _ft_configure(${name} ${mlir} NO_PRECOMPILED DEPS ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(FT_CCACHE)
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/precompiled/afresh;${FT_LAUNCHER}")
  endif()
endfunction()

# After all find_package.
function(ft_add_all_precompiled)
  set(libraries absl::status absl::statusor absl::strings absl::span fmt::fmt)
  ft_add_precompiled(ft_precompiled_plain HEADERS ${FT_PRECOMPILED_PLAIN} DEPS ${libraries})
  if(FT_TESTS)
    ft_add_precompiled(ft_precompiled_test HEADERS ${FT_PRECOMPILED_PLAIN} <gtest/gtest.h> DEPS ${libraries} GTest::gtest)
  endif()
  if(FT_COMPILER)
    ft_add_precompiled(ft_precompiled_mlir MLIR HEADERS ${FT_PRECOMPILED_MLIR} DEPS ${libraries})
    add_dependencies(ft_precompiled_mlir FtDialectIncGen)
  endif()
endfunction()
