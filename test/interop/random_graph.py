"""Random forward graphs of primitives, as model.mlir and as a function of PyTorch."""
import random
import re

import torch

# Points of a graph at which derivatives jump are this far away, or the graph is drawn again: f32 and f64 must be on one side.
MARGIN = 1e-3


class Kink(Exception):
    """A value too close to where a derivative jumps, or where f32 and f64 are far apart."""


def apart(distances):
    if distances.numel() and float(distances.detach().abs().min()) < MARGIN:
        raise Kink


def tensor(shape, element="f32"):
    return "tensor<" + "".join(f"{n}x" for n in shape) + element + ">"


class Value:
    def __init__(self, name, shape):
        self.name, self.shape, self.type = name, tuple(shape), tensor(shape)


def maximum(a, b):
    apart(a - b)
    return torch.maximum(a, b)


def minimum(a, b):
    apart(a - b)
    return torch.minimum(a, b)


def kinked(function, *places):
    def evaluate(x):
        for place in places:
            apart(x - place)
        return function(x)
    return evaluate


def of_angle(function):
    """f32 has a large angle with an absolute error that the derivatives of what made it multiply."""
    def evaluate(x):
        if x.numel() and float(x.detach().abs().max()) > 16:
            raise Kink
        return function(x)
    return evaluate


def extreme(kind, dims):
    def evaluate(x):
        for dim in dims:  # the two best of each line
            if x.shape[dim] > 1:
                best = x.topk(2, dim, largest=kind == "max").values
                apart(best.narrow(dim, 0, 1) - best.narrow(dim, 1, 1))
        return x.amax(dims) if kind == "max" else x.amin(dims)
    return evaluate


# Name and parameters in model.mlir -> what PyTorch has for it. All keep numbers of order 1 what they are.
UNARY = {
    "neg": torch.neg, "square": torch.square, "sin": of_angle(torch.sin), "cos": of_angle(torch.cos), "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "erf": torch.erf, "normal_cdf": torch.special.ndtr, "sign": kinked(torch.sign, 0), "abs": kinked(torch.abs, 0),
    "relu": kinked(torch.relu, 0), "floor": kinked(torch.floor, *range(-40, 40)),
    ("scale", "-0.75"): lambda x: x * -0.75, ("shift", "0.5"): lambda x: x + 0.5, ("pow", "3.0"): lambda x: x ** 3.0,
    "silu": torch.nn.functional.silu, "squared_relu": kinked(lambda x: torch.relu(x) ** 2, 0),
    ("soft_cap", "1.5"): lambda x: 1.5 * torch.tanh(x / 1.5), ("clamp", "-0.5, 0.75"): kinked(lambda x: x.clamp(-0.5, 0.75), -0.5, 0.75),
}
# Of what is at least 1/2.
POSITIVE = {
    "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
    ("pow", "1.7"): lambda x: x ** 1.7, ("pow", "-0.5"): lambda x: x ** -0.5,
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": maximum, "minimum": minimum,
    "geglu": lambda a, b: torch.nn.functional.gelu(a) * b, "geglu_tanh": lambda a, b: torch.nn.functional.gelu(a, approximate="tanh") * b,
}
# Composites of the dialect on [..., width], which take part.
COMPOSITES = {
    'ft.gelu {x} approximate "tanh" : {t}': lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    'ft.gelu {x} approximate "none" : {t}': torch.nn.functional.gelu,
    "ft.softmax {x} : {t}": lambda x: torch.softmax(x, -1),
    "ft.swiglu {x}, {x} : {t}": lambda x: torch.nn.functional.silu(x) * x,
}


class RandomGraph:
    """`text` is model.mlir, `parameters` the names and shapes; `loss(parameters, tokens, targets)` is the same in PyTorch."""

    def __init__(self, seed, batch=2, positions=3, vocabulary=256):
        self.random = random.Random(seed)
        self.batch, self.positions, self.vocabulary = batch, positions, vocabulary
        self.lines, self.steps, self.parameters, self.counter = [], [], {}, 0
        self.functions, self.types, self.values = [], {"%tokens": tensor((batch, positions), "i32")}, {}
        self.loose = []  # second results of calls
        self.layer = "embed"
        width = self.random.choice([1, 3, 4, 7])
        values = [self.embed(width)]
        for layer in range(self.random.randint(1, 3)):
            self.layer = f"h.{layer}"
            for _ in range(self.random.randint(2, 6)):
                values.append(self.random.choice(self.MOVES)(self, self.pick(values + self.loose)))
            values = [self.joined(values[-1], values[0])]
        self.layer = "head"
        self.text = self.finish(values[-1])

    # ---- building

    def emit(self, text, shape, evaluate, element="f32"):
        """A line of the graph; {layer = ...} goes before the types. `evaluate` takes the values so far."""
        self.counter += 1
        value = Value(f"%v{self.counter}", shape)
        value.type = self.types[value.name] = tensor(shape, element)
        self.values[value.name] = value
        op, types = text.rsplit(" : ", 1) if " : " in text else (text, "")
        self.lines.append(f'    {value.name} = {op} {{layer = "{self.layer}"}} : {types}')
        self.steps.append((value.name, evaluate))
        return value

    def parameter(self, shape):
        name = f"{self.layer}.w{len(self.parameters)}"
        self.parameters[name] = (tuple(shape), self.layer)
        return self.emit(f"ft.get @{name} : {tensor(shape)}", shape, lambda env: env[name])

    def embed(self, width):
        table = self.parameter((self.vocabulary, width))
        shape = (self.batch, self.positions, width)
        return self.emit(f"ft.embedding %tokens, {table.name} : (tensor<{self.batch}x{self.positions}xi32>, {table.type}) -> {tensor(shape)}",
                         shape, lambda env: env[table.name][env["tokens"]])

    def pick(self, values):
        return self.random.choice(values)

    def simple(self, text, value, shape, function):
        return self.emit(text, shape, lambda env: function(env[value.name]))

    def row(self, op, value, function):
        name, parameters = op if isinstance(op, tuple) else (op, "")
        return self.simple(f"ft.{name} {value.name}{', ' + parameters if parameters else ''} : {value.type}", value, value.shape, function)

    def unary(self, value):
        return self.row(*self.with_function(UNARY, value))

    def with_function(self, table, value):
        op = self.random.choice(list(table))
        return op, value, table[op]

    def positive(self, value):
        above = self.row(("shift", "0.5"), self.row("square", value, torch.square), lambda x: x + 0.5)
        return self.row(*self.with_function(POSITIVE, above))

    def exponential(self, value):
        return self.row("exp", self.row("tanh", value, torch.tanh), torch.exp)

    def binary(self, a):
        b = self.parameter(self.random.choice([a.shape, a.shape[1:], a.shape[2:], ()]) if a.shape else ())
        if self.random.random() < 0.5:
            a, b = b, a
        shape = max(a.shape, b.shape, key=len)
        op = self.random.choice([*BINARY, "div"])
        if op == "div":
            b = self.row(("shift", "1.0"), self.row("square", b, torch.square), lambda x: x + 1.0)
        function = BINARY.get(op, torch.div)
        return self.emit(f"ft.{op} {a.name}, {b.name} : {a.type}, {b.type}", shape, lambda env: function(env[a.name], env[b.name]))

    def composite(self, value):
        if not value.shape:
            return value
        text = self.random.choice(list(COMPOSITES))
        return self.simple(text.format(x=value.name, t=value.type), value, value.shape, COMPOSITES[text])

    def call(self, value):
        """Some of the other moves as a function that is called."""
        begin, last = len(self.lines), value
        for _ in range(self.random.randint(1, 4)):
            last = self.random.choice(self.MOVES)(self, last)
        inside = [line for line in self.lines[begin:] if " = ft.get " not in line]
        made = [name for line in inside for name in re.findall(r"%\w+", line.split(" = ")[0])]
        if last.name not in made:
            return last
        captured = sorted(set(re.findall(r"%\w+", "\n".join(inside))) - set(made))
        others = [name for name in made if name != last.name and self.types[name].endswith("f32>")]
        given = [last.name] + (self.random.sample(others, 1) if others and self.random.random() < 0.5 else [])
        types = ", ".join(self.types[name] for name in given)
        name = f"@f{len(self.functions)}"
        self.functions.append(
            f"  func.func private {name}({', '.join(f'{each}: {self.types[each]}' for each in captured)}) -> ({types}) attributes "
            "{ft.composite} {\n" + "\n".join(inside) + f"\n    return {', '.join(given)} : {types}\n  }}\n")
        self.lines[begin:] = [line for line in self.lines[begin:] if line not in inside]
        self.lines.append(f"    {', '.join(given)} = ft.call {name}({', '.join(captured)}) {{layer = \"{self.layer}\"}} : "
                          f"({', '.join(self.types[each] for each in captured)}) -> ({types})")
        self.loose = [value for value in self.loose if value.name not in made]
        if len(given) == 2:
            self.loose.append(self.values[given[1]])
        return last

    def select(self, value):
        """By tokens, which f32 and f64 agree about."""
        if value.shape[:2] != (self.batch, self.positions):
            return value
        ids = tensor((self.batch, self.positions), "i32")
        rest = self.emit(f"ft.remainder %tokens, 3.0 : {ids}", value.shape[:2], lambda env: env["tokens"] % 3, "i32")
        one = self.emit("ft.fill 1.0 : tensor<f32>", (), lambda env: torch.ones((), dtype=torch.float64))
        floats = self.emit(f"ft.convert {rest.name} : {ids} -> {tensor(value.shape[:2])}", value.shape[:2],
                           lambda env: env[rest.name].double())
        truth = self.emit(f"ft.lt {floats.name}, {one.name} : {floats.type}, tensor<f32>", value.shape[:2],
                          lambda env: env[floats.name] < 1, "i1")
        ones = self.emit(f"ft.reshape {truth.name} : {truth.type} -> {tensor((*value.shape[:2], *[1] * (len(value.shape) - 2)), 'i1')}",
                         (*value.shape[:2], *[1] * (len(value.shape) - 2)),
                         lambda env: env[truth.name].reshape(*value.shape[:2], *[1] * (len(value.shape) - 2)), "i1")
        wide = self.emit(f"ft.broadcast {ones.name} : {ones.type} -> {tensor(value.shape, 'i1')}", value.shape,
                         lambda env: env[ones.name].expand(value.shape), "i1")
        other = self.row("square", value, torch.square)
        return self.emit(f"ft.select {wide.name}, {value.name}, {other.name} : {wide.type}, {value.type}, {other.type}", value.shape,
                         lambda env: torch.where(env[wide.name], env[value.name], env[other.name]))

    def transpose(self, value):
        order = list(range(len(value.shape)))
        self.random.shuffle(order)
        return self.simple(f"ft.transpose {value.name} {order} : {value.type} -> {tensor([value.shape[i] for i in order])}", value,
                           [value.shape[i] for i in order], lambda x: x.permute(order))

    def reshape(self, value):
        shape = list(value.shape) + [1]
        self.random.shuffle(shape)
        return self.simple(f"ft.reshape {value.name} : {value.type} -> {tensor(shape)}", value, shape, lambda x: x.reshape(shape))

    def slice(self, value):
        begin = [self.random.randrange(n) for n in value.shape]
        shape = [self.random.randint(1, n - b) for n, b in zip(value.shape, begin)]
        box = tuple(slice(b, b + n) for b, n in zip(begin, shape))
        return self.simple(f"ft.slice {value.name} at {begin} : {value.type} -> {tensor(shape)}", value, shape, lambda x: x[box])

    def pad(self, value):
        low = [self.random.randint(0, 1) for _ in value.shape]
        shape = [n + b + self.random.randint(0, 1) for n, b in zip(value.shape, low)]

        def evaluate(x):
            result = torch.zeros(shape, dtype=x.dtype)
            result[tuple(slice(b, b + n) for b, n in zip(low, value.shape))] = x
            return result
        return self.simple(f"ft.pad {value.name} at {low} : {value.type} -> {tensor(shape)}", value, shape, evaluate)

    def concat(self, value):
        if not value.shape:
            return value
        axis = self.random.randrange(len(value.shape))
        shape = [n * 2 if i == axis else n for i, n in enumerate(value.shape)]
        other = self.row("cos", value, of_angle(torch.cos))
        return self.emit(f"ft.concat {value.name}, {other.name} axis {axis} : {value.type}, {other.type} -> {tensor(shape)}", shape,
                         lambda env: torch.cat([env[value.name], env[other.name]], axis))

    def reduce(self, value):
        dims = sorted(self.random.sample(range(len(value.shape)), self.random.randint(0, min(2, len(value.shape)))))
        kind = self.random.choice(["sum", "max", "min"]) if len(dims) == 1 else "sum"
        shape = [n for i, n in enumerate(value.shape) if i not in dims]
        function = (lambda x: x.sum(dims) if dims else x) if kind == "sum" else extreme(kind, dims)
        reduced = self.simple(f'ft.reduce "{kind}" {value.name} over {dims} : {value.type} -> {tensor(shape)}', value, shape, function)
        return self.row("tanh", reduced, torch.tanh)

    def broadcast(self, value):
        if len(value.shape) > 3:
            return value
        shape = (2, *(3 if n == 1 else n for n in value.shape))
        return self.simple(f"ft.broadcast {value.name} : {value.type} -> {tensor(shape)}", value, shape, lambda x: x.expand(shape))

    def dot(self, value):
        if len(value.shape) < 2:
            return value
        *lead, m, k = value.shape
        n, ta, tb = self.random.choice([1, 2, 5]), self.random.random() < 0.5, self.random.random() < 0.5
        rows, summed = (k, m) if ta else (m, k)
        b = self.parameter((*lead, n, summed) if tb else (*lead, summed, n))
        product = self.emit(
            f"ft.dot {value.name}, {b.name}{' transpose_a' if ta else ''}{' transpose_b' if tb else ''} : {value.type}, {b.type} -> "
            f"{tensor((*lead, rows, n))}", (*lead, rows, n),
            lambda env: (env[value.name].mT if ta else env[value.name]) @ (env[b.name].mT if tb else env[b.name]))
        return self.row("tanh", product, torch.tanh)

    def cumsum(self, value):
        if not value.shape:
            return value
        reverse = self.random.random() < 0.5
        sums = self.simple(f"ft.cumsum {value.name}{' reverse' if reverse else ''} : {value.type} -> {value.type}", value, value.shape,
                           lambda x: x.flip(-1).cumsum(-1).flip(-1) if reverse else x.cumsum(-1))
        return self.row("tanh", sums, torch.tanh)

    def top_k(self, value):
        """The largest of each line, and where they were the sums of lines of zeros and them."""
        if not value.shape:
            return value
        columns, kept = value.shape[-1], self.random.randint(1, value.shape[-1])
        descending = self.random.random() < 0.5
        shape = (*value.shape[:-1], kept)

        def order(x):
            ordered = x.detach().sort(-1).values
            apart(ordered[..., 1:] - ordered[..., :-1])
            return x.argsort(-1, descending=descending)[..., :kept]
        ids = self.emit(f"ft.argsort {value.name}{' descending' if descending else ''} : {value.type} -> {tensor(shape, 'i32')}", shape,
                        lambda env: order(env[value.name]), "i32")
        best = self.emit(f"ft.gather_elements {value.name}, {ids.name} : {value.type}, {ids.type} -> {tensor(shape)}", shape,
                         lambda env: env[value.name].gather(-1, env[ids.name]))
        return self.emit(f"ft.scatter_add_elements {best.name}, {ids.name} : {best.type}, {ids.type} -> {value.type}", value.shape,
                         lambda env: torch.zeros(value.shape, dtype=torch.float64).scatter_add(-1, env[ids.name], env[best.name]))

    def experts(self, value):
        """Rows in groups whose sizes are counted from the tokens, each times a matrix of its own."""
        if len(value.shape) < 2:
            return value
        rows, columns, n = torch.Size(value.shape[:-1]).numel(), value.shape[-1], self.random.choice([1, 3])
        flat = self.simple(f"ft.reshape {value.name} : {value.type} -> {tensor((rows, columns))}", value, (rows, columns),
                           lambda x: x.reshape(rows, columns))
        w = self.parameter((3, columns, n))
        ids = tensor((self.batch, self.positions), "i32")
        rest = self.emit(f"ft.remainder %tokens, 3.0 : {ids}", (self.batch, self.positions), lambda env: env["tokens"] % 3, "i32")
        counts = self.emit(f"ft.histogram {rest.name} : {ids} -> tensor<3xi32>", (3,),
                           lambda env: env[rest.name].flatten().bincount(minlength=3), "i32")
        ends = self.emit(f"ft.cumsum {counts.name} : tensor<3xi32> -> tensor<3xi32>", (3,), lambda env: env[counts.name].cumsum(0), "i32")

        def product(env):
            parts, begin = [], 0
            for group, end in enumerate(min(end, rows) for end in env[ends.name].tolist()):
                parts.append(env[flat.name][begin:end] @ env[w.name][group])
                begin = end
            return torch.cat([*parts, torch.zeros((rows - begin, n), dtype=torch.float64)])
        result = self.emit(f"ft.grouped_dot {flat.name}, {w.name}, {ends.name} : {flat.type}, {w.type}, tensor<3xi32> -> {tensor((rows, n))}",
                           (rows, n), product)
        return self.row("tanh", result, torch.tanh)

    MOVES = [unary, unary, unary, positive, exponential, binary, binary, binary, composite, select, transpose, reshape, slice, pad,
             concat, reduce, reduce, broadcast, dot, dot, cumsum, top_k, experts, call, call, call, call]

    def joined(self, value, residual):
        """[batch, positions, width] again: a residual sum with what `value` comes to in all."""
        total = self.simple(f'ft.reduce "sum" {value.name} over {list(range(len(value.shape)))} : {value.type} -> tensor<f32>', value,
                            (), lambda x: x.sum())
        bounded = self.row("tanh", total, torch.tanh)
        # In the shape of the residual where it has so many elements, so that gradients differ from element to element.
        same = value
        if torch.Size(value.shape).numel() == torch.Size(residual.shape).numel():
            same = self.simple(f"ft.reshape {value.name} : {value.type} -> {residual.type}", value, residual.shape,
                               lambda x: x.reshape(residual.shape))
        other = same if same.shape == residual.shape else bounded
        return self.emit(f"ft.add {residual.name}, {other.name} : {residual.type}, {other.type}", residual.shape,
                         lambda env: env[residual.name] + env[other.name])

    def finish(self, value):
        head = self.parameter((self.vocabulary, value.shape[-1]))
        ids, logits = tensor((self.batch, self.positions), "i32"), tensor((self.batch, self.positions, self.vocabulary))
        product = self.emit(f"ft.matmul {value.name}, {head.name} transpose_b : ({value.type}, {head.type}) -> {logits}",
                            (self.batch, self.positions, self.vocabulary), lambda env: env[value.name] @ env[head.name].T)
        self.emit(f"ft.cross_entropy {product.name}, %targets : ({logits}, {ids}) -> tensor<f32>", (),
                  lambda env: torch.nn.functional.cross_entropy(env[product.name].flatten(0, -2), env["targets"].flatten()))
        symbols = "".join(f'  ft.parameter @{name} : {tensor(shape)} = #ft.init<normal, 0.5> {{layer = "{layer}"}}\n'
                          for name, (shape, layer) in self.parameters.items())
        return (f"module {{\n{symbols}{''.join(self.functions)}  func.func @forward(%tokens: {ids}, %targets: {ids}) -> tensor<f32> {{\n" + "\n".join(self.lines) +
                f"\n    return %v{self.counter} : tensor<f32>\n  }}\n}}\n")

    # ---- in PyTorch

    def loss(self, parameters, tokens, targets):
        env = dict(parameters, tokens=tokens, targets=targets)
        for name, evaluate in self.steps:
            env[name] = evaluate(env)
        return env[self.steps[-1][0]]
