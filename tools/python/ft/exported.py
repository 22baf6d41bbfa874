"""From a module to model.mlir and weights."""
import pathlib

import torch
from torch.utils import _pytree as pytree

from .capture import captured, quiet
from .errors import Error, Problem
from .interpreter import Graph
from .parameters import Parameter, Parameters
from .signature import arguments_of, inputs_of, loss_of, named_outputs, is_number
from .text import quoted


class Exported:
    """A module as text and tensors. `text` is model.mlir, `weights` its parameters by the state dict's names, `inputs` what its data has (each with
    `name`, `shape`, `element`, `constant`), `unread` the parameters that the loss does not depend on: these are no part of the model."""

    def __init__(self, text, weights, inputs, unread):
        self.text, self.weights, self.inputs, self.unread = text, weights, inputs, unread

    def save(self, folder):
        """Writes model.mlir and weights.safetensors (for ftexec --init) into a folder, which is made. Returns its path."""
        from safetensors.torch import save_file
        if meta := [name for name, tensor in self.weights.items() if tensor.is_meta]:
            raise Error(f"{meta[0]} has no elements (it is on the device meta); write .text alone, or give the module weights")
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.mlir").write_text(self.text)
        weights = {name: tensor.detach().float().cpu().contiguous().clone() for name, tensor in self.weights.items()}
        save_file(weights, folder / "weights.safetensors", metadata={"format": "pt"})
        return folder

    def save_examples(self, path, examples):
        """Writes a data file (safetensors) of examples by input name, as many rows in each tensor as there are examples; types become those of the model."""
        from safetensors.torch import save_file
        unknown = set(examples) - {each.name for each in self.inputs}
        missing = {each.name for each in self.inputs} - set(examples)
        if unknown or missing:
            raise Error(f"examples have {sorted(examples)}, the model's inputs are {[each.name for each in self.inputs]}")
        tensors = {each.name: examples[each.name].detach().to("cpu", each.dtype).contiguous().clone() for each in self.inputs}
        save_file(tensors, path)


def export_module(module, example_inputs, kwargs=None, *, names=None, constants=(), outputs=(), vocab_size=None):
    """See ft.export."""
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        raise Error(f"{type(module).__name__} is no torch.nn.Module that can be traced; write one whose forward calls it and returns the loss")
    args, kwargs = arguments_of(module, example_inputs, kwargs)
    program, problems = captured(module, args, kwargs)
    graph = Graph(program)
    graph.problems += problems
    parameters = Parameters(module, graph)
    inputs = inputs_of(module, args, kwargs, names or {}, set(constants))
    with quiet(), torch.no_grad():
        results = graph.run(program.graph_module, given(graph, program, module, parameters, inputs))
    graph.finish()
    result = returned(program, results)
    reported = chosen_outputs(graph, result, outputs)
    text = written(graph, parameters, inputs, reported, vocab_size)
    used = parameters.used()
    weights = {name: parameters.tensors[name] for name in used}
    return Exported(text, weights, inputs, [name for name in parameters.tensors if name not in weights])


def given(graph, program, module, parameters, inputs):
    """What each placeholder of the graph is."""
    signature, state = program.graph_signature, {**program.constants, **program.state_dict}
    fixed = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    mutated = getattr(signature, "buffers_to_mutate", {})
    refuse_mutation(graph, mutated)
    values, rest = {}, iter(inputs)
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in signature.inputs_to_parameters:
            values[node] = Parameter(parameters, signature.inputs_to_parameters[node.name])
        elif node.name in fixed:
            values[node] = state[fixed[node.name]]
        elif node.name in signature.user_inputs and isinstance(node.meta.get("val"), torch.Tensor):
            values[node] = next(rest).value(graph)
        else:
            values[node] = node.meta.get("val")
    return values


def refuse_mutation(graph, mutated):
    for buffer in sorted(set(mutated.values())):
        graph.problems.append(Problem(f"buffer {buffer}", "", "the module changes it as it runs, and a model has no state but its parameters; "
                                                             "leave the change out (batch norm: use another norm)"))


def returned(program, results):
    """What the module returns, in its own structure."""
    outputs = program.graph_signature.output_specs
    users = [value for spec, value in zip(outputs, results) if spec.kind.name == "USER_OUTPUT"]
    return pytree.tree_unflatten(users, program.call_spec.out_spec)


def chosen_outputs(graph, result, outputs):
    """[(name, scalar Value)], the loss first."""
    name, loss = loss_of(result)
    named, chosen = dict(named_outputs(result)), [("", loss)]
    for each in outputs:
        if each not in named or not is_number(named[each]):
            raise Error(f"output {each} is no number that the module returns; these are: {[n for n, v in named.items() if is_number(v) and n != name]}")
        chosen.append((each, named[each]))
    return [(name, graph.reshape(graph.value(value), ())) for name, value in chosen]


def written(graph, parameters, inputs, reported, vocab_size):
    function = graph.function
    function.results = [value for _, value in reported]
    arguments = [*(each.argument() for each in inputs), *graph.constants.arguments(function.live())]
    results = ", ".join("tensor<f32>" if not name else f"tensor<f32> {{ft.output = {quoted(name)}}}" for name, _ in reported)
    live = {line.body.split("(")[0].strip() for line in function.live() if line.name == "call"}
    private = "".join(composite(each) for each in graph.functions if f"@{each.name}" in live)
    attributes = f" attributes {{ft.vocab_size = {vocab_size} : i64}}" if vocab_size else ""
    return (f"module{attributes} {{\n{parameters.declarations()}{private}  func.func @forward({', '.join(arguments)})\n      -> ({results}) {{\n"
            f"{function.body()}  }}\n}}\n")


def composite(function):
    """What constants are made by."""
    arguments = ", ".join(f"{value.name}: {value.type}" for value in function.arguments)
    result = f"({function.results[0].type} {{ft.statistic}})"
    return f"  func.func private @{function.name}({arguments}) -> {result} attributes {{ft.composite}} {{\n{function.body()}  }}\n"
