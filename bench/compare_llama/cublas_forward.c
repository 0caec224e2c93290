/* The functions of cuBLAS that llama.cpp calls, forwarded to the cuBLAS of the machine it runs on: the library and
 * cuBLASLt are 700 MB together and need not travel with the program. The first that loads is taken of $CUBLAS_LIBRARY,
 * libcublas.so.11, .12 and .13; their functions have the same binary interface. x86-64 only. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS(X)                                                                                                 \
  X(cublasCreate_v2)                                                                                                 \
  X(cublasDestroy_v2)                                                                                                \
  X(cublasSetStream_v2)                                                                                              \
  X(cublasSetMathMode)                                                                                               \
  X(cublasSetWorkspace_v2)                                                                                           \
  X(cublasGetStatusString)                                                                                           \
  X(cublasSgemm_v2)                                                                                                  \
  X(cublasSgemmBatched)                                                                                              \
  X(cublasSgemmStridedBatched)                                                                                       \
  X(cublasStrsmBatched)                                                                                              \
  X(cublasGemmEx)                                                                                                    \
  X(cublasGemmBatchedEx)                                                                                             \
  X(cublasGemmStridedBatchedEx)

static void missing(void) {
  fprintf(stderr, "cuBLAS: none found here; name its file in CUBLAS_LIBRARY\n");
  exit(3);
}

#define POINTER(name) static void* target_##name __attribute__((used)) = (void*)missing;
FUNCTIONS(POINTER)

#define ENTRY(name)                  \
  __asm__(".text\n.globl " #name "\n" \
          ".type " #name ",@function\n" #name ":\n  jmp *target_" #name "(%rip)\n");
FUNCTIONS(ENTRY)

__attribute__((constructor)) static void load(void) {
  const char* names[] = {getenv("CUBLAS_LIBRARY"), "libcublas.so.11", "libcublas.so.12", "libcublas.so.13"};
  void* library = NULL;
  for (int i = 0; i < 4 && library == NULL; ++i) {
    library = names[i] == NULL ? NULL : dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  }
#define RESOLVE(name)                                     \
  if (library != NULL && dlsym(library, #name) != NULL) { \
    target_##name = dlsym(library, #name);                \
  }
  FUNCTIONS(RESOLVE)
}
