"""The walk over a captured graph: each op that an input or a parameter reaches is said by its row of the table, everything else is computed."""
import math
import operator

import torch
from torch.utils import _pytree as pytree

from . import aten  # fills the table
from .builder import Builder
from .constants import Constants
from .errors import ExportError, Problem, Unsupported
from .parameters import Parameter
from .places import Layers, module_of, source_of
from .registry import find
from .text import Value

ELEMENTS = {torch.bool: "i1", **dict.fromkeys([torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], "i32"),
            **dict.fromkeys([torch.float32, torch.float64, torch.bfloat16, torch.float16], "f32")}
SKIPPED = ("_assert", "sym_constrain_range", "_assert_tensor_metadata", "_set_grad_enabled")
EXTENTS = {torch.ops.aten.sym_size.int: lambda x, axis: x.shape[axis], torch.ops.aten.sym_numel.default: lambda x: math.prod(x.shape)}
# Functions of functions that only change how PyTorch computes: inlined.
INLINED = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4, "tag_activation_checkpoint": 0, "wrap": 0, "invoke_subgraph": 0}


def element_of(dtype):
    if dtype not in ELEMENTS:
        raise Unsupported(f"tensors of {dtype} are not taken; use floats, integers or truth values")
    return ELEMENTS[dtype]


class Extents:
    """What torch.export does not know of shapes though no input decides it, such as how much a known mask takes: learned on the way."""

    def __init__(self):
        self.numbers = {}  # by symbol

    def learn(self, wanted, result):
        if isinstance(wanted, torch.Tensor) and hasattr(result, "shape"):
            for extent, number in zip(wanted.shape, result.shape):
                if isinstance(extent, torch.SymInt) and extent.node.expr.is_symbol and isinstance(number, int):
                    self.numbers[extent.node.expr] = number

    def known(self, wanted):
        return pytree.tree_map(self.replaced, wanted)

    def replaced(self, wanted):
        if not isinstance(wanted, torch.Tensor) or is_known(wanted):
            return wanted
        extents = [extent if isinstance(extent, int) else extent.node.expr.subs(self.numbers) for extent in wanted.shape]
        if not all(isinstance(extent, int) or extent.is_number for extent in extents):
            return wanted
        return torch.empty([int(extent) for extent in extents], dtype=wanted.dtype, device="meta")


def by_known_masks(name, args):
    return name == "aten.index.Tensor" and not any(isinstance(ids, Value) for ids in args[1])


class Graph(Builder):
    """What rows of the table write to. `output` is the example tensor (or tuple of them) that PyTorch has for the op in hand."""

    def __init__(self, program):
        super().__init__()
        self.program, self.problems, self.output, self.node = program, [], None, None
        self.constants, self.extents = Constants(self), Extents()
        nodes = [node for node in program.graph.nodes if node.op == "call_function"]
        self.layers = Layers([module_of(node) for node in nodes])

    @property
    def shape(self):
        return tuple(self.output.shape)

    @property
    def element(self):
        return element_of(self.output.dtype)

    def value(self, x, element=None, shape=None):
        """A Value of x: itself, a constant tensor, or a number."""
        if isinstance(x, torch.Tensor):
            x = self.constants.say(x)
        elif not isinstance(x, Value):
            x = self.scalar(x, element or ("i1" if isinstance(x, bool) else "i32" if isinstance(x, int) else "f32"))
        x = self.convert(x, element) if element else x
        return self.broadcast(x, shape) if shape is not None else x

    # ---- the walk

    def run(self, graph_module, given):
        """Results of a graph whose placeholders have the values `given` (by node, or a list in order)."""
        known, results = {}, None
        look_up = lambda tree: pytree.tree_map(lambda x: self.read(known[x]) if isinstance(x, torch.fx.Node) else x, tree)
        given = iter(given) if not isinstance(given, dict) else given
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                known[node] = given[node] if isinstance(given, dict) else next(given)
            elif node.op == "get_attr":
                known[node] = attribute(graph_module, node.target)
            elif node.op == "output":
                results = look_up(node.args[0])
            else:
                self.place = self.layers.place(node)
                known[node] = self.step(node, look_up(list(node.args)), look_up(dict(node.kwargs)))
        return results

    @staticmethod
    def read(value):
        """Parameters are read where they are used."""
        return value.value() if isinstance(value, Parameter) else value

    def step(self, node, args, options):
        if node.target is operator.getitem:
            return args[0][args[1]] if args[0] is not None and args[0] is not UNKNOWN else args[0]
        if node.target in EXTENTS:
            return UNKNOWN if args[0] is UNKNOWN else EXTENTS[node.target](*args)
        if any(word in str(node.target) for word in SKIPPED):
            return None
        if isinstance(wanted := node.meta.get("val"), torch.Tensor) and any(isinstance(extent, int) and extent == 0 for extent in wanted.shape):
            return torch.zeros(wanted.shape, dtype=wanted.dtype)
        leaves = pytree.tree_leaves((args, options))
        if any(leaf is UNKNOWN for leaf in leaves):
            return self.guarded(node, lambda: self.looked_up(node))
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return self.guarded(node, lambda: self.inline(node, args))
        if any(isinstance(leaf, Value) for leaf in leaves):
            return self.guarded(node, lambda: self.emit(node, args, options))
        return self.guarded(node, lambda: self.computed(node, args, options))

    def guarded(self, node, action):
        """Its result, or a stand-in where it is not taken: the walk goes on, so that all of what is not taken is found."""
        try:
            return action()
        except Unsupported as error:
            problem = Problem(find(node.target)[0], "{}:{}".format(*source_of(node)) if source_of(node) else "", str(error))
            if str(problem) not in map(str, self.problems):
                self.problems.append(problem)
            wanted = node.meta.get("val")
            return [stand_in(each) for each in wanted] if isinstance(wanted, (tuple, list)) else stand_in(wanted)

    def looked_up(self, node):
        """Of an op whose operands are not known whether it is taken at all."""
        _, function, advice = find(node.target)
        if isinstance(node.target, torch._ops.OpOverload) and (advice is not None or function is None):
            raise Unsupported(advice or NO_ROW)
        return UNKNOWN

    def computed(self, node, args, options):
        """No input reaches it: its value is known now. What it came from is kept, to be said shorter than by its elements."""
        if not isinstance(node.target, torch._ops.OpOverload) and any(arg is None for arg in args):
            return None  # of extents that are not known, which were skipped
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Unsupported("random numbers other than dropout's are not taken; draw them outside, as an input")
        result = node.target(*args, **options)
        self.extents.learn(node.meta.get("val"), result)
        if isinstance(result, torch.Tensor):
            self.constants.remember(result, node, args, options)
        return result

    def emit(self, node, args, options):
        name, function, advice = find(node.target)
        if advice is not None or function is None:
            raise Unsupported(advice or NO_ROW)
        wanted = self.extents.known(node.meta.get("val"))
        if any(not is_known(each) for each in pytree.tree_leaves(wanted)) and not by_known_masks(name, args):
            raise Unsupported("its shape depends on the values of tensors; use masks and torch.where")
        before = self.output, self.node, self.place
        self.output, self.node, self.place = wanted, node, self.layers.place(node)
        try:
            result = function(self, *args, **options)
            self.extents.learn(node.meta.get("val"), result)
            self.output = self.extents.known(wanted)
            self.check(result)
        except (TypeError, ValueError, IndexError) as error:
            raise Unsupported(f"its operands are of a kind that is not taken ({error})") from error
        finally:
            self.output, self.node, self.place = before
        return result

    def check(self, result):
        """Shapes and elements are PyTorch's: a mistake of a row is found here, not in a plan."""
        for value, wanted in zip(result if isinstance(result, (tuple, list)) else [result], self.outputs()):
            if isinstance(value, Value) and isinstance(wanted, torch.Tensor):
                if value.shape != tuple(wanted.shape) or value.element != element_of(wanted.dtype):
                    raise Unsupported(f"said as {value.type}, but PyTorch has {wanted.dtype} {tuple(wanted.shape)}")

    def outputs(self):
        return self.output if isinstance(self.output, (tuple, list)) else [self.output]

    def inline(self, node, args):
        name = str(node.target)
        if name not in INLINED:
            raise Unsupported("control flow and functions of functions are not taken; write plain code")
        at = INLINED[name]
        body = next(arg for arg in args[at:] if isinstance(arg, torch.nn.Module))
        rest = args[args.index(body) + 1:]
        if name == "invoke_subgraph":
            rest = rest[1:]
        results = self.run(body, rest)
        if name == "wrap_with_set_grad_enabled" and args[0] is False:
            detach = lambda x: self.map("stop_gradient", x) if isinstance(x, Value) and x.element == "f32" else x
            results = pytree.tree_map(detach, results)
        return results

    def finish(self):
        if self.problems:
            raise ExportError(self.problems)


UNKNOWN = object()  # what an op that is not taken would give, of a shape that is not known
NO_ROW = "there is no way to say it yet; write it with other ops"


def stand_in(wanted):
    """For what an op that is not taken would give: so what comes behind it is looked at, too."""
    if isinstance(wanted, torch.Tensor) and is_known(wanted) and wanted.dtype in ELEMENTS:
        return Value("%none", wanted.shape, ELEMENTS[wanted.dtype])
    return UNKNOWN


def is_known(wanted):
    """Whether the shape of what PyTorch has is a number in each dimension."""
    return all(isinstance(extent, int) for extent in wanted.shape) if isinstance(wanted, torch.Tensor) else not isinstance(wanted, torch.SymInt)


def attribute(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module
