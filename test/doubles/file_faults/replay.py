"""Follows a record: turns its calls into effects on names and data, each with the moment from which a power cut cannot take
it back any more."""

import dataclasses
import math
import os

from record import WRITES, FaultsError
from tree import FOLDER, Symlink

NEVER = math.inf
RENAME_EXCHANGE = 2
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16


class Folder:
    def __init__(self):
        self.entries = {}  # as the programs see them now
        self.original = {}  # before the record


class File:
    def __init__(self, original=b""):
        self.original = original
        self.content = bytearray(original)  # as the programs see it now
        self.effects = []


@dataclasses.dataclass(eq=False)
class Names:
    """Names that one call sets (to a node) or removes (None): (folder, name, node). All of them happen, or none, but those
    that a sync of their own folder has made durable."""
    call: object
    changes: list
    durable: list = None  # for each change: the tick from which it stays
    committed: float = NEVER  # where names are journaled in order: the tick from which all of them stay

    def __post_init__(self):
        self.durable = [NEVER] * len(self.changes)


@dataclasses.dataclass(eq=False)
class Data:
    """Bytes that one call puts into a file, or a size that it gives to it."""
    call: object
    file: File
    offset: int = 0
    data: bytes = b""  # zeros are data, too
    size: object = None  # not None: no data, but this size
    grows: bool = True  # data beyond the end makes the file longer
    durable: float = NEVER
    lost: bool = False  # an fsync failed after it: the kernel may have forgotten that the pages are not on disk

    def apply(self, content, data=None):
        """Changes `content`; `data`: instead of its own, a shorter or patched one."""
        data = self.data if data is None else data
        if self.size is not None:
            del content[self.size:]
            content.extend(bytes(self.size - len(content)))
            return
        end = self.offset + len(data)
        if end > len(content) and not self.grows:
            data, end = data[:max(0, len(content) - self.offset)], len(content)
        content.extend(bytes(max(0, end - len(content))))
        content[self.offset:end] = data


class Replay:
    """`effects`: Names and Data in the order in which their calls began. `syncs`: the calls that made something durable.
    `root`: the folder. FaultsError when the record cannot be followed, or leads elsewhere than the programs came."""

    def __init__(self, record):
        self._record, self._files = record, {}
        self.effects, self.syncs, self.marks = [], [], []
        self.root = self._load(record.before, record.names)
        for call in record.calls:
            if call.result >= 0 or call.kind in ("fsync", "fdatasync"):
                getattr(self, "_write" if call.kind in WRITES else "_" + call.kind)(call)
        if not record.killed:
            self._compare(self.tree(), record.after)

    def tree(self):
        """What the programs left, as tree.read_tree gives it."""
        return dict(walk(self.root, lambda folder: folder.entries, lambda file: bytes(file.content)))

    def _load(self, before, names):
        root, made = Folder(), {}
        for path in sorted(before):
            node = before[path]
            if node == FOLDER:
                node = Folder()
            elif isinstance(node, bytes):
                node = made.setdefault(names[path], File(node))
                self._files[names[path]] = node
            folder, name = self._enter(root, path.split(os.sep))
            folder.entries[name] = folder.original[name] = node
        return root

    def _compare(self, mine, theirs):
        for path in sorted(mine.keys() | theirs.keys()):
            if mine.get(path) != theirs.get(path):
                raise FaultsError(f"'{path}' is not what the recorded calls make of it: something else changes the folder, or in a "
                                  f"way that is not seen ({_about(mine.get(path))} by the record, {_about(theirs.get(path))} found)")

    @staticmethod
    def _enter(root, parts):
        for part in parts[:-1]:
            root = root.entries[part]
        return root, parts[-1]

    def _place(self, call, path):
        """The folder of a path, and its last part."""
        below = os.path.relpath(path, self._record.prefix)
        try:
            folder, name = self._enter(self.root, below.split(os.sep))
            folder.entries.get(name)
        except (KeyError, AttributeError):
            raise FaultsError(f"{call}: the record does not know the folder of {path}") from None
        return folder, name

    def _node(self, call, path):
        if path == self._record.prefix:
            return self.root
        folder, name = self._place(call, path)
        return folder.entries.get(name)

    def _file(self, call):
        """The file of a descriptor."""
        node = self._files.get((call.device, call.inode)) or self._node(call, call.path)
        if not isinstance(node, File):
            raise FaultsError(f"{call}: the record does not know this file")
        return node

    # One function for each kind of call.

    def _names(self, call, *changes):
        for folder, name, node in changes:
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node
        self.effects.append(Names(call, list(changes)))

    def _data(self, call, file, **what):
        effect = Data(call, file, **what)
        effect.apply(file.content)
        file.effects.append(effect)
        self.effects.append(effect)
        return effect

    def _open(self, call):
        if call.flags & os.O_TMPFILE == os.O_TMPFILE:
            self._files[call.device, call.inode] = File()
            return
        folder, name = self._place(call, call.path)
        file = folder.entries.get(name)
        if file is None:
            file = File()
            self._names(call, (folder, name, file))
        elif not isinstance(file, File) or self._files.get((call.device, call.inode), file) is not file:
            raise FaultsError(f"{call}: another file is there by the record")
        elif call.flags & os.O_TRUNC and file.content:
            self._data(call, file, size=0)
        self._files[call.device, call.inode] = file

    def _write(self, call):
        if call.result == 0:
            return
        effect = self._data(call, self._file(call), offset=call.offset, data=call.data)
        if call.flags & os.O_DSYNC:
            effect.durable = call.end
            self.syncs.append(call)

    def _truncate(self, call):
        self._data(call, self._file(call), size=call.offset)

    def _fallocate(self, call):
        mode, file = call.flags, self._file(call)
        keep = bool(mode & FALLOC_KEEP_SIZE)
        if mode & ~(FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE):
            raise FaultsError(f"{call}: fallocate with mode {mode} is not replayed")
        if mode & (FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE):
            self._data(call, file, offset=call.offset, data=bytes(call.length), grows=not keep)
        elif not keep and call.offset + call.length > len(file.content):
            self._data(call, file, size=call.offset + call.length)

    def _fsync(self, call):
        try:
            node = self._node(call, call.path)
        except FaultsError:  # a file whose folder is gone
            node = None
        if isinstance(node, Folder):
            if call.result >= 0:
                self._sync_names(call, node)
        else:
            self._sync_data(call, self._file(call))
        if call.result >= 0:
            self.syncs.append(call)
            if call.kind == "fsync":
                self._commit(call)

    _fdatasync = _fsync

    def _sync(self, call):
        for effect in list(self.effects):
            if isinstance(effect, Data):
                self._sync_data(call, effect.file)
            else:
                for folder, _, _ in effect.changes:
                    self._sync_names(call, folder)
        self.syncs.append(call)
        self._commit(call)

    def _sync_data(self, call, file):
        """What ended before the sync began is on disk once it has returned; what ran beside it may be."""
        for effect in file.effects:
            if effect.call.end < call.begin and effect.durable == NEVER:
                if call.result < 0:
                    effect.lost = True
                elif not effect.lost:
                    effect.durable = call.end

    def _sync_names(self, call, folder):
        for effect in self.effects:
            if isinstance(effect, Names) and effect.call.end < call.begin:
                for i, (where, _, node) in enumerate(effect.changes):
                    if where is folder:
                        effect.durable[i] = min(effect.durable[i], call.end)
                        # A rename is one transaction: once the new name is on disk, the old one is gone.
                        if node is not None:
                            effect.durable = [min(d, call.end) for d in effect.durable]

    def _commit(self, call):
        for effect in self.effects:
            if isinstance(effect, Names) and effect.call.end < call.begin:
                effect.committed = min(effect.committed, call.end)

    def _sync_file_range(self, call):
        """Makes nothing durable: neither the size nor where the blocks lie, and disks have caches."""

    def _rename(self, call):
        (old, old_name), (new, new_name) = self._place(call, call.path), self._place(call, call.path2)
        node, other = old.entries.get(old_name), new.entries.get(new_name)
        if node is None:
            raise FaultsError(f"{call}: the record does not know what is renamed")
        if call.flags & RENAME_EXCHANGE:
            self._names(call, (new, new_name, node), (old, old_name, other))
        elif node is not other:  # two names of one file stay both
            self._names(call, (old, old_name, None), (new, new_name, node))

    def _link(self, call):
        folder, name = self._place(call, call.path2)
        node = self._files.get((call.device, call.inode)) or self._node(call, call.path)
        self._names(call, (folder, name, node))

    def _symlink(self, call):
        folder, name = self._place(call, call.path)
        self._names(call, (folder, name, Symlink(call.path2)))

    def _mkdir(self, call):
        folder, name = self._place(call, call.path)
        self._names(call, (folder, name, Folder()))

    def _unlink(self, call):
        folder, name = self._place(call, call.path)
        self._names(call, (folder, name, None))

    _rmdir = _unlink

    def _mark(self, call):
        self.marks.append(call)


def walk(folder, entries, content, at=""):
    """(path, node) of all below `folder` as tree.read_tree gives them. entries(folder): its names; content(file): the value."""
    for name, node in entries(folder).items():
        path = os.path.join(at, name)
        if isinstance(node, Folder):
            yield path, FOLDER
            yield from walk(node, entries, content, path)
        elif isinstance(node, File):
            yield path, content(node)
        else:
            yield path, node


def _about(node):
    return f"{len(node)} bytes" if isinstance(node, bytes) else "nothing" if node is None else str(node)
