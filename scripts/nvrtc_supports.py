#!/usr/bin/env python3
"""nvrtc_supports.py ARCHITECTURE LIBRARY...: prints version and path of the first NVRTC that compiles for it."""
import ctypes
import sys


def architectures(path):
    """Version and architectures (61 for sm_61) of an NVRTC library."""
    library = ctypes.CDLL(path)
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    supported = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(supported)
    return f"{major.value}.{minor.value}", list(supported)


def main(arguments):
    wanted = int(arguments[0])
    for path in arguments[1:]:
        try:
            version, supported = architectures(path)
        except (OSError, AttributeError):
            continue
        if wanted in supported:
            print(version, path)
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
