# What `cmake --install` installs: each program with its manual and completions as a component of its name, `presets` (machine files
# to start from), `docs` and `licence`.
include(GNUInstallDirs)
set(FT_INSTALL_BASH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/bash-completion/completions CACHE STRING "Where completions of bash are installed")
set(FT_INSTALL_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where completions of zsh are installed")
# Libraries outside of the loader's folders (Debian's MLIR) are found where they were linked.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# All manuals and completions; written when everything is built.
add_custom_target(manuals)

# ft_install_program(NAME [MLIR] [EXCEPTIONS] DEPS ...): installs the program, and what manual.cc beside it writes: pages and
# completions made of its own table of options, which DEPS have.
function(ft_install_program name)
  set(writer ${name}_manual)
  add_executable(${writer} manual.cc ${FT_STATIC_SOURCES})
  _ft_configure(${writer} ${ARGN} ft_manual)
  set(folder ${PROJECT_BINARY_DIR}/manuals)
  set(pages ${folder}/man1/${name}.1 ${folder}/bash/${name} ${folder}/zsh/_${name})
  add_custom_command(OUTPUT ${pages} COMMAND ${writer} ${folder} DEPENDS ${writer} VERBATIM)
  add_custom_target(${name}_pages ALL DEPENDS ${pages})
  add_dependencies(manuals ${name}_pages)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name})
  install(FILES ${folder}/man1/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${name})
  install(FILES ${folder}/bash/${name} DESTINATION ${FT_INSTALL_BASH_COMPLETIONS} COMPONENT ${name})
  install(FILES ${folder}/zsh/_${name} DESTINATION ${FT_INSTALL_ZSH_COMPLETIONS} COMPONENT ${name})
endfunction()

install(DIRECTORY runtime/targets/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ft/targets COMPONENT presets FILES_MATCHING PATTERN "*.yaml")
install(FILES README.md CHANGELOG.md SECURITY.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT docs)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT docs)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)
