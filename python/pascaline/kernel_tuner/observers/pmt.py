"""Kernel Tuner's PMTObserver, which cannot be served."""

from ._refused import refused

PMTObserver = refused("PMTObserver", "the Power Measurement Toolkit")
