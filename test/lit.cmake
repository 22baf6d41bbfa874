# ft_add_lit_test(NAME): all *.mlir files of the current folder as one ctest, by lit and FileCheck of llvm-22-tools and
# Debian's python3. The programs that the files run are found in build/bin.
find_program(FT_PYTHON3 NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

function(ft_add_lit_test name)
  add_test(NAME ${name}
           COMMAND ${FT_PYTHON3} ${LLVM_TOOLS_BINARY_DIR}/lit -v --order=lexical
                   --param programs=${PROJECT_BINARY_DIR}/bin --param llvm=${LLVM_TOOLS_BINARY_DIR}
                   --param scratch=${CMAKE_CURRENT_BINARY_DIR} --config-prefix=lit ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS lit)
endfunction()
