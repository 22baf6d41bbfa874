"""A folder as values: path below it -> bytes of a file, FOLDER, or Symlink."""

import dataclasses
import os
import pathlib
import stat

FOLDER = "folder"


@dataclasses.dataclass(frozen=True)
class Symlink:
    target: str


def read_tree(folder):
    """Files, folders and links below `folder`. Other things (sockets, pipes) are left out: they are no data."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            mode = os.lstat(path).st_mode
            below = os.path.relpath(path, folder)
            if stat.S_ISLNK(mode):
                found[below] = Symlink(os.readlink(path))
            elif stat.S_ISDIR(mode):
                found[below] = FOLDER
            elif stat.S_ISREG(mode):
                found[below] = pathlib.Path(path).read_bytes()
    return found


def identities(folder):
    """path -> (device, inode) of the regular files below `folder`: which names are one file."""
    found = {}
    for at, _, files in os.walk(folder):
        for name in files:
            info = os.lstat(os.path.join(at, name))
            if stat.S_ISREG(info.st_mode):
                found[os.path.relpath(os.path.join(at, name), folder)] = (info.st_dev, info.st_ino)
    return found


def write_tree(tree, folder):
    """Makes `tree` in `folder`, which exists and is empty."""
    for below in sorted(tree):  # a folder before what lies in it
        path, node = os.path.join(folder, below), tree[below]
        if node == FOLDER:
            os.mkdir(path)
        elif isinstance(node, Symlink):
            os.symlink(node.target, path)
        else:
            pathlib.Path(path).write_bytes(node)
