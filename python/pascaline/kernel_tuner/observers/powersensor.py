"""Kernel Tuner's PowerSensorObserver, which cannot be served."""

from ._refused import refused

PowerSensorObserver = refused("PowerSensorObserver", "a PowerSensor")
