"""ft-tokenize: text as tokens, with what counts for the loss, in one container (.ftd).

`ft.tokenize(...)` is the function, `ft-tokenize` and `python -m ft.tokenize` the program. Importing this needs nothing but Python.
"""
import sys
import types


def run(files, output, *, tokenizer=None, **options):
    """`ft-tokenize`: writes `output` of a file or a list of them, and returns a dict of what was written (documents, tokens, counted ...).

    tokenizer   a folder of transformers, or a tokenizer.json
    options     those of `ft-tokenize --help`, with underscores: chat_template="chat.jinja", append_eos="off", max_length=2048, processes=2 ...
    Raises DataError with the line that the program would print.
    """
    from .command import tokenize_files
    return tokenize_files([files] if isinstance(files, (str, bytes)) or hasattr(files, "__fspath__") else list(files), output, tokenizer, options)


def open_data(path):
    """An .ftd file, mapped: .tokens, .documents, .loss_mask (or None), .inputs, .vocabulary (or None), .metadata. DataError when it is damaged at sight;
    `.verify()` reads all of it."""
    from .data import Data
    return Data(path)


class Callable(types.ModuleType):
    """This package is a function, too: ft.tokenize(...)."""

    def __call__(self, files, output, *, tokenizer=None, **options):
        return run(files, output, tokenizer=tokenizer, **options)


Callable.__call__.__doc__ = run.__doc__
sys.modules[__name__].__class__ = Callable
