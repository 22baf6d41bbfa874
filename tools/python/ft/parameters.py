"""Parameters of a module: names as in its state dict, ties, what is frozen, how they begin."""
import torch

from .text import quoted, real, type_of


class Parameter:
    """One of them by name, read anew in each layer that uses it."""

    def __init__(self, parameters, name):
        self.parameters, self.name = parameters, name

    def value(self):
        return self.parameters.value(self.name)


class Parameters:
    """Hands out Values of parameters, and keeps which the model reads."""

    def __init__(self, module, graph):
        self.graph, self.tensors, self.names, self.aliases, self.layers, self.read, self.got = graph, {}, {}, {}, {}, [], {}
        for name, tensor in module.named_parameters(remove_duplicate=False):
            first = self.names.setdefault(id(tensor), name)
            self.tensors.setdefault(first, tensor)
            if first != name:
                self.aliases.setdefault(first, []).append(name)

    def value(self, name):
        """Of a name or an alias, read in the layer at hand."""
        first = self.names[id(self.of(name))]
        graph = self.graph
        if first not in self.layers:
            self.layers[first] = graph.layers.named(first.rpartition(".")[0]) or graph.place.layer or graph.layers.latest
            self.read.append(first)
        return graph.get(first, tuple(self.tensors[first].shape))

    def of(self, name):
        if name in self.tensors:
            return self.tensors[name]
        return self.tensors[next(first for first, others in self.aliases.items() if name in others)]

    def used(self):
        """Those that lines of the model read, in the module's order."""
        live = {line.details["parameter"] for line in self.graph.function.live() if line.name == "get"}
        return [name for name in self.tensors if name in live]

    def declarations(self):
        return "".join(self.declaration(name) for name in self.used())

    def declaration(self, name):
        tensor, attributes = self.tensors[name], [f"layer = {quoted(self.layers[name])}"]
        if name in self.aliases:
            attributes.append(f"aliases = [{', '.join(map(quoted, self.aliases[name]))}]")
        attributes += ["frozen"] * (not tensor.requires_grad) + ["no_decay"] * (tensor.dim() < 2)
        return (f"  ft.parameter @{quoted(name)} : {type_of(tensor.shape, 'f32')} = {beginning(name, tensor)} "
                f"{{{', '.join(attributes)}}}\n")


def beginning(name, tensor):
    """What a run without weights begins with: one number where all are the same, else a normal distribution as wide as what is there."""
    if tensor.is_meta:
        if tensor.dim() < 2:
            return f"#ft.init<constant, {'0.0' if name.endswith('bias') else '1.0'}>"
        return "#ft.init<normal, 0.02>"
    flat = tensor.detach().float().flatten()
    if bool((flat == flat[0]).all()):
        return f"#ft.init<constant, {real(flat[0])}>"
    width = flat.std(correction=0).item()
    return f"#ft.init<normal, {real(float(f'{width:.3g}'))}>" if torch.isfinite(flat).all() else "#ft.init<normal, 0.02>"
