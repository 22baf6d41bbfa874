# FT_STATIC: programs as files that need nothing but the C library (and, for CUDA, the driver and NVIDIA's libraries, which
# are loaded when asked for). Libraries that distributions ship as archives too are linked from those; fmt, which Debian ships
# as headers and a shared library, is compiled in. Gloo exists as a shared library only: it is left out.
function(_ft_use_archive target)
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "SHARED_LIBRARY|UNKNOWN_LIBRARY")
    return()
  endif()
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  if(NOT configurations)
    set(configurations "")
  endif()
  foreach(suffix IN LISTS configurations ITEMS "")
    set(property IMPORTED_LOCATION)
    if(suffix)
      string(APPEND property _${suffix})
    endif()
    get_target_property(location ${target} ${property})
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${location}")
    if(NOT archive STREQUAL location AND EXISTS "${archive}")
      set_target_properties(${target} PROPERTIES ${property} "${archive}")
    endif()
  endforeach()
endfunction()

# In place of find_package(fmt). The definition keeps command lines, and so the compiler's cache, those of other builds.
macro(ft_compile_fmt_in)
  add_library(ft_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/static/fmt.cc)
  target_compile_definitions(ft_fmt PUBLIC FMT_SHARED)
  add_library(fmt::fmt ALIAS ft_fmt)
endmacro()

# Of every program.
set(FT_STATIC_SOURCES ${PROJECT_SOURCE_DIR}/cmake/static/newer_libc.cc)

# After all find_package.
macro(ft_link_statically)
  get_property(_ft_imported DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY IMPORTED_TARGETS)
  foreach(_ft_target IN LISTS _ft_imported)
    if(_ft_target MATCHES "^(absl::|protobuf::libprotobuf$|ZLIB::|deflate::|yaml-cpp$)")
      _ft_use_archive(${_ft_target})
    endif()
  endforeach()
  get_target_property(_ft_openmp OpenMP::OpenMP_CXX INTERFACE_LINK_LIBRARIES)
  string(REGEX REPLACE "libgomp\\.so" "libgomp.a" _ft_openmp "${_ft_openmp}")
  set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "${_ft_openmp}")
  set(FT_OPENBLAS -l:libopenblas.a)
  add_link_options(-static-libgcc -static-libstdc++)
  if(FT_COMPILER)
    _ft_use_archives_of_llvm()
  endif()
endmacro()

# Of all archives of LLVM and MLIR a linker takes what is asked for: the dialects and passes that are used, code for x86-64 and NVPTX.
# Debian's use zlib and zstd.
macro(_ft_use_archives_of_llvm)
  file(GLOB _ft_archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  list(FILTER _ft_archives EXCLUDE REGEX "/libMLIRCAPI")
  set(FT_MLIR_LIBRARIES -Wl,--start-group ${_ft_archives} -Wl,--end-group -l:libzstd.a -l:libz.a ${CMAKE_DL_LIBS})
endmacro()
