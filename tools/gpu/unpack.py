"""First program of a bundle (bundle.py): unpacks it once, and begins the check with the options that it was given.

    python3 FILE [--unpack-to=DIR] [options of check]

Time counts from here. It makes a folder in DIR, by default where temporary files go; one that an earlier run has unpacked whole is
used again.
"""
import lzma
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile

BEGAN = time.time()
WHOLE = "whole"  # written last
BUFFER = 1 << 20


def unpack(archive, folder):
    """Beside the folder first: one that was cut off in the middle is never taken for whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        # tarfile's own "r|xz" takes quadratic time where much comes of few bytes.
        with (archive.open("bundle.tar.xz") as packed, lzma.open(packed) as plain,
              tarfile.open(fileobj=plain, mode="r|", bufsize=BUFFER) as files):
            for member in files:  # all are plain files that we have named ourselves
                files.extract(member, work, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (work / WHOLE).touch()
        if folder.exists():  # half of it, or somebody else's
            os.rename(folder, work.with_suffix(".old"))
            shutil.rmtree(work.with_suffix(".old"), ignore_errors=True)
        os.rename(work, folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def is_ours(folder):
    """Unpacked whole, and by this user: others may write where temporary files go."""
    return not folder.is_symlink() and (folder / WHOLE).exists() and folder.stat().st_uid == os.getuid()


def place_of(archive, parent):
    """The folder with what the bundle holds."""
    folder = parent / f"ft-gpu-check-{os.getuid()}-{archive.read('checksum').decode()[:12]}"
    if not is_ours(folder):
        unpack(archive, folder)
    return folder


def main():
    options, parent = [], pathlib.Path(tempfile.gettempdir())
    for word in sys.argv[1:]:
        if word.startswith("--unpack-to="):
            parent = pathlib.Path(word.partition("=")[2]).resolve()
        else:
            options.append(word)
    try:
        with zipfile.ZipFile(sys.argv[0]) as archive:
            folder = place_of(archive, parent)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError) as error:
        sys.exit(f"check: cannot unpack into '{parent}': {error}; is the file whole? --unpack-to=DIR names another place")
    print(f"check: unpacked in {folder} after {time.time() - BEGAN:.1f} s", flush=True)
    if not any(word.startswith("--began=") for word in options):
        options.append(f"--began={BEGAN}")
    os.execv(sys.executable, [sys.executable, "-B", str(folder / "check"), *options])


if __name__ == "__main__":
    main()
