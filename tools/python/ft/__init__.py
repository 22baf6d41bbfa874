"""ft from Python: modules of PyTorch as model.mlir (export), text as tokens (tokenize), and the programs of ft for scripts and notebooks.

Nothing here imports PyTorch but export and load_checkpoint, when they are called.
"""
from . import tokenize
from .errors import DataError, Error, ExportError, Problem, ProgramError
from .programs import compile, explain, load_checkpoint, report, train, tune, use_programs
from .tokenize import open_data


def export(module, example_inputs, kwargs=None, *, names=None, constants=(), outputs=(), vocab_size=None):
    """A torch.nn.Module with a loss as text and weights.

    module           what it returns is the loss (a float without dimensions), or has it: as `.loss`, ["loss"], or its first number. It is taken as it is, in
                     training or evaluation; with dropout in training
    example_inputs   what it is called with: a tensor, a tuple, or a dict by name (kwargs beside a tuple). Shapes and types of the model are
                     those of the examples; the first dimension is the batch of a rank and micro-step
    names            other names for inputs, such as {"input_ids": "tokens"}: files of tokens fill `tokens` and `targets` (shifted by one)
    constants        inputs that are the same for all examples, and have no batch
    outputs          numbers beside the loss, by name, that evaluation reports

    Returns an Exported: .text, .weights, .inputs, .save(folder), .save_examples(path, examples). Raises ExportError, which lists all that the
    module does and a model cannot, with file and line.
    """
    from .exported import export_module
    return export_module(module, example_inputs, kwargs, names=names, constants=constants, outputs=outputs, vocab_size=vocab_size)
