"""Where an op of the graph comes from: its layer, from the stack of modules, and Python's file and line."""
import functools
import os
import re
import sys

from .text import Place

NUMBERED = re.compile(r"^((?:.*?\.)?\d+)(?:\.|$)")
FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@functools.lru_cache(maxsize=None)
def shortened(path):
    """Below the working directory or a folder of packages, the path from there."""
    full = os.path.abspath(path)
    for folder in sorted([os.getcwd(), *(entry for entry in sys.path if entry)], key=len, reverse=True):
        folder = os.path.abspath(folder).rstrip(os.sep) + os.sep
        if full.startswith(folder):
            return full[len(folder):]
    return path


def is_users(path):
    """Whether a file is part of what was exported, and no part of PyTorch or of this package."""
    parts = path.replace("\\", "/")
    return not (path.startswith("<") or "/torch/" in parts or parts.rsplit("/", 1)[0].endswith(("/ft", "/ft/aten")))


def source_of(node):
    """(file, line) of the innermost frame that is not PyTorch's own, or else of the innermost; None where nothing is known."""
    frames = [(path, int(line)) for path, line in FRAME.findall(node.meta.get("stack_trace") or "") if not path.startswith("<")]
    own = [frame for frame in frames if "/torch/" not in frame[0].replace("\\", "/")]
    if not frames:
        return None
    path, line = (own or frames)[-1]
    return shortened(path), line


def module_of(node):
    """The path of the innermost module that a node was traced in, as in the state dict; "" for the module itself."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return re.sub(r"@\d+", "", path.replace("L['self'].", "").replace("L['self']", ""))


class Layers:
    """Names layers: of what is in a numbered list (blocks of a transformer) the path up to the first number; of what lies beside such a
    list, the path of the module that does; of what a module that has such a list does itself, the layer before it."""

    def __init__(self, paths):
        self.above = {""}
        for path in paths:
            if found := NUMBERED.match(path):
                parts = found[1].split(".")
                self.above.update(".".join(parts[:count]) for count in range(len(parts)))
        self.latest = next((layer for path in paths if (layer := self.named(path))), "main")

    def named(self, path):
        """The layer of a path; "" where it has none of its own."""
        if found := NUMBERED.match(path):
            return found[1]
        parts = path.split(".")
        return next((begin for count in range(1, len(parts) + 1) if (begin := ".".join(parts[:count])) not in self.above), "")

    def of(self, path):
        self.latest = self.named(path) or self.latest
        return self.latest

    def place(self, node):
        return Place(self.of(module_of(node)), source_of(node))
