#!/usr/bin/env bash
# Builds llama.cpp for Pascal and packs what another machine needs to run it.
#   bench/compare_llama/build.sh WORK PACK [--jobs N] [--architectures LIST] [--toolkit FOLDER] [--compiler GXX]
# WORK gets sources, toolkit and objects (6 GB) and is used again by a later run; PACK gets llama-bench, llama-quantize,
# llama-mtmd-cli, the Python package gguf and BUILD.txt, which says how they were built; PACK.tar.xz
# holds the same in some 15 MB. llama.cpp is the one in the source package of
# llama-cpp-python that llama-cpp-requirements.txt pins.
# --architectures: as CMAKE_CUDA_ARCHITECTURES (default 61-virtual: code that every later card compiles for itself).
# --toolkit: CUDA 11 or 12 (default: CUDA 11.8 of Debian 12's packages, by the sources that apt has here, unpacked in WORK;
# nothing is installed; on other systems give this and --compiler).
# --compiler: a host compiler that the toolkit takes (default: GCC 11 of the same packages).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
mkdir -p "$1" "$2"
work=$(realpath -- "$1") pack=$(realpath -- "$2")
shift 2
jobs=$(nproc) architectures=61-virtual toolkit="" compiler=""
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=$2 ;;
    --architectures) architectures=$2 ;;
    --toolkit) toolkit=$(realpath -e -- "$2") ;;
    --compiler) compiler=$2 ;;
    *) die "unknown argument '$1'" ;;
  esac
  shift 2
done

# llama.cpp's source in $work/llama.cpp.
fetch_source() {
  [ -f "$work/llama.cpp/CMakeLists.txt" ] && return
  say "llama.cpp's source"
  python3 -m pip download --disable-pip-version-check --no-deps --no-binary llama-cpp-python --require-hashes \
    -d "$work/package" -r "$here/llama-cpp-requirements.txt"
  mkdir -p "$work/unpacked"
  tar -C "$work/unpacked" -xzf "$work"/package/llama_cpp_python-*.tar.gz
  mv "$work"/unpacked/*/vendor/llama.cpp "$work/llama.cpp"
}

# Debian 12's packages of CUDA 11.8 and GCC 11, unpacked in $work/debian; /etc/apt stays as it is.
unpack_debian_toolkit() {
  [ -x "$work/cuda/bin/nvcc" ] && return
  say "CUDA 11.8 and GCC 11"
  mkdir -p "$work/debs" "$work/debian"
  apt_elsewhere "$work/apt" "contrib non-free"
  (cd "$work/debs" && "${apt[@]}" download nvidia-cuda-toolkit nvidia-cuda-dev libnvvm4 libcu++-dev libcub-dev \
    libthrust-dev gcc-11 g++-11 cpp-11 gcc-11-base libgcc-11-dev libstdc++-11-dev)
  local package
  for package in "$work"/debs/*.deb; do dpkg -x "$package" "$work/debian"; done
  rm -rf "$work/debs"
  arrange_toolkit "$work/debian/usr" "$work/cuda.new"
  mv "$work/cuda.new" "$work/cuda"
}

# arrange_toolkit USR CUDA: Debian's files in the places where NVIDIA's own installer has them, so that nvcc finds its
# parts beside itself. Links, but for nvcc, which looks where its real file is.
arrange_toolkit() {
  local usr=$1 cuda=$2 private=$1/lib/nvidia-cuda-toolkit
  rm -rf "$cuda"
  mkdir -p "$cuda"/{bin,nvvm/bin,lib64/stubs}
  cp "$private/bin/nvcc" "$cuda/bin/"
  ln -s "$private/bin/crt" "$cuda/bin/crt"
  ln -s "$usr"/bin/{bin2c,cudafe++,fatbinary,nvlink,ptxas,cuobjdump} "$cuda/bin/"
  ln -s "$private/bin/cicc" "$cuda/nvvm/bin/cicc"
  ln -s "$private/libdevice" "$cuda/nvvm/libdevice"
  ln -s "$usr/include" "$cuda/include"
  ln -s "$usr"/lib/x86_64-linux-gnu/lib{cudart_static,cudadevrt}.a "$cuda/lib64/"
  ln -s "$usr"/lib/x86_64-linux-gnu/stubs/*.so "$cuda/lib64/stubs/"
  cat >"$cuda/bin/nvcc.profile" <<'PROFILE'
TOP                = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH               += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES           += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES          =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
PROFILE
}

fetch_source
if [ -z "$toolkit" ]; then
  unpack_debian_toolkit
  toolkit=$work/cuda
  compiler=${compiler:-$work/debian/usr/bin/g++-11}
fi
compiler=${compiler:-g++}

# cuBLAS is the other machine's; the driver is linked against the toolkit's stub of it.
"$compiler" -x c -O2 -c "$here/cublas_forward.c" -o "$work/cublas_forward.o"
rm -f "$work/libcublas_forward.a"
ar rcs "$work/libcublas_forward.a" "$work/cublas_forward.o"

say "llama.cpp for $architectures"
flags=(
  -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_CUDA=ON -DGGML_CUDA_FORCE_MMQ=ON -DGGML_CUDA_NCCL=OFF
  -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DLLAMA_OPENSSL=OFF
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF
  "-DCMAKE_CUDA_ARCHITECTURES=$architectures"
)
cmake -S "$work/llama.cpp" -B "$work/build" "${flags[@]}" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_C_COMPILER="${compiler/g++/gcc}" -DCMAKE_CUDA_HOST_COMPILER="$compiler" \
  -DCMAKE_CUDA_COMPILER="$toolkit/bin/nvcc" -DCUDAToolkit_ROOT="$toolkit" \
  -DCMAKE_EXE_LINKER_FLAGS="-static-libstdc++ -static-libgcc -ldl" \
  -DCMAKE_SKIP_RPATH=ON -DCUDA_CUDART="$toolkit/lib64/libcudart_static.a" \
  -DCUDA_cudart_LIBRARY="$toolkit/lib64/libcudart_static.a" -DCUDA_cublas_LIBRARY="$work/libcublas_forward.a" \
  -DCUDA_cublasLt_LIBRARY="$work/libcublas_forward.a" # what else is installed here is not to be linked
cmake --build "$work/build" --parallel "$jobs" --target llama-bench llama-quantize llama-mtmd-cli

if readelf -d "$work/build/bin/llama-bench" | grep -E 'NEEDED.*lib(cudart|cublas)'; then
  die "llama-bench is linked with these libraries of this machine, which the other may lack"
fi
cp "$work"/build/bin/llama-{bench,quantize,mtmd-cli} "$pack/"
strip "$pack"/llama-*
rm -rf "$pack/gguf" && cp -r "$work/llama.cpp/gguf-py/gguf" "$pack/gguf" # for make_models.py
{
  echo "package $(sed 's/ .*//' "$here/llama-cpp-requirements.txt")"
  echo "version $(sed -n 's/^set(LLAMA_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\))/\2/p' "$work/llama.cpp/CMakeLists.txt" | paste -sd.)"
  echo "toolkit $("$toolkit/bin/nvcc" --version | sed -n 's/.*release //p')"
  echo "compiler $("$compiler" --version | head -1)"
  echo "flags ${flags[*]}"
} >"$pack/BUILD.txt"
# The programs hold the same code for the card: a window wider than two of them leaves one.
tar -C "$pack" -c . | xz --lzma2=preset=4,dict=192MiB >"$pack.tar.xz"
du -sh "$pack" "$pack.tar.xz"
