"""The clock, temperature and power of an NVIDIA GPU, from the driver's library NVML."""

import ctypes
from typing import Any, NamedTuple

import torch

LIBRARY = "libnvidia-ml.so.1"
GRAPHICS_CLOCK, GPU_SENSOR, UNCORRECTED, SINCE_BOOT = 0, 0, 1, 0
"""Values of NVML's enumerations."""


class Reading(NamedTuple):
    """The state of a GPU; -1 for what the driver does not tell."""

    clock_mhz: float = -1
    celsius: float = -1
    watts: float = -1
    memory_errors: float = -1
    """Uncorrected errors of its memory (ECC) since the driver was loaded."""


class Gpu:
    """A GPU that NVML can tell about."""

    def __init__(self, library: Any, address: str) -> None:
        """Find the GPU of a PCI address; raise an OSError if NVML does not answer."""
        self._library = library
        self._handle = ctypes.c_void_p()
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(
            address.encode(), ctypes.byref(self._handle)
        ):
            raise OSError(f"NVML does not know the GPU {address}")

    def read(self) -> Reading:
        """Return its state."""
        watts = self._number("nvmlDeviceGetPowerUsage")
        return Reading(
            clock_mhz=self._number("nvmlDeviceGetClockInfo", GRAPHICS_CLOCK),
            celsius=self._number("nvmlDeviceGetTemperature", GPU_SENSOR),
            watts=watts / 1000 if watts >= 0 else -1,
            memory_errors=self._number("nvmlDeviceGetTotalEccErrors", UNCORRECTED, SINCE_BOOT, wide=True),
        )

    def _number(self, function: str, *arguments: int, wide: bool = False) -> float:
        value = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        code = getattr(self._library, function)(self._handle, *arguments, ctypes.byref(value))
        return -1 if code else float(value.value)


def find_gpu(device: torch.device) -> Gpu | None:
    """Return what tells about a device; None if it is no NVIDIA GPU, or if NVML does not answer."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    found: Any = torch.cuda.get_device_properties(device)  # whose type lacks these attributes
    try:
        address = f"{found.pci_domain_id:08x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"
        return Gpu(ctypes.CDLL(LIBRARY), address)
    except (OSError, AttributeError):
        return None
