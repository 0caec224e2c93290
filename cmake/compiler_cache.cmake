# ccache, where there is one: compiling again what was compiled before, in any folder, takes no time. It has to be told
# that nothing depends on when a precompiled header was made.
if(PASCALINE_COMPILER_CACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PASCALINE_CCACHE ccache)
  if(PASCALINE_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${PASCALINE_CCACHE})
  endif()
endif()
