"""Checkpoints as files: read, verified and taken apart by Python's standard library alone, sharing nothing with what is tested."""

import base64
import json
import pathlib
import re
import zlib

MANIFEST = "manifest.json"
_END = re.compile(rb',\n "checksum": "([0-9a-f]{8})"\n}\n\Z')
_NAME = re.compile(r"step-(\d{8,})\Z")


def step_of(name):
    """Of "step-00000012"; None for any other name."""
    found = _NAME.match(name)
    return int(found[1]) if found else None


def read_manifest(raw):
    """The manifest as JSON; ValueError says what is wrong with its frame."""
    end = _END.search(raw)
    if not end:
        raise ValueError("the manifest has no end")
    if zlib.crc32(raw[:end.start(1)]) != int(end[1], 16):
        raise ValueError("the manifest's checksum is another")
    return json.loads(raw[:end.start()] + b"}")


def manifest_bytes(manifest):
    """With the right checksum, whatever it says."""
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    body = text.rstrip().removesuffix("}").rstrip().encode() + b',\n "checksum": "'
    return body + b"%08x" % zlib.crc32(body) + b'"\n}\n'


def complaint(files):
    """What keeps these files (name -> bytes) from being a whole checkpoint; None: nothing."""
    if MANIFEST not in files:
        return "it has no manifest"
    try:
        manifest = read_manifest(files[MANIFEST])
    except ValueError as error:
        return str(error)
    for listed in manifest["files"]:
        content = files.get(listed["name"])
        if not isinstance(content, bytes) or len(content) != listed["bytes"]:
            return f"{listed['name']} is missing or has another size"
        block, sums = manifest["block_bytes"], base64.b64decode(listed["crc32"])
        for i, begin in enumerate(range(0, len(content), block)):
            if zlib.crc32(content[begin:begin + block]) != int.from_bytes(sums[4 * i:4 * i + 4], "little"):
                return f"{listed['name']} is damaged"
    listed = {file["name"] for file in manifest["files"]} | {MANIFEST}
    return f"{sorted(set(files) - listed)} are not listed" if set(files) - listed else None


def checkpoints_of(tree, folder):
    """step -> files, of a tree (path -> bytes and others) and the folder of checkpoints in it."""
    found = {}
    for path, content in tree.items():
        parts = pathlib.PurePosixPath(path).parts
        if len(parts) < 2 or parts[0] != folder or step_of(parts[1]) is None:
            continue
        files = found.setdefault(step_of(parts[1]), {})
        if len(parts) > 2:
            files["/".join(parts[2:])] = content
    return found


def read_checkpoints(folder):
    """The same of a folder on disk."""
    found = {}
    for path in pathlib.Path(folder).iterdir() if pathlib.Path(folder).exists() else ():
        if step_of(path.name) is not None:
            found[step_of(path.name)] = {p.name: p.read_bytes() for p in path.iterdir() if p.is_file()}
    return found


def branch_of(files):
    """The number of the run, of those that wrote into the folder, that wrote these."""
    return read_manifest(files[MANIFEST]).get("branch", {}).get("number", 0)


def newest_whole(checkpoints):
    """(branch, step) of the one to go on from; (0, 0): there is none."""
    whole = [(branch_of(files), step) for step, files in checkpoints.items() if complaint(files) is None]
    return max(whole, default=(0, 0))


def announced(stdout):
    """The steps that a run said are saved."""
    return [int(step) for step in re.findall(r"^(?:\[rank 0\] )?checkpoint \S*/step-(\d{8}): ", stdout, re.MULTILINE)]


def resumed_after(stdout):
    """How many steps were done already by a run's own word; 0: none."""
    found = re.search(r"^(?:\[rank 0\] )?resumed from '[^']*' after (\d+) step", stdout, re.MULTILINE)
    return int(found[1]) if found else 0
