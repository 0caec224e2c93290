"""Kernel Tuner's TegraObserver, which cannot be served."""

from ._refused import refused

TegraObserver = refused("TegraObserver", "a Jetson's own sensors")
