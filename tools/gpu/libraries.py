"""NVIDIA's driver and each of its libraries alone, so that when ftexec cannot open the GPU it is known which of them is in the way.

As a program it loads one of them, as ftexec's environment lets it be found, does the least that needs the GPU, and prints one
line: what was loaded, and from where.   libraries.py driver|cublasLt|cudnn|nccl NAME-OF-THE-LIBRARY
"""
import contextlib
import ctypes
import itertools
import os
import pathlib
import re
import sys

BYTES = 1 << 20


class Refused(Exception):
    pass


def expect(status, what):
    if status:
        raise Refused(f"{what} returned {status}")


def load(name):
    """From where the loader looks, else from the wheels of the active environment, else from a toolkit: as ftexec does."""
    prefix = pathlib.Path(os.environ.get("VIRTUAL_ENV") or sys.prefix)
    wheels = [prefix.glob(f"{lib}/python3*/{packages}/nvidia/*/lib/{name}") for lib in ("lib", "local/lib")
              for packages in ("site-packages", "dist-packages")]
    error = None
    for candidate in (name, *itertools.chain(*wheels, pathlib.Path("/usr/local").glob(f"cuda*/lib64/{name}"))):
        try:
            return ctypes.CDLL(str(candidate))
        except OSError as failure:
            error = error or failure
    raise error


def place(handle):
    """Where a library was found."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
            if line.rpartition("/")[2].startswith(handle._name.rpartition("/")[2]):
                return line[line.index("/"):]
    return handle._name


def open_gpu():
    """The driver with a context on the first GPU, and memory there that gives back what it was given."""
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    expect(cuda.cuInit(0), "cuInit")
    expect(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    expect(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    expect(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    memory, there, back = ctypes.c_uint64(), bytes(range(256)) * (BYTES // 256), ctypes.create_string_buffer(BYTES)
    expect(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(BYTES)), "cuMemAlloc")
    expect(cuda.cuMemcpyHtoD_v2(memory, there, ctypes.c_size_t(BYTES)), "cuMemcpyHtoD")
    expect(cuda.cuMemcpyDtoH_v2(back, memory, ctypes.c_size_t(BYTES)), "cuMemcpyDtoH")
    if back.raw != there:
        raise Refused("memory of the GPU does not give back what was written")
    return cuda, memory


def driver(_):
    cuda, _ = open_gpu()
    version = ctypes.c_int()
    expect(cuda.cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    return f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}, {place(cuda)}"


def created(prefix, version_of):
    """A library of which a handle is made and given back."""
    def check(name):
        open_gpu()
        library, handle = load(name), ctypes.c_void_p()
        getattr(library, version_of).restype = ctypes.c_size_t
        expect(getattr(library, f"{prefix}Create")(ctypes.byref(handle)), f"{prefix}Create")
        expect(getattr(library, f"{prefix}Destroy")(handle), f"{prefix}Destroy")
        return f"{getattr(library, version_of)()}, {place(library)}"
    return check


def nccl(name):
    """A communicator of one rank, and a sum in it."""
    library, version, communicator = load(name), ctypes.c_int(), ctypes.c_void_p()
    expect(library.ncclGetVersion(ctypes.byref(version)), "ncclGetVersion")
    if "--load-only" not in sys.argv:
        cuda, memory = open_gpu()
        expect(library.ncclCommInitAll(ctypes.byref(communicator), 1, None), "ncclCommInitAll")
        address, floats, add = ctypes.c_void_p(memory.value), 7, 0  # of nccl.h
        expect(library.ncclAllReduce(address, address, ctypes.c_size_t(BYTES // 4), floats, add, communicator, None),
               "ncclAllReduce")
        expect(cuda.cuStreamSynchronize(None), "cuStreamSynchronize")
        expect(library.ncclCommDestroy(communicator), "ncclCommDestroy")
    return f"{version.value}, {place(library)}"


CHECKS = {"driver": driver, "cublasLt": created("cublasLt", "cublasLtGetVersion"), "cudnn": created("cudnn", "cudnnGetVersion"),
          "nccl": nccl}


def names_in(program):
    """What our program asks the loader for."""
    found = {"driver": "libcuda.so.1"}
    for name in re.findall(rb"lib(?:cublasLt|cudnn|nccl)\.so\.\d+", pathlib.Path(program).read_bytes()):
        found[re.match(r"lib(\w+)", name.decode())[1]] = name.decode()
    return found


def main():
    try:
        print(CHECKS[sys.argv[1]](sys.argv[2]))
    except (OSError, AttributeError, Refused) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
