"""Everything a check needs in one file, which Python runs: it unpacks itself and begins, on a machine without compiler or network.

The file is a zip archive with __main__.py (unpack.py) and a tar archive packed by xz. In it: programs that need only the C library,
for one architecture and without symbols; plans; scripts; and NCCL, pruned to that architecture (fatbin.py).
"""
import hashlib
import json
import lzma
import pathlib
import shutil
import stat
import sys
import tarfile
import tempfile
import zipfile

import artifacts
import fatbin

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = "libnccl.so.2"
# Python's alone; unpacking takes as long for each level.
LEVEL = 9


def build_portable(build, programs, arch):
    """The programs as single files that need only the C library, for a machine where nothing of ours is installed."""
    artifacts.run(["cmake", "-S", artifacts.ROOT, "-B", build, "-G", "Ninja", "-DFT_COMPILER=OFF", "-DFT_STATIC=ON", "-DFT_CUDA=on",
                   f"-DFT_CUDA_ARCHITECTURES={arch}-real"])
    artifacts.run(["ninja", "-C", build, *(pathlib.Path(path).name for path in programs)])
    return build


def download_nccl(folder):
    """The wheel of nccl.txt, whose checksum stands there."""
    try:
        artifacts.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                       "--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_18_x86_64", "--require-hashes",
                       f"--dest={folder}", f"--requirement={HERE / 'nccl.txt'}"])
    except RuntimeError as error:
        raise SystemExit(f"check: NCCL cannot be fetched ({error}); name a wheel or {LIBRARY} by --nccl=FILE, or --nccl=none") from None
    return next(pathlib.Path(folder).glob("*.whl"))


def strip(program):
    """Without symbols, unless it is a script: a stand-in of the check's own test."""
    with open(program, "rb") as file:
        if file.read(4) == b"\x7fELF":
            artifacts.run(["strip", program])


def write_nccl(source, folder, arch):
    """From a wheel or a library. Its licence goes along where the wheel has it."""
    folder.mkdir()
    if source.suffix == ".whl":
        with zipfile.ZipFile(source) as wheel:
            image = bytearray(wheel.read(f"nvidia/nccl/lib/{LIBRARY}"))
            for name in wheel.namelist():
                if name.endswith("/License.txt"):
                    (folder / "License.txt").write_bytes(wheel.read(name))
    else:
        image = bytearray(source.read_bytes())
    try:
        fatbin.prune(image, arch)
    except fatbin.Unreadable as error:
        raise SystemExit(f"check: {source}: {error}") from None
    (folder / LIBRARY).write_bytes(image)
    strip(folder / LIBRARY)


def fill(folder, build, parts, arch, nccl, programs_from):
    """All that a check needs; text.txt is what the small models train on."""
    programs = artifacts.programs_of(parts)
    # As deep as the build, for the compiler's cache.
    made_from = programs_from or build_portable(build.with_name(f"{build.name}-portable-{arch}"), programs, arch)
    made = artifacts.Build(build, folder, artifacts.plans_of(parts), programs=())
    try:
        if nccl != "none":
            with tempfile.TemporaryDirectory() as downloads:
                write_nccl(download_nccl(downloads) if nccl == "auto" else pathlib.Path(nccl), folder / artifacts.NCCL, arch)
        for preset in artifacts.OTHER_INPUTS:
            made.data(preset)
        (folder / "plans.json").write_text(json.dumps({name: made.arena_bytes(name) for name in made.compiled}, indent=0))
    finally:
        made.close()
    for path in programs:
        strip(shutil.copy2(made_from / path, folder))
    for script in ("check", *(path.name for path in HERE.glob("*.py"))):
        shutil.copy2(HERE / script, folder)
    shutil.copy2(artifacts.ROOT / "LICENSE", folder)
    shutil.copy2(made.text, folder / "text.txt")


def plain(member):
    """Nothing of the machine that packed it."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = "root"
    return member


def pack(folder, file):
    """Returns the size. What it is unpacked into is named by what is in it, so that a second run finds it."""
    packed = folder.with_suffix(".tar.xz")
    with lzma.open(packed, "wb", preset=LEVEL) as out, tarfile.open(fileobj=out, mode="w|") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.add(path, path.relative_to(folder), filter=plain)
    checksum = hashlib.sha256(packed.read_bytes()).hexdigest()
    with open(file, "wb") as out:
        out.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("__main__.py", (HERE / "unpack.py").read_text())
            archive.writestr("checksum", checksum)
            archive.write(packed, "bundle.tar.xz")
    file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return file.stat().st_size


def make(file, build, parts, arch, nccl="auto", programs_from=None):
    """Writes the file; returns its size in bytes."""
    with tempfile.TemporaryDirectory(prefix="ft-bundle-") as work:
        folder = pathlib.Path(work) / "bundle"
        folder.mkdir()
        fill(folder, build, parts, arch, nccl, programs_from)
        return pack(folder, pathlib.Path(file))
