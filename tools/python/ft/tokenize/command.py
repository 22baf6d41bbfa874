"""The program ft-tokenize."""
import os
import pathlib
import signal
import sys

from ..errors import DataError
from .options import parsed, words_of

NEEDED = ("numpy", "tokenizers", "xxhash", "jinja2")


def need_packages():
    """DataError with what to install, where a package is not there."""
    import importlib.util
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise DataError(f"needs the Python packages {', '.join(missing)}: pip install {' '.join(missing)}, or the extra [tokenize] of ft: pip install "
                        f"\"tools/python[tokenize]\"", 2)


def main(words=None):
    """Runs the program; returns its exit status: 0 done, 2 usage, 65 bad input, 74 the system refused."""
    def stop(*_):
        raise SystemExit(143)
    try:
        signal.signal(signal.SIGTERM, stop)
        options = parsed(sys.argv[1:] if words is None else words)
        need_packages()
        run(options, sys.stdout)
        sys.stdout.flush()
        return 0
    except DataError as error:
        return complain(str(error), error.status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 74
    except OSError as error:
        return complain(f"{error.filename or 'files beside the output'}: {error.strerror or error}", 74)
    except MemoryError:
        return complain("out of memory; divide the text into smaller documents (--documents), or take fewer --processes", 74)
    except KeyboardInterrupt:
        return 130


def complain(text, status):
    line = " ".join(text.split())
    sys.stderr.write("ft-tokenize: " + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line) + "\n")
    return status


def tokenize_files(files, output, tokenizer, keywords):
    """What ft.tokenize is."""
    need_packages()
    words = words_of({**({"tokenizer": os.fspath(tokenizer)} if tokenizer is not None else {}), **keywords})
    try:
        return written(parsed([*words, f"--output={os.fspath(output)}", "--", *map(os.fspath, files)]))
    except OSError as error:
        raise DataError(f"{error.filename or output}: {error.strerror or error}", 74) from None


def run(options, output):
    from .data import Data
    from .show import show
    if options.verify is not None:
        verify(options, output)
        return
    if options.output is None:
        if not options.show or not options.files:
            wrong("nothing to write: -o data.ftd says where (or --verify FILE, --show=N FILE.ftd)")
        for path in options.files:
            show(Data(path), options.show, output)
        return
    done = written(options)
    output.write(line_of(done) + "\n")
    if options.show:
        if options.to != "ftd":
            wrong(f"--show prints .ftd files, and {options.output} is none; it was written")
        show(Data(options.output), options.show, output)


def verify(options, output):
    from .data import Data
    files = [options.verify] * bool(options.verify) + options.files
    if not files or options.output is not None:
        wrong("--verify names no file" if not files else "--verify writes nothing, and -o was given")
    wanted = loaded(options).hash if options.tokenizer else None
    for path in files:
        data = Data(path).verify()
        if wanted not in (None, data.metadata["tokenizer_hash"]):
            raise DataError(f"{path}: whole, but of another tokenizer: its hash is {data.metadata['tokenizer_hash'] or 'not said'}, that of "
                            f"{options.tokenizer} {wanted}")
        output.write(summary(data) + ": whole, all checksums agree\n")


def wrong(text):
    raise DataError(text, 2)


def summary(data):
    return line_of({"path": data.path, "documents": data.documents.size - 1, "tokens": data.tokens.size, "type": data.dtype("tokens"), **data.metadata})


def line_of(done):
    left_out = "".join(f"; {count:,} {what}" for what, count in done.get("left_out", {}).items() if count)
    labelled = f"vocabulary {done['vocabulary_size']}" + (f" {done['tokenizer_hash']}" if done["tokenizer_hash"] else "")
    counts = f"{int(done['documents']):,} documents, {int(done['tokens']):,} tokens ({done['type']}), {int(done['counted']):,} count"
    return f"{done['path']}: {done['kind']}, {counts}, {labelled}{left_out}"


def written(options):
    """Writes the output; returns a dict of what is in it."""
    from . import build, convert
    from .readers import format_of
    if options.prompt is not None:
        if options.files:
            wrong("--prompt=TEXT is the whole input, and files were named, too")
        return build.prompt(options, loaded(options))
    if not options.files:
        wrong("no file to read")
    for path in options.files:
        if os.path.exists(options.output) and os.path.exists(path) and os.path.samefile(path, options.output):
            wrong(f"{path} is to be read and written")
    if not (pathlib.Path(options.output).absolute().parent).is_dir():
        raise DataError(f"{options.output}: its folder does not exist", 74)
    files = [(path, format_of(path, options.form)) for path in options.files]
    raw = [form in ("text", "jsonl", "parquet") for _, form in files]
    if all(raw) and not options.documents.for_text:
        wrong(f"--documents={options.documents.text} is for files of tokens, and {files[0][0]} is text")
    if not any(form == "text" for _, form in files) and options.documents.name in ("line", "blank-line", "separator"):
        wrong(f"--documents={options.documents.text} is for files of text, and there is none: {files[0][0]} is {files[0][1]}")
    if all(raw):
        if options.to != "ftd":
            wrong(f"--to={options.to}: text becomes .ftd first, and that another format: ft-tokenize data.ftd -o {options.output} --to={options.to}")
        return build.texts(options, loaded(options), files)
    if any(raw):
        raise DataError(f"{files[raw.index(True)][0]} is text, and {files[raw.index(False)][0]} is tokens; they do not make one file")
    if options.tokenizing or options.loss_on not in (None, "all"):
        wrong(f"{(options.tokenizing or ['--loss-on=' + str(options.loss_on)])[0]} is for text and records, and {files[0][0]} has tokens ({files[0][1]})")
    return convert.convert(options, loaded(options) if options.tokenizer else None, files, options.output)


def loaded(options):
    from .tokenizer import Tokenizer
    if options.tokenizer is None:
        wrong("--tokenizer=DIR is missing: a folder of transformers, or a tokenizer.json")
    return Tokenizer(options.tokenizer)
