"""What the library of this folder writes down: its records of calls, and the state that processes share."""

import dataclasses
import os
import pathlib
import struct

KINDS = {1: "open", 2: "write", 3: "pwrite", 4: "writev", 5: "pwritev", 6: "truncate", 7: "fallocate", 8: "fsync", 9: "fdatasync",
         10: "sync_file_range", 11: "rename", 12: "link", 13: "symlink", 14: "unlink", 15: "rmdir", 16: "mkdir", 17: "sync",
         18: "mark"}
WRITES = ("write", "pwrite", "writev", "pwritev")

# RecordHeader of operation.cc.
_HEADER = struct.Struct("<IIii QQQq QQqQ IIII Q")
_MAGIC = 0x46544646
# SharedState of shared_state.h: its beginning, and one slot.
_STATE = struct.Struct("<Q II Q ii II 256s")
_SLOT = struct.Struct("<iiII Q Q 24Q")


class FaultsError(Exception):
    """The library did not see all that was done, or the record cannot be followed."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A call that was performed. `begin` and `end` are ticks of a clock that all processes share: what ended before another
    began came before it, whatever overlaps has no order."""
    kind: str
    rank: int
    pid: int
    begin: int
    end: int
    number: int  # of its process, from 1; 0 for marks
    result: int  # what it returned, or -errno
    device: int
    inode: int
    offset: int  # of a write; the size of a truncate
    length: int  # asked for
    flags: int
    path: str
    path2: str  # a rename's and a link's new name; what a symbolic link points to
    data: bytes = dataclasses.field(repr=False)

    def __str__(self):
        where = " -> ".join(os.path.basename(p) for p in (self.path, self.path2) if p)
        size = f" [{self.offset}, +{self.result}]" if self.kind in WRITES else ""
        failed = f" = -{-self.result}" if self.result < 0 else ""
        return f"#{self.number} {self.kind} {where}{size}{failed}"


def read_calls(path):
    """The calls of a record, as they began. A last one that a killed process wrote in part is left out."""
    raw, at, calls = pathlib.Path(path).read_bytes() if os.path.exists(path) else b"", 0, []
    while at + _HEADER.size <= len(raw):
        (magic, kind, rank, pid, begin, end, number, result, device, inode, offset, length, flags, path_bytes, path2_bytes, _,
         data_bytes) = _HEADER.unpack_from(raw, at)
        if magic != _MAGIC:
            raise FaultsError(f"{path}: byte {at} begins no record")
        at += _HEADER.size
        parts = []
        for size in (path_bytes, path2_bytes, data_bytes):
            parts.append(raw[at:at + size])
            at += size
        if at > len(raw):
            break
        calls.append(Call(KINDS[kind], rank, pid, begin, end, number, result, device, inode, offset, length, flags,
                          os.fsdecode(parts[0]), os.fsdecode(parts[1]), parts[2]))
    return sorted(calls, key=lambda call: call.begin)


@dataclasses.dataclass(frozen=True)
class Fired:
    """The call that the fault struck (first, if it lasts)."""
    kind: str
    number: int
    pid: int
    rank: int


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    rank: int
    launched: bool  # it has a RANK
    calls: int
    kinds: dict  # kind -> how many


@dataclasses.dataclass(frozen=True)
class State:
    fired: object  # Fired or None
    unseen: str  # what was done that the library cannot count; empty: nothing
    processes: list  # that loaded the library, in this order


def read_state(path):
    raw = pathlib.Path(path).read_bytes() if os.path.exists(path) else b""
    if len(raw) < _STATE.size:
        return State(None, "", [])
    _, fired, kind, number, pid, rank, unseen, slots, what = _STATE.unpack_from(raw)
    processes = []
    for i in range(min(slots, (len(raw) - _STATE.size) // _SLOT.size)):
        slot_pid, slot_rank, launched, _, _, calls, *kinds = _SLOT.unpack_from(raw, _STATE.size + i * _SLOT.size)
        counts = {KINDS[k]: n for k, n in enumerate(kinds) if n}
        processes.append(Process(slot_pid, slot_rank, bool(launched), calls, counts))
    return State(Fired(KINDS[kind], number, pid, rank) if fired else None,
                 os.fsdecode(what.split(b"\0")[0]) or "something" if unseen else "", processes)
