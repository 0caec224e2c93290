// NVRTC has a macro of its own; NDEBUG is looked at again at every inclusion, as in C.
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif
