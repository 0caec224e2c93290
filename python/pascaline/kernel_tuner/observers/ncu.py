"""Kernel Tuner's NCUObserver, which cannot be served."""

from ._refused import refused

NCUObserver = refused("NCUObserver", "NVIDIA's profiler")
