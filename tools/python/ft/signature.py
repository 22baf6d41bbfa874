"""The inputs of a model by name, from a module's example inputs, and its loss among what the module returns."""
import inspect
import re

import torch
from torch.utils import _pytree as pytree

from .errors import Error
from .text import Value, quoted, type_of

# What ftexec means by these names; of i32 [batch, sequence], where files of tokens fill them.
TOKENS = ("tokens", "targets", "positions", "segments", "lengths")
RESERVED = ("lr", "step", "rng", "scaler", "inverse_ranks", "loss", "loss_sum", "grad_norm")
STORED = {torch.int64: "i64", torch.bool: "i1", torch.bfloat16: "bf16", **dict.fromkeys([torch.int32, torch.int16, torch.int8, torch.uint8], "i32"),
          **dict.fromkeys([torch.float32, torch.float64, torch.float16], "f32")}
DTYPES = {"i64": torch.int64, "i32": torch.int32, "i1": torch.bool, "bf16": torch.bfloat16, "f32": torch.float32}


class Input:
    """An input of the model: `name`, `element` ("i32", "i64", "f32", "bf16", "i1"), `shape`, the first extent of which is the batch unless it is `constant`."""

    def __init__(self, name, tensor, constant):
        self.name, self.shape, self.constant = name, tuple(tensor.shape), constant
        self.element = "i32" if name in TOKENS and not tensor.is_floating_point() else STORED.get(tensor.dtype)
        if self.element is None:
            raise Error(f"input {name} is of {tensor.dtype}; inputs are floats, integers and truth values")

    @property
    def dtype(self):
        return DTYPES[self.element]

    def argument(self):
        constant = ", ft.constant" * self.constant
        return f"%{self.name}: {type_of(self.shape, self.element)} {{ft.input = {quoted(self.name)}{constant}}}"

    def value(self, graph):
        """What rows of the table read: f32, i32 or i1."""
        value = Value(f"%{self.name}", self.shape, self.element)
        if self.element == "i64":
            return graph.convert(value, "i32")
        if self.element == "bf16":
            return graph.new("copy", [value], f" {value.name}", [(self.shape, "f32")], f"{value.type} -> {type_of(self.shape, 'f32')}")
        return value


def arguments_of(module, example_inputs, kwargs):
    """(args, kwargs) of a call: a tensor, a tuple, or a dict by name."""
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    if isinstance(example_inputs, dict) or hasattr(example_inputs, "keys"):
        example_inputs, kwargs = (), {**example_inputs, **(kwargs or {})}
    # In the order of forward's parameters, as the graph has them.
    order = list(inspect.signature(module.forward).parameters)
    place = lambda name: order.index(name) if name in order else len(order)
    kwargs = dict(sorted((kwargs or {}).items(), key=lambda pair: place(pair[0])))
    return apart(tuple(example_inputs), kwargs)


def apart(args, kwargs):
    """The same with a tensor of its own for each input: one that is given twice, as ids and as labels, would be one input of the graph."""
    seen, (leaves, structure) = set(), pytree.tree_flatten((args, kwargs))
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            leaves[i] = leaf.clone() if id(leaf) in seen else leaf
            seen.add(id(leaf))
    return pytree.tree_unflatten(leaves, structure)


def inputs_of(module, args, kwargs, names, constants):
    """An Input for each tensor of a call, in the order of the graph's placeholders."""
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    positional, found, own_names = {}, [], []
    for name, value in bound.arguments.items():
        kind = inspect.signature(module.forward).parameters[name].kind
        values = enumerate(value) if kind is inspect.Parameter.VAR_POSITIONAL else value.items() if kind is inspect.Parameter.VAR_KEYWORD else [("", value)]
        for key, each in values:
            label = name if key == "" else f"{name}_{key}" if isinstance(key, int) else key
            positional[label] = each
    for label, value in positional.items():
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            if isinstance(leaf, torch.Tensor):
                own = "_".join([label, *(re.sub(r"\W", "", str(key)) for key in path)])
                found.append((names.get(own, own), leaf))
                own_names.append(own)
    refuse_unknown("names", names, own_names)
    refuse_unknown("constants", constants, [name for name, _ in found])
    return checked([(name, leaf, name in constants) for name, leaf in found])


def refuse_unknown(option, given, known):
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise Error(f"{option} has {unknown}, but the inputs are {known}")


def checked(found):
    batch = next((leaf.shape[0] for _, leaf, constant in found if not constant and leaf.dim()), None)
    for name, leaf, constant in found:
        if not re.fullmatch(r"[A-Za-z_]\w{0,63}", name) or name in RESERVED:
            raise Error(f"an input cannot be called {name!r}; give it another name: export(..., names={{{name!r}: ...}})")
        if not constant and (not leaf.dim() or leaf.shape[0] != batch):
            raise Error(f"input {name} is {tuple(leaf.shape)}, but the batch is {batch}; an input that is the same for all examples is named in "
                        f"export(..., constants=[{name!r}])")
    if len({name for name, _, _ in found}) != len(found):
        raise Error(f"two inputs have one name: {', '.join(sorted(name for name, _, _ in found))}; rename one: export(..., names=...)")
    return [Input(name, leaf, constant) for name, leaf, constant in found]


def loss_of(result):
    """(path, value) of the loss: the result, its `loss`, or its first number."""
    named = named_outputs(result)
    scalars = [(name, value) for name, value in named if is_number(value)]
    chosen = [pair for pair in scalars if pair[0] == "loss"] or scalars
    if not chosen:
        kinds = ", ".join(f"{name or 'result'} {tuple(value.shape)}" for name, value in named if hasattr(value, "shape")) or type(result).__name__
        raise Error(f"the module returns no loss, a number: {kinds}; return it, or an object whose .loss it is (transformers: give it labels)")
    return chosen[0]


def named_outputs(result):
    if isinstance(result, dict) or hasattr(result, "items"):
        return [(str(name), value) for name, value in result.items() if value is not None]
    if isinstance(result, (tuple, list)) and not hasattr(result, "_fields"):
        return [(f"output_{i}", value) for i, value in enumerate(result)]
    if hasattr(result, "_asdict"):
        return list(result._asdict().items())
    if hasattr(result, "__dict__") and not isinstance(result, Value):
        return [(name, value) for name, value in vars(result).items() if value is not None]
    return [("loss", result)]


def is_number(value):
    """A float without dimensions, or of one element."""
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and value.numel() == 1
    return isinstance(value, Value) and value.element == "f32" and all(extent == 1 for extent in value.shape)
