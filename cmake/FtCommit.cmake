# ft_add_commit_source(OUT): sets OUT to a source that defines ft::kCommit, which the build writes anew when HEAD has moved: it alone is
# compiled again after a commit, and the programs are linked. -DFT_COMMIT=... says the commit of sources that are no clone.
# As a script (cmake -DSOURCE=... -DOUTPUT=... -DCOMMIT=... -P) it writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(_commit "${COMMIT}")
  if(NOT _commit)
    execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE _commit RESULT_VARIABLE _failed
                    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(_failed)
      set(_commit unknown)
    endif()
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
       "namespace ft {\nextern const char kCommit[];\nconst char kCommit[] = \"@_commit@\";\n}  // namespace ft\n" @ONLY)
  return()
endif()

set(FT_COMMIT "" CACHE STRING "The commit that --version says; empty: that of the clone")
set(FT_COMMIT_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(ft_add_commit_source out)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/commit.cc)
  # Every commit, checkout and reset adds a line to it.
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --path-format=absolute --git-path logs/HEAD
                  OUTPUT_VARIABLE log ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT log OR NOT EXISTS "${log}")
    set(log "")
  endif()
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${source} -DCOMMIT=${FT_COMMIT} -P ${FT_COMMIT_SCRIPT}
    DEPENDS ${FT_COMMIT_SCRIPT} ${log}
    VERBATIM)
  set(${out} ${source} PARENT_SCOPE)
endfunction()
