# cmake -D build=... -D consumer=... -D example=... -D work=... -D generator=... -D compiler=... -D toolkit=...
#   -D sanitize=... -P run.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(flags)
if(sanitize)
  set(flags -fsanitize=address,undefined)
endif()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
foreach(program consumer example)
  run(${CMAKE_COMMAND} -S ${${program}} -B ${work}/${program} -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_FLAGS=${flags}
    -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  run(${CMAKE_COMMAND} --build ${work}/${program})
endforeach()

# The consumer must find the installed data, not this source tree's.
set(ENV{PASCALINE_DATA_DIR} ${work}/prefix/share/pascaline)
run(${work}/consumer/consumer WORKING_DIRECTORY ${work})
execute_process(COMMAND ${work}/example/tuned_matmul OUTPUT_VARIABLE product COMMAND_ERROR_IS_FATAL ANY)
if(NOT product MATCHES "^64\n")
  message(FATAL_ERROR "the example computed: ${product}")
endif()
if(EXISTS ${build}/bin/pascaline)
  unset(ENV{PASCALINE_DATA_DIR})
  run(${work}/prefix/bin/pascaline --help)
  run(${work}/prefix/bin/pascaline kernels)
endif()

# Each NVRTC that set-up brought with CUDA's headers must have them after the installation, too.
file(GLOB versions RELATIVE ${toolkit} ${toolkit}/1*)
foreach(version ${versions})
  file(GLOB_RECURSE brought ${toolkit}/${version}/cuda_fp16.h)
  if(brought AND EXISTS ${build}/bin/pascaline)
    set(ENV{CUDA_HOME} ${work})
    file(WRITE ${work}/kernels/halves.cu
      "#include <cuda_fp16.h>\nextern \"C\" __global__ void halves(__half* x) { *x = __float2half(1.0f); }\n")
    file(WRITE ${work}/spaces/halves.json [[{"schema": 1, "kernel": "halves", "description": "writes one half",
      "dimensions": [{"name": "N"}], "types": [], "parameters": [{"name": "BLOCK", "values": [32], "default": 32}],
      "launch": {"function": "halves", "block": ["BLOCK"], "grid": [1]},
      "arguments": [{"name": "x", "buffer": "float16", "access": "out", "extent": "N"}],
      "reference": {"default": true}, "tolerance": {"float16": 0}, "work": {"flops": "N", "bytes": "N"}}]])
    run(${work}/prefix/bin/pascaline compile --kernel halves --kernels ${work}/kernels --spaces ${work}/spaces --nvrtc ${version}
      --cache ${work}/cache)
  endif()
endforeach()
