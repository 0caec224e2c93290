# Most of compiling goes into parsing what nearly every source includes. With PASCALINE_PRECOMPILED_HEADERS it is parsed
# once for all targets that are compiled with the same flags. It hides includes that a source lacks: the dev preset
# compiles without.

# pascaline_precompiled_headers(NAME DEPENDS ... [HEADERS ...]): a target that only precompiles headers; NAME then wants
# the flags of those who use them.
function(pascaline_precompiled_headers name)
  cmake_parse_arguments(arg "" "" "DEPENDS;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// A target wants a source.\n")
  add_library(${name} OBJECT ${source})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory>
    <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
    <fmt/format.h> <nlohmann/json.hpp> ${arg_HEADERS})
  # What ccache needs to know a precompiled header again.
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# pascaline_use_precompiled_headers(TARGET NAME): TARGET is compiled with the headers of NAME, if there are any.
function(pascaline_use_precompiled_headers target name)
  if(PASCALINE_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${name})
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()
