"""What goes wrong here. One class, Error, for who wants to catch all of it."""


class Error(RuntimeError):
    """Something that ft was asked for cannot be done; the message says what, where and what to do."""


class ProgramError(Error):
    """A program of ft is not there, or ended with an error; `status` is its exit status, or None."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class DataError(Error):
    """Data, or a tokenizer, that cannot be used. `status` is what `ft-tokenize` ends with: 65 bad input, 2 a wrong command line, 74 the system refused."""

    def __init__(self, message, status=65):
        super().__init__(message)
        self.status = status


class ExportError(Error):
    """A module that cannot be said as model.mlir. `problems` has everything that is wrong with it, not the first of it alone: each a Problem."""

    def __init__(self, problems):
        self.problems = list(problems)
        count = len(self.problems)
        head = "1 thing of this module cannot be exported:" if count == 1 else f"{count} things of this module cannot be exported:"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class Problem:
    """What cannot be taken (`what`, such as "aten.lstm.input"), where ("model.py:12", or ""), and what to do."""

    def __init__(self, what, where, advice):
        self.what, self.where, self.advice = what, where, advice

    def __str__(self):
        return f"{self.where + ': ' if self.where else ''}{self.what}: {self.advice}"


class Unsupported(Exception):
    """Raised by what says an op: the op, with these operands, is not taken. The walk over the graph adds op and place, and goes on."""
