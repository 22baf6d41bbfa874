"""What a disk may hold after a power cut: the recorded calls, with whatever no fsync covered lost, torn or out of order.

    for state in PowerCut(record).states(seed=0, limit=8):
        look at state.tree, or at the folder state.folder; state.done and state.said tell what was promised before
    wrong = PowerCut(record).check(lambda state: None if is_good(state.tree) else "what is wrong")

README.md of this folder says what is taken for durable.
"""

import dataclasses
import hashlib
import math
import random
import shutil
import tempfile

from replay import Data, Names, Replay, walk
from tree import write_tree

BLOCK = 4096
APPLY, SIZE = "apply", "size"  # whole; only the file's new size, and zeros for the bytes


@dataclasses.dataclass
class State:
    """One folder that a power cut may leave. `tree`: path -> bytes, tree.FOLDER or tree.Symlink. `done`: the program had ended.
    `said`: what had been written to the marked file. `after`: the last call that had begun. `lost`: what the cut took or tore."""
    tree: dict
    done: bool
    said: bytes
    after: object
    lost: list
    _scratch: str = None

    @property
    def folder(self):
        """A folder with these files, the checker's to use and change; gone with the next state."""
        if self._scratch is None:
            self._scratch = tempfile.mkdtemp(prefix="ft-power-cut-")
            write_tree(self.tree, self._scratch)
        return self._scratch

    def remove(self):
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def __str__(self):
        when = "at the end" if self.done else f"after {self.after}" if self.after else "before all"
        return f"power cut {when}; " + (f"lost: {', '.join(self.lost)}" if self.lost else "nothing lost")


@dataclasses.dataclass(frozen=True)
class _Cut:
    tick: float  # what began before it may be on disk
    done: bool
    said: bytes
    after: object


class PowerCut:
    """The states of one record (FileFaults.record). `ordered_names`: names are journaled in order, as ext4 and XFS do, and any
    fsync commits all before it; without it (harsher, what POSIX promises) each name is lost or kept for itself until its
    own folder is synced. Data is in no order in either. `block`: bytes that a disk writes as one."""

    def __init__(self, record, ordered_names=False, block=BLOCK):
        self._replay = Replay(record)
        self._effects, self._ordered, self._block = self._replay.effects, ordered_names, block
        self._calls = [call for call in record.calls if call.kind != "mark"]
        self._digests = {}

    def states(self, seed=0, limit=8):
        """All different states of: every moment x (nothing uncovered survives, everything, each thing alone, all but each,
        names without data, data up to each write, each write torn or as zeros) and, for every moment, `limit` random
        mixtures. The same seed gives the same states. Each is gone when the next is asked for."""
        seen, looks = set(), set()
        for number, cut in enumerate(self._cuts()):
            draw = random.Random(f"{seed}:{number}")
            fixed, optional = self._split(cut.tick)
            for chosen in self._choices(optional, draw, limit):
                applied = self._applied(fixed, optional, chosen)
                key = (cut.done, cut.said, tuple((id(e), how) for e, how in applied.items()))
                if key in seen:
                    continue
                seen.add(key)
                names, contents = self._names(applied, cut.tick), self._contents(applied)
                look = (cut.done, cut.said, self._look(names, contents))
                if look in looks:
                    continue
                looks.add(look)
                state = State(dict(walk(self._replay.root, names, lambda f: self._bytes(f, contents))), cut.done, cut.said,
                              cut.after, [self._describe(e, applied.get(e)) for e in optional if applied.get(e) != APPLY])
                try:
                    yield state
                finally:
                    state.remove()

    def check(self, checker, seed=0, limit=8, most=10):
        """What checker(state) says of the states: it returns None, or a text (or raises an AssertionError) about what is wrong.
        Returns (number of states, list of up to `most` complaints)."""
        count, wrong = 0, []
        for state in self.states(seed, limit):
            count += 1
            try:
                said = checker(state)
            except AssertionError as error:
                said = str(error)
            if said is not None and len(wrong) < most:
                wrong.append(f"{state}: {said}")
        return count, wrong

    def _cuts(self):
        """The moments at which something may be different: a call has begun, a sync or mark has ended, the program has."""
        said, after, events = b"", None, []
        events += [(call.begin, "began", call) for call in self._calls]
        events += [(call.end, "synced", call) for call in self._replay.syncs]
        events += [(call.end, "marked", call) for call in self._replay.marks]
        yield _Cut(-1, False, said, None)
        for tick, what, call in sorted(events, key=lambda event: event[0]):
            if what == "began":
                after = call
            elif what == "marked":
                said += call.data
            yield _Cut(tick + 0.5, False, said, after)
        yield _Cut(math.inf, True, said, after)

    def _split(self, tick):
        """(effects that are on disk for certain, those that may be)."""
        fixed, optional = [], []
        for effect in self._effects:
            if effect.call.begin < tick:
                (fixed if self._is_durable(effect, tick) else optional).append(effect)
        return fixed, optional

    def _is_durable(self, effect, tick):
        if isinstance(effect, Data):
            return effect.durable < tick
        return effect.committed < tick if self._ordered else all(d < tick for d in effect.durable)

    def _choices(self, optional, draw, limit):
        """Which optional effects survive, and how: effect -> APPLY, SIZE, or blocks (a tuple of them)."""
        names = [e for e in optional if isinstance(e, Names)]
        data = [e for e in optional if isinstance(e, Data)]
        writes = [e for e in data if e.size is None]
        whole = dict.fromkeys(optional, APPLY)
        yield {}
        yield whole
        for some in [names[:i] for i in range(1, len(names) + 1)] if self._ordered else [names]:
            yield dict.fromkeys(some, APPLY)
            yield dict.fromkeys(some, APPLY) | dict.fromkeys(writes, SIZE)
            yield dict.fromkeys(some + data, APPLY)
        for effect in optional:
            yield {effect: APPLY}
            yield {e: APPLY for e in optional if e is not effect}
        for i, effect in enumerate(data):
            yield dict.fromkeys(names + data[:i], APPLY)
        for effect in writes:
            blocks = self._blocks(effect)
            yield whole | {effect: SIZE}
            yield whole | {effect: tuple(range(blocks // 2))}
            yield dict.fromkeys(names, APPLY) | {effect: tuple(range(draw.randint(0, blocks)))}
        for _ in range(limit):
            share = draw.random()
            yield {e: self._any(e, draw) for e in optional if draw.random() < share}

    def _any(self, effect, draw):
        if isinstance(effect, Names) or effect.size is not None:
            return APPLY
        blocks = self._blocks(effect)
        return draw.choice([APPLY, APPLY, SIZE, tuple(range(draw.randint(0, blocks))),
                            tuple(b for b in range(blocks) if draw.random() < 0.5)])

    def _blocks(self, write):
        """How many blocks of its file a write touches."""
        return -(-(write.offset + len(write.data)) // self._block) - write.offset // self._block

    def _applied(self, fixed, optional, chosen):
        """The choice, made possible: names that are journaled in order end with the first that is lost."""
        applied, gone = dict.fromkeys(fixed, APPLY), False
        for effect in optional:
            if isinstance(effect, Names) and self._ordered:
                gone = gone or effect not in chosen
                if gone:
                    continue
            if effect in chosen:
                how = chosen[effect]
                if isinstance(how, tuple):  # blocks are counted from the first that the write touches
                    how = APPLY if len(how) == self._blocks(effect) else how
                applied[effect] = how
        return applied

    def _names(self, applied, tick):
        """folder -> its names, by the effects that were applied and the changes that are durable by themselves."""
        changed = {}
        for effect in self._effects:
            if not isinstance(effect, Names) or effect.call.begin >= tick:
                continue
            for (folder, name, node), durable in zip(effect.changes, effect.durable):
                if effect in applied or (durable < tick and not self._ordered):
                    entries = changed.setdefault(folder, dict(folder.original))
                    entries[name] = node
                    if node is None:
                        del entries[name]
        return lambda folder: changed.get(folder, folder.original)

    @staticmethod
    def _contents(applied):
        """file -> its effects that were applied, and how."""
        contents = {}
        for effect, how in applied.items():
            if isinstance(effect, Data):
                contents.setdefault(effect.file, []).append((effect, how))
        for effects in contents.values():
            effects.sort(key=lambda pair: pair[0].call.begin)
        return contents

    def _bytes(self, file, contents):
        content = bytearray(file.original)
        for effect, how in contents.get(file, ()):
            if how == APPLY:
                effect.apply(content)
            elif how == SIZE:
                if effect.grows and len(content) < effect.offset + len(effect.data):
                    content.extend(bytes(effect.offset + len(effect.data) - len(content)))
            else:
                self._apply_blocks(effect, how, content)
        return bytes(content)

    def _apply_blocks(self, effect, blocks, content):
        """Some blocks of a write. Its size is there as far as the last of them."""
        first = effect.offset // self._block
        for block in blocks:
            begin = max(effect.offset, (first + block) * self._block)
            end = min(effect.offset + len(effect.data), (first + block + 1) * self._block)
            content.extend(bytes(max(0, end - len(content)) if effect.grows else 0))
            piece = effect.data[begin - effect.offset:end - effect.offset]
            content[begin:end] = piece if effect.grows else piece[:max(0, len(content) - begin)]

    def _look(self, names, contents):
        """What a tree looks like from outside: two choices may come to the same."""
        def digest(file):
            key = (id(file), tuple((id(e), how) for e, how in contents.get(file, ())))
            if key not in self._digests:
                self._digests[key] = hashlib.blake2b(self._bytes(file, contents), digest_size=16).digest()
            return self._digests[key]
        return tuple(sorted((path, repr(node)) for path, node in walk(self._replay.root, names, digest)))

    @staticmethod
    def _describe(effect, how):
        torn = "" if how is None else " (zeros)" if how == SIZE else f" (torn, {len(how)} blocks kept)"
        return f"{effect.call}{torn}"
