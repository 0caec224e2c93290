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
endfunction()

# Warnings and sanitizers for a target of this project.
function(pascaline_compile_options target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  if(PASCALINE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(PASCALINE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

# Compiling a test takes far longer than running it: it is not optimised, most of the time goes into headers and
# templates that its sources share, and checks for undefined behaviour, which would double it, are left to what is tested.
function(pascaline_test_options target)
  pascaline_compile_options(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  if(PASCALINE_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PASCALINE_UNITY_TESTS} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# pascaline_test_library(NAME SOURCES ... DEPENDS ...): what several tests share.
function(pascaline_test_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} GTest::gtest)
  pascaline_test_options(${name})
endfunction()

# pascaline_test(NAME SOURCES ... DEPENDS ... [LABELS ...] [RUNS_KERNELS]): one GoogleTest executable, a ctest entry a
# case. RUNS_KERNELS: it loads kernels compiled for the host; LeakSanitizer's tracer can crash at exit in such a process,
# so leaks are not looked for there.
function(pascaline_test name)
  cmake_parse_arguments(arg "RUNS_KERNELS" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest_main)
  pascaline_test_options(${name})
  set(properties TIMEOUT 600)
  if(arg_LABELS)
    list(APPEND properties LABELS "${arg_LABELS}")
  endif()
  if(arg_RUNS_KERNELS)
    list(APPEND properties ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# pascaline_bench(NAME SOURCES ... DEPENDS ...): one Google Benchmark executable; run by hand, not by ctest.
function(pascaline_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} benchmark::benchmark_main)
  pascaline_compile_options(${name})
endfunction()
