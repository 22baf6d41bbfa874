"""A module of PyTorch as model.mlir of primitives: what torch.export makes of it, op by op. For tests: only ops that their models have."""
import math

import torch
from torch.utils import _pytree as pytree

ELEMENT = {torch.float32: "f32", torch.int64: "i32", torch.int32: "i32", torch.bool: "i1"}
# Bent below what any score is; e^ of it is 0.
LOW = -1e30


def type_of(shape, element):
    return "tensor<" + "".join(f"{n}x" for n in shape) + element + ">"


def real(value):
    return f"{float(value):.9e}"


class Value:
    def __init__(self, name, shape, element):
        self.name, self.shape, self.element = name, tuple(shape), element

    @property
    def type(self):
        return type_of(self.shape, self.element)


class Exported:
    """`text` is the model; `inputs` what its data has by name, `constants` those of all examples, `parameters` the weights."""

    def __init__(self, module, example):
        self.lines, self.inputs, self.constants, self.parameters, self.arguments = [], {}, {}, {}, []
        self.values, self.folded = {}, {}
        self.tied = {p.data_ptr(): name for name, p in module.named_parameters()}  # one name each
        program = torch.export.export(module, example, strict=False).run_decompositions({})
        self.example = list(example)
        loss = self.walk(program)
        declared = "".join(f"  ft.parameter @{name} : {type_of(p.shape, 'f32')} = #ft.init<normal, 0.02> {{layer = \"main\"}}\n"
                           for name, p in self.parameters.items())
        self.text = ("module {\n" + declared + f"  func.func @forward({', '.join(self.arguments)}) -> tensor<f32> {{\n    "
                     + "\n    ".join(self.lines) + f"\n    return {loss.name} : tensor<f32>\n  }}\n}}\n")

    # ---- lines

    def op(self, text, shape, element="f32", types=None):
        value = Value(f"%v{len(self.lines)}", shape, element)
        self.lines.append(f'{value.name} = {text} {{layer = "main"}} : {types or value.type}')
        return value

    def moved(self, text, x, shape):
        return self.op(text, shape, x.element, f"{x.type} -> {type_of(shape, x.element)}")

    def reshape(self, x, shape):
        return x if tuple(shape) == x.shape else self.moved(f"ft.reshape {x.name}", x, shape)

    def broadcast(self, x, shape):
        shape = tuple(shape)
        if x.shape == shape:
            return x
        x = self.reshape(x, (1,) * (len(shape) - len(x.shape)) + x.shape)
        return x if x.shape == shape else self.moved(f"ft.broadcast {x.name}", x, shape)

    def transpose(self, x, permutation):
        return self.moved(f"ft.transpose {x.name} {list(permutation)}", x, [x.shape[p] for p in permutation])

    def slice(self, x, dim, begin, end):
        shape = x.shape[:dim] + (end - begin,) + x.shape[dim + 1:]
        at = [begin if d == dim else 0 for d in range(len(shape))]
        return x if shape == x.shape else self.moved(f"ft.slice {x.name} at {at}", x, shape)

    def map(self, name, *operands, attributes="", element=None):
        shape = torch.broadcast_shapes(*(x.shape for x in operands))
        operands = [self.broadcast(x, shape) for x in operands]
        text = f"ft.{name} {', '.join(x.name for x in operands)}{attributes}"
        return self.op(text, shape, element or operands[-1].element, ", ".join(x.type for x in operands))

    def scale(self, x, factor):
        return self.map("scale", x, attributes=f", {real(factor)}")

    def shift(self, x, amount):
        return self.map("shift", x, attributes=f", {real(amount)}")

    def fill(self, value):
        return self.op(f"ft.fill {real(value)}", (), "f32")

    def sum(self, x, dims, keep):
        dims = sorted(d % len(x.shape) for d in dims)
        kept = [n for d, n in enumerate(x.shape) if d not in dims]
        y = self.moved(f'ft.reduce "sum" {x.name} over {dims}', x, kept)
        return self.reshape(y, [1 if d in dims else n for d, n in enumerate(x.shape)]) if keep else y

    def mean(self, x, dims, keep):
        return self.scale(self.sum(x, dims, keep), 1 / math.prod(x.shape[d] for d in dims))

    def convert(self, x, element):
        return x if x.element == element else self.op(f"ft.convert {x.name}", x.shape, element,
                                                      f"{x.type} -> {type_of(x.shape, element)}")

    def dot(self, a, b, transposed=False):
        shape = a.shape[:-1] + (b.shape[-2 if transposed else -1],)
        flag = " transpose_b" if transposed else ""
        return self.op(f"ft.dot {a.name}, {b.name}{flag}", shape, "f32", f"{a.type}, {b.type} -> {type_of(shape, 'f32')}")

    def embedding(self, table, ids):
        shape = ids.shape + table.shape[1:]
        return self.op(f"ft.embedding {ids.name}, {table.name}", shape, "f32", f"({ids.type}, {table.type}) -> {type_of(shape, 'f32')}")

    def argsort(self, x, count=None, descending=False):
        shape = x.shape[:-1] + (count or x.shape[-1],)
        return self.op(f"ft.argsort {x.name}{' descending' * descending}", shape, "i32", f"{x.type} -> {type_of(shape, 'i32')}")

    # ---- what PyTorch keeps whole

    def linear(self, x, w, bias=None):
        y = self.dot(self.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1])), w, transposed=True)
        y = self.reshape(y, x.shape[:-1] + (w.shape[0],))
        return y if bias is None else self.map("add", y, bias)

    def layer_norm(self, x, w, bias, eps):
        c = self.map("sub", x, self.mean(x, [-1], True))
        y = self.map("mul", c, self.map("rsqrt", self.shift(self.mean(self.map("square", c), [-1], True), eps)))
        return self.map("add", self.map("mul", y, w), bias)

    def gelu(self, x, approximate="none"):
        if approximate == "none":
            return self.map("mul", x, self.map("normal_cdf", x))
        inner = self.map("mul", x, self.shift(self.scale(self.map("square", x), 0.044715), 1))
        return self.map("mul", x, self.map("sigmoid", self.scale(inner, 2 * math.sqrt(2 / math.pi))))

    def attention(self, q, k, v, mask=None, causal=False, scale=None):
        scores = self.scale(self.dot(q, k, transposed=True), scale or 1 / math.sqrt(q.shape[-1]))
        if causal:
            mask = self.value_of(torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril())
        if mask is not None and mask.element == "i1":
            scores = self.map("select", self.broadcast(mask, scores.shape), scores, self.broadcast(self.fill(LOW), scores.shape))
        elif mask is not None:
            scores = self.map("add", scores, mask)
        return self.dot(self.op(f"ft.softmax {scores.name}", scores.shape), v)

    def cross_entropy(self, x, targets):
        return self.op(f"ft.cross_entropy {x.name}, {targets.name}", (), "f32", f"({x.type}, {targets.type}) -> tensor<f32>")

    # ---- what torch.export has

    def value_of(self, item):
        """Tensors that no input reaches are inputs that are the same for all examples."""
        if not isinstance(item, torch.Tensor):
            return item
        if id(item) not in self.folded:
            name, element = f"constant_{len(self.constants)}", ELEMENT[item.dtype]
            stored = item.float() if element == "f32" else item
            stored = stored.clamp(min=LOW) if element == "f32" else stored
            self.constants[name] = stored.detach().to({"i32": torch.int32}.get(element, stored.dtype)).contiguous().clone()
            self.arguments.append(f'%{name}: {type_of(item.shape, element)} {{ft.input = "{name}", ft.constant}}')
            self.folded[id(item)] = (Value("%" + name, item.shape, element), item)
        return self.folded[id(item)][0]

    def placeholder(self, node, program):
        signature, state = program.graph_signature, {**program.constants, **program.state_dict}
        if (name := signature.inputs_to_parameters.get(node.name)) is not None:
            name = self.tied[state[name].data_ptr()]
            self.parameters[name] = state[name].detach()
            value = Value(f"%v{len(self.lines)}", state[name].shape, "f32")
            self.lines.append(f"{value.name} = ft.get @{name} : {value.type}")
            return value
        for names in (signature.inputs_to_buffers, signature.inputs_to_lifted_tensor_constants):
            if node.name in names:
                return state[names[node.name]]
        tensor = self.example.pop(0)
        element = ELEMENT[tensor.dtype]
        self.inputs[node.name] = tensor.int() if element == "i32" else tensor
        self.arguments.append(f'%{node.name}: {type_of(tensor.shape, element)} {{ft.input = "{node.name}"}}')
        return Value("%" + node.name, tensor.shape, element)

    def walk(self, program):
        values = self.values
        known = lambda tree: pytree.tree_map(lambda x: values[x] if isinstance(x, torch.fx.Node) else x, tree)
        for node in program.graph.nodes:
            if node.op == "placeholder":
                values[node] = self.placeholder(node, program)
            elif node.op == "get_attr":
                values[node] = getattr(program.graph_module, node.target)
            elif node.op == "output":
                return known(node.args[0])[0]
            else:
                args, options = known(list(node.args)), known(dict(node.kwargs))
                if not any(isinstance(x, Value) for x in pytree.tree_leaves((args, options))):
                    values[node] = node.target(*args, **options)
                    continue
                if "_assert" in str(node.target):
                    continue
                if "getitem" in str(node.target):
                    values[node] = args[0][args[1]]
                    continue
                args, options = pytree.tree_map(self.value_of, (args, options))
                values[node] = self.call(node, str(node.target).split(".")[1 if "." in str(node.target) else 0], args, options)
                wanted = node.meta.get("val")
                if isinstance(values[node], Value) and values[node].shape != tuple(wanted.shape):
                    raise AssertionError(f"{node.target} has shape {values[node].shape}, PyTorch has {tuple(wanted.shape)}")

    def number(self, x, like):
        return x if isinstance(x, Value) else self.fill(x) if like.element == "f32" else self.value_of(torch.tensor(x))

    def call(self, node, name, args, options):
        x, shape = args[0], getattr(node.meta.get("val"), "shape", None)
        if name in ("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze"):
            return self.reshape(x, shape)
        if name in ("clone", "alias", "contiguous", "detach", "empty_like", "dropout"):
            return x
        if name in ("_to_copy", "to", "type_as"):
            return self.convert(x, ELEMENT[node.meta["val"].dtype])
        if name == "expand":
            return self.broadcast(x, shape)
        if name in ("transpose", "t"):
            order = list(range(len(x.shape)))
            i, j = args[1:] or (0, 1)
            order[i], order[j] = order[j], order[i]
            return self.transpose(x, order)
        if name == "permute":
            return self.transpose(x, [d % len(x.shape) for d in args[1]])
        if name in ("add", "mul") and not isinstance(args[1], Value) and x.element == "f32":
            return (self.shift if name == "add" else self.scale)(x, args[1])
        if name in ("add", "sub", "mul", "div"):
            if name == "div" and not isinstance(args[1], Value):
                return self.scale(x, 1 / args[1])
            other = self.number(args[1], x if isinstance(x, Value) else args[1])
            return self.map(name, self.number(x, other), other)
        if name == "floor_divide":
            return self.map("floor_div", x, attributes=f", {real(args[1])}")
        if name in ("neg", "exp", "log", "tanh", "rsqrt", "abs", "square", "relu", "silu", "sigmoid", "sin", "cos"):
            return self.map(name, x)
        if name == "pow":
            return self.map("square", x) if args[1] == 2 else self.map("pow", x, attributes=f", {real(args[1])}")
        if name == "gelu":
            return self.gelu(x, **options)
        if name in ("softmax", "_softmax"):
            return self.op(f"ft.softmax {x.name}", x.shape)
        if name in ("mean", "sum"):
            return getattr(self, name)(x, args[1], bool(args[2:] and args[2]))
        if name == "layer_norm":
            return self.layer_norm(x, args[2], args[3], args[4])
        if name == "linear":
            return self.linear(*args)
        if name == "addmm":
            return self.map("add", self.dot(args[1], args[2]), x)
        if name in ("matmul", "bmm", "mm"):
            return self.dot(x, args[1])
        if name == "embedding":
            return self.embedding(x, args[1])
        if name == "scaled_dot_product_attention":
            mask = options.get("attn_mask", args[3] if len(args) > 3 else None)
            causal = options.get("is_causal", len(args) > 5 and args[5])
            return self.attention(*args[:3], mask=mask, causal=causal, scale=options.get("scale"))
        if name == "cross_entropy_loss":
            return self.cross_entropy(x, args[1])
        if name == "slice":
            dim, extent = args[1] if len(args) > 1 else 0, None
            extent = x.shape[dim]
            begin, end = (args[2] if len(args) > 2 else None) or 0, min(args[3] if len(args) > 3 else extent, extent)
            return self.slice(x, dim % len(x.shape), begin % extent if begin < 0 else begin, end % extent if end < 0 else end)
        if name == "select":
            dim = args[1] % len(x.shape)
            return self.reshape(self.slice(x, dim, args[2] % x.shape[dim], args[2] % x.shape[dim] + 1), shape)
        if name == "cat":
            axis = (args[1] if len(args) > 1 else 0) % len(shape)
            return self.op(f"ft.concat {', '.join(part.name for part in x)} axis {axis}", shape, x[0].element,
                           f"{', '.join(part.type for part in x)} -> {type_of(shape, x[0].element)}")
        if name in ("split", "split_with_sizes", "chunk", "unbind"):
            return self.parts(x, name, args, node.meta["val"])
        if name == "conv2d":
            return self.patches(x, args[1], args[2], args[3])
        if name in ("eq", "le", "gt", "ge", "ne", "lt"):
            return self.map(name, x, self.number(args[1], x), element="i1")
        if name in ("__and__", "bitwise_and", "logical_and"):
            return self.map("and", x, args[1])
        return self.choose(node, name, args, shape)

    def parts(self, x, name, args, wanted):
        if name == "unbind":
            dim = (args[1] if len(args) > 1 else 0) % len(x.shape)
            return [self.reshape(self.slice(x, dim, i, i + 1), wanted[i].shape) for i in range(x.shape[dim])]
        dim, begin, found = (args[2] if len(args) > 2 else 0) % len(x.shape), 0, []
        for part in wanted:
            found.append(self.slice(x, dim, begin, begin + part.shape[dim]))
            begin += part.shape[dim]
        return found

    def patches(self, x, w, bias, stride):
        """A convolution whose steps are as wide as its kernel."""
        out, channels, high, wide = w.shape
        if list(stride) != [high, wide]:
            raise NotImplementedError("conv2d")
        batch, rows, columns = x.shape[0], x.shape[2] // high, x.shape[3] // wide
        x = self.transpose(self.reshape(x, (batch, channels, rows, high, columns, wide)), [0, 2, 4, 1, 3, 5])
        y = self.linear(self.reshape(x, (batch, rows, columns, channels * high * wide)), self.reshape(w, (out, channels * high * wide)), bias)
        return self.transpose(y, [0, 3, 1, 2])

    def choose(self, node, name, args, shape):
        """Orders, counts and experts."""
        x = args[0]
        if name == "index":
            ids = [i for i in args[1] if i is not None]
            # A mask of positions, by ids that no input reaches: those of all in order.
            return self.embedding_of(x, ids[0]) if len(ids) == 1 and args[1][0] is not None else self.reshape(x, shape)
        if name == "topk":
            ids = self.argsort(x, args[1], descending=True)
            taken = self.op(f"ft.gather_elements {x.name}, {ids.name}", ids.shape, "f32", f"{x.type}, {ids.type} -> {type_of(ids.shape, 'f32')}")
            return [taken, ids]
        if name == "sort":
            ids = self.argsort(x)
            return [self.embedding_of(x, ids), ids]
        if name in ("argsort",):
            return self.argsort(x)
        if name in ("histc", "bincount"):
            x = self.convert(x, "i32")
            return self.op(f"ft.histogram {x.name}", shape, "i32", f"{x.type} -> {type_of(shape, 'i32')}")
        if name == "cumsum":
            return self.op(f"ft.cumsum {x.name}", x.shape, x.element, f"{x.type} -> {x.type}")
        if name == "index_put":  # 0, 1, 2, ... put at the places of a permutation: its inverse
            return self.argsort(args[1][0])
        if "grouped_mm" in name:
            rows = (x.shape[0], args[1].shape[-1])
            return self.op(f"ft.grouped_dot {x.name}, {args[1].name}, {args[2].name}", rows, "f32",
                           f"{x.type}, {args[1].type}, {args[2].type} -> {type_of(rows, 'f32')}")
        raise NotImplementedError(f"{node.target} of {[getattr(a, 'type', a) for a in args]}")

    def embedding_of(self, x, ids):
        """Rows of x, or elements where it is a vector."""
        if len(x.shape) > 1:
            return self.embedding(x, ids)
        return self.op(f"ft.gather_elements {x.name}, {ids.name}", ids.shape, x.element, f"{x.type}, {ids.type} -> {type_of(ids.shape, x.element)}")

