"""What this machine has: GPUs, NVIDIA's libraries, PyTorch. Run as a program it prints the GPUs as JSON."""
import ctypes
import json
import os
import re
import subprocess
import sys

OLDEST_TORCH = (2, 5)  # compiles a block once for all layers, and knows grouped queries in its attention
# Of a launcher around the check: they must not reach the programs that it starts.
LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
ATTRIBUTE_COMPUTE_MODE, EXCLUSIVE_PROCESS = 20, 3  # of cuda.h


def ask_driver():
    """The GPUs as CUDA shows them, CUDA_VISIBLE_DEVICES heeded, or why there are none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"gpus": [], "reason": f"no driver: {error}"}
    if status := cuda.cuInit(0):
        return {"gpus": [], "reason": f"the driver's cuInit failed with error {status}"}
    count, version = ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    cuda.cuDriverGetVersion(ctypes.byref(version))
    gpus, exclusive = [], False
    for number in range(count.value):
        device, name, total = ctypes.c_int(), ctypes.create_string_buffer(96), ctypes.c_size_t()
        cuda.cuDeviceGet(ctypes.byref(device), number)
        cuda.cuDeviceGetName(name, len(name), device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
        mode = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(mode), ATTRIBUTE_COMPUTE_MODE, device)
        exclusive |= mode.value == EXCLUSIVE_PROCESS
        pci = ctypes.create_string_buffer(32)
        cuda.cuDeviceGetPCIBusId(pci, len(pci), device)
        gpus.append({"name": name.value.decode(), "bytes": total.value, "pci": pci.value.decode()})
    return {"gpus": gpus, "exclusive": exclusive, "reason": "" if gpus else "the driver shows no GPU",
            "driver": f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"}


def output_of(command, seconds):
    """Standard output, or "" when the command fails, hangs or is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds, errors="replace").stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def describe():
    """ask_driver in a process of its own: a sick driver may hang."""
    text = output_of([sys.executable, "-B", __file__], 60)
    found = json.loads(text) if text else {"gpus": [], "reason": "the driver did not answer within 60 s"}
    return {**found, "nvidia_smi": output_of(["nvidia-smi"], 30).splitlines(), "cores": os.cpu_count()}


def torch_of(python, seconds=120):
    """{"version", "cuda", ...} of a PyTorch that can be a peer, or {"reason"} why there is none."""
    code = ("import json, torch; print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda, "
            "'cudnn': torch.backends.cudnn.version(), 'gpus': torch.cuda.device_count()}))")
    text = output_of([python, "-c", code], seconds)
    if not text:
        return {"reason": f"'{python}' has no PyTorch that can be imported; --python names another"}
    found = json.loads(text.splitlines()[-1])
    if tuple(int(part) for part in re.findall(r"\d+", found["version"])[:2]) < OLDEST_TORCH:
        found["reason"] = f"PyTorch {found['version']} is older than {'.'.join(map(str, OLDEST_TORCH))}"
    elif not found["gpus"]:
        found["reason"] = f"PyTorch {found['version']} (CUDA {found['cuda']}) sees no GPU"
    return found


def environment(python="", folders=()):
    """Of our programs. They find NVIDIA's libraries beside the PyTorch of `python`, as of an active environment; before those where the
    caller's LD_LIBRARY_PATH says, and first of all in `folders`: images have it set, and an old NCCL there."""
    kept = {name: value for name, value in os.environ.items()
            if name not in LAUNCHER_VARIABLES and not name.startswith("TORCHELASTIC_")}
    if prefix := python and output_of([python, "-c", "import sys; print(sys.prefix)"], 30).strip():
        kept["VIRTUAL_ENV"] = prefix
    if path := ":".join(part for part in (*folders, os.environ.get("LD_LIBRARY_PATH")) if part):
        kept["LD_LIBRARY_PATH"] = path
    return kept


if __name__ == "__main__":
    print(json.dumps(ask_driver()))
