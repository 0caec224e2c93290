"""The place of NVMLObserver in older scripts."""

from .observers.nvml import NVMLObserver, get_nvml_gr_clocks, get_nvml_mem_clocks, get_nvml_pwr_limits

__all__ = ["NVMLObserver", "get_nvml_gr_clocks", "get_nvml_mem_clocks", "get_nvml_pwr_limits"]
