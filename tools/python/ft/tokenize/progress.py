"""A bar on standard error while files are tokenized, where that is a terminal."""
import pathlib
import sys
import time

WIDTH = 24
EVERY = 0.2  # seconds


def short(number):
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(int(number))


class Bar:
    """Counts bytes read, documents and tokens. `stream` is shown to only if it is a terminal."""

    def __init__(self, files, stream=None):
        self.stream = sys.stderr if stream is None else stream
        self.total = sum(pathlib.Path(path).stat().st_size for path in files if pathlib.Path(path).is_file())
        self.shown = self.stream is not None and self.stream.isatty()
        self.begin, self.last, self.read, self.documents, self.tokens = time.monotonic(), 0.0, 0, 0, 0

    def add(self, consumed, documents, tokens):
        self.read, self.documents, self.tokens = self.read + consumed, self.documents + documents, self.tokens + tokens
        now = time.monotonic()
        if self.shown and now - self.last >= EVERY:
            self.last = now
            self.stream.write("\r" + self.line(now - self.begin) + "\x1b[K")
            self.stream.flush()

    def line(self, seconds):
        share = min(self.read / self.total, 1.0) if self.total else 0.0
        full = int(share * WIDTH)
        rate = self.read / max(seconds, 1e-9)
        left = f"{(self.total - self.read) / rate:.0f} s left" if rate and self.total > self.read else "ending"
        bar = "#" * full + "." * (WIDTH - full)
        return f"[{bar}] {100 * share:3.0f}%  {self.documents:,} documents  {short(self.tokens)} tokens  {rate / 1e6:.1f} MB/s  {left}"

    def end(self):
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
