"""Clocks, power, temperature and what holds the clocks down, sampled by NVML while something else runs."""
import collections
import contextlib
import ctypes
import statistics
import threading

PERIOD = 0.1  # seconds
BUSY = 50  # percent: samples of an idle GPU, while a program starts, say nothing
SM, MEMORY = 1, 2  # nvmlClockType_t
CELSIUS = 0
# nvmlClocksEventReasons
REASONS = {0x1: "idle", 0x2: "set clocks", 0x4: "power cap", 0x8: "slowdown by hardware", 0x10: "sync boost", 0x20: "heat (software)",
           0x40: "heat (hardware)", 0x80: "power brake", 0x100: "display clocks"}


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml:
    """One GPU, by the PCI id that CUDA gives. Raises OSError where there is no NVML, or it does not know the GPU."""

    def __init__(self, pci):
        self.library, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByPciBusId_v2(pci.encode(), ctypes.byref(self.handle)):
            raise OSError(f"NVML does not know the GPU {pci}")

    def number(self, function, *arguments, kind=ctypes.c_uint):
        """What it says, or None when this GPU does not tell."""
        value = kind()
        with contextlib.suppress(AttributeError):
            if not getattr(self.library, function)(self.handle, *arguments, ctypes.byref(value)):
                return value if kind is Utilization else value.value
        return None

    def sample(self):
        used = self.number("nvmlDeviceGetUtilizationRates", kind=Utilization)
        return {"busy": used.gpu if used else 100,
                "sm_mhz": self.number("nvmlDeviceGetClockInfo", SM), "memory_mhz": self.number("nvmlDeviceGetClockInfo", MEMORY),
                "milliwatts": self.number("nvmlDeviceGetPowerUsage"), "celsius": self.number("nvmlDeviceGetTemperature", CELSIUS),
                "reasons": self.number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)}


def spread(values):
    values = [value for value in values if value is not None]
    return {"least": min(values), "median": statistics.median(values), "most": max(values)} if values else None


def summary(samples):
    """Of those in which the GPU was busy; reasons with the share of samples that had them."""
    busy = [sample for sample in samples if sample["busy"] >= BUSY]
    if not busy:
        return {"samples": 0}
    reasons = collections.Counter(name for sample in busy for bit, name in REASONS.items() if (sample["reasons"] or 0) & bit)
    return {"samples": len(busy), "held_down_by": {name: round(count / len(busy), 3) for name, count in reasons.items()},
            **{name: spread(sample[name] for sample in busy) for name in ("sm_mhz", "memory_mhz", "milliwatts", "celsius")}}


@contextlib.contextmanager
def watched(gpu):
    """Gives a dict that has the summary once the block is over, or "reason" why there is none."""
    found, samples, ended = {}, [], threading.Event()
    try:
        nvml = Nvml(gpu.get("pci", ""))
    except OSError as error:
        found["reason"] = f"no clocks: {error}"
        yield found
        return

    def run():
        while not ended.wait(PERIOD):
            samples.append(nvml.sample())
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join(5)  # a sick driver may keep it
        found.update(summary(list(samples)))


def text(found):
    """In a few words."""
    if not found.get("samples"):
        return found.get("reason", "the GPU was never seen busy by NVML")
    clocks, power = found["sm_mhz"], found["milliwatts"]
    words = [f"{clocks['least']}-{clocks['most']} MHz"] if clocks else []
    words += [f"{power['median'] / 1e3:.0f} W"] if power else []
    held = [f"{name} {share:.0%}" for name, share in found["held_down_by"].items() if name != "idle"]
    return ", ".join([*words, *(held or ["not held down"])])
