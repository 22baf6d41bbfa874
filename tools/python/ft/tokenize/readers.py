"""Files of text, JSONL and Parquet as chunks of raw documents, a bounded number of bytes at a time."""
import gzip
import io
import pathlib
import zlib

from ..errors import DataError

CHUNK = 1 << 19
TEXT_BLOCK = 1 << 20
LLMC_MAGIC = (20240520, 20240801)
BINARY = {b"PK\x03\x04": "a ZIP archive", b"\x93NUMPY": "NumPy's", b"ARROW1": "Arrow's", b"\x89HDF": "HDF5", b"%PDF": "a PDF", b"\xfd7zXZ": "xz's",
          b"BZh": "bzip2's",
          b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class Chunk:
    """Documents of a file that are worked on together. `form` is "text", "jsonl" or "rows"; items are (place, content): offsets or numbers of lines with
    bytes, numbers of rows with dicts. `consumed` counts bytes of the file."""

    def __init__(self, path, form, items, consumed):
        self.path, self.form, self.items, self.consumed = path, form, items, consumed


def format_of(path, asked):
    """The format of a file, by `--from`, its name, or the bytes it begins with."""
    name = pathlib.Path(path).name.lower()
    for ending in (".gz", ".zst"):
        name = name[:-len(ending)] if name.endswith(ending) else name
    if asked != "auto":
        return "u16" if asked == "nanogpt" else asked
    by_name = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".ftd": "ftd", ".u16": "u16", ".u32": "u32", ".idx": "megatron", ".txt": "text",
               ".md": "text"}
    if (ending := pathlib.Path(name).suffix) in by_name:
        return by_name[ending]
    begin = first_bytes(path)
    if begin[:4] == b"PAR1":
        return "parquet"
    if int.from_bytes(begin[:4], "little") in LLMC_MAGIC:
        return "llmc"
    if ending == ".bin":
        return "megatron" if pathlib.Path(path).with_suffix(".idx").is_file() else "u16"
    for magic, what in BINARY.items():
        if begin.startswith(magic):
            raise DataError(f"{path}: {what} format, which is not read; text, JSONL and Parquet are")
    if ending == ".json":
        if begin.lstrip()[:1] == b"[":
            raise DataError(f"{path}: a JSON document, a list; make lines of it, one object each (jq -c '.[]' FILE > FILE.jsonl)")
        return "jsonl"
    return "text"


def first_bytes(path):
    try:
        with opened(path) as file:
            return file.read(64)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip: {error}") from None


def opened(path):
    """A binary file; what is compressed with gzip or zstd is unpacked by its name."""
    try:
        if pathlib.Path(path).is_dir():
            raise DataError(f"{path}: a folder; name its files", 74)
        if str(path).endswith(".zst"):
            return unpacked_zstd(path)
        return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}", 74) from None


def unpacked_zstd(path):
    try:
        import zstandard
    except ImportError:
        raise DataError(f"{path}: reading zstd needs the package zstandard: pip install zstandard", 2) from None
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(open(path, "rb"), read_across_frames=True, closefd=True), TEXT_BLOCK)


def stepper(file):
    """A function that says how many bytes of the disk were read since it was asked last."""
    on_disk, last = getattr(file, "fileobj", None) or file, 0
    if not on_disk.seekable():
        return lambda: 0  # a pipe

    def step():
        nonlocal last
        before, last = last, on_disk.tell()
        return last - before
    return step


def chunks_of(path, form, options):
    """Chunks of a file in the order of its documents."""
    if form == "parquet":
        yield from rows_of(path, options)
        return
    with opened(path) as file:
        try:
            pieces = lines_of(file) if form == "jsonl" else documents_of(file, options.documents)
            yield from grouped(path, form, pieces, stepper(file))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path}: damaged gzip: {error}") from None
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}", 74) from None
        except Exception as error:
            if type(error).__name__ != "ZstdError":  # of a package that may not be there
                raise
            raise DataError(f"{path}: damaged zstd: {error}") from None


def grouped(path, form, pieces, step):
    items, size = [], 0
    for place, content in pieces:
        items.append((place, content))
        size += len(content)
        if size >= CHUNK:
            yield Chunk(path, form, items, step())
            items, size = [], 0
    if items:
        yield Chunk(path, form, items, step())


def lines_of(file):
    """(number, bytes) of lines that are not blank. A byte order mark at the beginning is none of JSON's."""
    for number, line in enumerate(file, 1):
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        if line.strip():
            yield number, line


def documents_of(file, rule):
    """(offset, bytes) of the documents of a text file. What separates them is in none; empty ones are left out."""
    if rule.name == "file":
        content = file.read()
        if content:
            yield 0, content
    elif rule.name == "line":
        offset = 0
        for line in file:
            if text := line.rstrip(b"\n").rstrip(b"\r"):
                yield offset, text
            offset += len(line)
    elif rule.name == "blank-line":
        yield from paragraphs_of(file)
    else:
        yield from separated(file, rule.separator)


def paragraphs_of(file):
    """Documents between lines that are empty, or of blanks alone. The line end of a document's last line is none of it."""
    begin, offset, lines = 0, 0, []
    for line in file:
        if line.strip(b" \t\r\n"):
            begin = begin if lines else offset
            lines.append(line)
        elif lines:
            yield begin, b"".join(lines).rstrip(b"\r\n")
            lines = []
        offset += len(line)
    if lines:
        yield begin, b"".join(lines).rstrip(b"\r\n")


def separated(file, separator):
    """Documents between separators. Looks at each byte once, however long a document is."""
    rest, offset, seen = bytearray(), 0, 0
    while block := file.read(TEXT_BLOCK):
        rest += block
        while (end := rest.find(separator, seen)) >= 0:
            if rest[:end].strip(b"\r\n"):
                yield offset, bytes(rest[:end])
            offset += end + len(separator)
            del rest[:end + len(separator)]
            seen = 0
        seen = max(len(rest) - len(separator) + 1, 0)
    if rest.strip(b"\r\n"):
        yield offset, bytes(rest)


def rows_of(path, options):
    """Rows of Parquet as dicts of the columns that records may have."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{path}: reading Parquet needs the package pyarrow: pip install pyarrow (or the extra [parquet])", 2) from None
    wanted = {options.text_key, options.label_key, "messages", "conversations", "prompt", "completion", "instruction", "input", "output", "tools",
              "chat_template_kwargs"}
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            names = table.schema_arrow.names
            columns = [name for name in names if name in wanted]
            if not columns:
                raise DataError(f"{path}: has the columns {', '.join(names[:12])}; none of them is {options.text_key!r} (--text-key=NAME), 'messages' or "
                                f"'prompt'")
            number, total = 0, max(table.metadata.num_rows, 1)
            share = pathlib.Path(path).stat().st_size / total
            for batch in table.iter_batches(batch_size=512, columns=columns):
                rows = batch.to_pylist()
                yield Chunk(path, "rows", [(number + i + 1, row) for i, row in enumerate(rows)], round(share * len(rows)))
                number += len(rows)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise DataError(f"{path}: {error.strerror or 'no such file'}", 74) from None
        raise DataError(f"{path}: damaged Parquet: {first_line(error)}") from None
    except (pyarrow.ArrowException, ValueError) as error:
        raise DataError(f"{path}: damaged Parquet, or none: {first_line(error)}") from None


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0]
