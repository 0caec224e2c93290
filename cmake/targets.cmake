# pascaline_library(NAME SOURCES ... DEPENDS ...): one static library a folder, exported as Pascaline::NAME.
function(pascaline_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(pascaline_${name} STATIC ${arg_SOURCES})
  add_library(Pascaline::${name} ALIAS pascaline_${name})
  set_target_properties(pascaline_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(pascaline_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pascaline>)
  target_compile_features(pascaline_${name} PUBLIC cxx_std_20)
  target_link_libraries(pascaline_${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
  pascaline_compile_options(pascaline_${name})
  install(TARGETS pascaline_${name} EXPORT PascalineTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY PASCALINE_INSTALLED_TARGETS pascaline_${name})
endfunction()

# Warnings and sanitizers for a target of this project.
function(pascaline_flags target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  if(PASCALINE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(PASCALINE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # A fifth of the time that compiling takes goes into these. The fuzzers have them nevertheless.
    if(PASCALINE_LEAN)
      target_compile_options(${target} PRIVATE -fno-sanitize=alignment,null,vptr)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
    # At a fixed address millions of entries in the sanitizers' tables need not be relocated at each start.
    target_link_options(${target} PUBLIC $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endfunction()

# Compiling a test takes far longer than running it: it is not optimised, most of the time goes into headers and
# templates that its sources share, and checks for undefined behaviour, which would double it, are left to what is tested.
function(pascaline_test_flags target)
  pascaline_flags(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  if(PASCALINE_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
endfunction()

# See pascaline_seldom_run.
set(seldom_run_level $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
if(PASCALINE_LEAN)
  set(seldom_run_level $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
endif()

if(PASCALINE_PRECOMPILED_HEADERS)
  pascaline_precompiled_headers(pascaline_headers DEPENDS fmt::fmt nlohmann_json::nlohmann_json)
  pascaline_flags(pascaline_headers)
  # GCC 13 and later refuse headers that were precompiled at -O2 or above where the level is -O1; all do at -O0.
  if(PASCALINE_LEAN OR (CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
    pascaline_precompiled_headers(pascaline_seldom_run_headers DEPENDS fmt::fmt nlohmann_json::nlohmann_json)
    pascaline_flags(pascaline_seldom_run_headers)
    target_compile_options(pascaline_seldom_run_headers PRIVATE ${seldom_run_level})
  endif()
  if(PASCALINE_BUILD_TESTS)
    pascaline_precompiled_headers(pascaline_test_headers
      DEPENDS fmt::fmt nlohmann_json::nlohmann_json GTest::gtest HEADERS <gtest/gtest.h>)
    pascaline_test_flags(pascaline_test_headers)
  endif()
endif()

# How a library or program of this project is compiled. It links fmt, if only by Pascaline::core.
function(pascaline_compile_options target)
  pascaline_flags(${target})
  pascaline_use_precompiled_headers(${target} pascaline_headers)
endfunction()

# How a test is compiled.
function(pascaline_test_options target)
  pascaline_test_flags(${target})
  pascaline_use_precompiled_headers(${target} pascaline_test_headers)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PASCALINE_UNITY_TESTS} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# pascaline_seldom_run(TARGET...): code whose time nobody waits for, as most of it goes into the database, the disk or
# processes that it starts. Release and RelWithDebInfo compile it with -O1, which takes a third less time; PASCALINE_LEAN
# with -O0.
function(pascaline_seldom_run)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${seldom_run_level})
    if(TARGET pascaline_seldom_run_headers)
      set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM pascaline_seldom_run_headers)
    endif()
  endforeach()
endfunction()

# pascaline_optimise(LEVEL SOURCE...): sources of the present folder that want another -O than the rest.
function(pascaline_optimise level)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS ${level} SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# What has to be built for `ctest -LE "slow|unsanitized"` under the sanitizers, and for the rest without.
if(PASCALINE_BUILD_TESTS)
  add_custom_target(sanitized_tests)
  add_custom_target(unsanitized_tests)
endif()

# pascaline_test_library(NAME SOURCES ... DEPENDS ...): what several tests share.
function(pascaline_test_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} GTest::gtest)
  pascaline_test_options(${name})
endfunction()

# pascaline_test(NAME SOURCES ... DEPENDS ... [LABELS ...] [FOREIGN] [RUNS_KERNELS] [CHECKS_KERNELS] [TOGETHER [ALONE ...]] [UNSANITIZED ...]):
# one GoogleTest executable.
# - Each case is a process and a ctest entry of its own, unless TOGETHER: then one entry, NAME, runs them all, as a case
#   of a millisecond does not earn a process, least of all a sanitized one. ALONE names those that nevertheless want their
#   own, as patterns of --gtest_filter: they start processes, change what belongs to the whole process, or take long.
# - UNSANITIZED names cases, in the same way, that are left to presets without sanitizers: minutes there, or impossible.
#   They get the label `unsanitized`, and entries of their own.
# - LABELS slow: the whole program is left to them. LABELS optimised: it is run both ways, as what it tests depends on
#   what the optimiser does. LABELS gpu: it skips without a GPU.
# - FOREIGN: what it tests reads data that others wrote, or hands out memory. With PASCALINE_LEAN all others are as if
#   labelled slow.
# - RUNS_KERNELS: it loads kernels compiled for the host; LeakSanitizer's tracer can crash at exit in such a process, so
#   leaks are not looked for there.
# - CHECKS_KERNELS: it loads kernels compiled with AddressSanitizer, which in a sanitized program have to be of the program's
#   own compiler.
function(pascaline_test name)
  cmake_parse_arguments(arg "FOREIGN;RUNS_KERNELS;CHECKS_KERNELS;TOGETHER" "" "SOURCES;DEPENDS;LABELS;ALONE;UNSANITIZED" ${ARGN})
  if(PASCALINE_LEAN AND NOT arg_FOREIGN)
    list(APPEND arg_LABELS slow)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest_main)
  pascaline_test_options(${name})
  set(properties TIMEOUT 1500)
  if(arg_RUNS_KERNELS)
    list(APPEND properties ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
  if(arg_CHECKS_KERNELS AND PASCALINE_SANITIZE)
    list(APPEND properties ENVIRONMENT_MODIFICATION PASCALINE_HOST_CXX=set:${CMAKE_CXX_COMPILER})
  endif()
  pascaline_test_entries(${name} "${arg_UNSANITIZED}" ${properties} LABELS unsanitized)
  if(arg_LABELS)
    list(APPEND properties LABELS "${arg_LABELS}")
  endif()
  set(apart ${arg_ALONE} ${arg_UNSANITIZED})
  list(JOIN apart ":" apart)
  if(arg_TOGETHER)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 "--gtest_filter=-${apart}")
    set_tests_properties(${name} PROPERTIES ${properties})
    # What no pattern of UNSANITIZED matches, of what a pattern of ALONE does.
    if(arg_ALONE)
      list(JOIN arg_ALONE ":" alone)
      list(JOIN arg_UNSANITIZED ":" unsanitized)
      pascaline_test_entries(${name} "${alone}-${unsanitized}" ${properties})
    endif()
  else()
    pascaline_test_entries(${name} "*-${apart}" ${properties})
  endif()
  if(NOT slow IN_LIST arg_LABELS)
    add_dependencies(sanitized_tests ${name})
  endif()
  if(arg_LABELS MATCHES "slow|optimised" OR arg_UNSANITIZED)
    add_dependencies(unsanitized_tests ${name})
  endif()
endfunction()

# pascaline_test_entries(NAME PATTERNS PROPERTY...): a ctest entry for each case of the executable that matches one of the
# patterns, if there are any.
function(pascaline_test_entries name patterns)
  if(patterns)
    list(JOIN patterns ":" filter)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER "${filter}" PROPERTIES ${ARGN})
  endif()
endfunction()

# pascaline_bench(NAME SOURCES ... DEPENDS ...): one Google Benchmark executable; run by hand, not by ctest.
function(pascaline_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} benchmark::benchmark_main)
  pascaline_compile_options(${name})
endfunction()
