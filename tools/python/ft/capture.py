"""The graph of a module: torch.export, then decomposed to core ATen but for what has an op, or a row, of its own here."""
import contextlib
import io
import logging
import re
import warnings

import torch

from .errors import ExportError, Problem
from .derivatives import own_derivatives, wrong_derivatives
from .places import is_users, shortened

# Kept whole: said by an op of the dialect, shorter or more exactly than by what PyTorch makes of them; or refused by name.
KEPT = """
linear scaled_dot_product_attention layer_norm rms_norm group_norm cross_entropy_loss nll_loss nll_loss_nd embedding dropout softmax.int log_softmax.int
gelu silu mish relu relu6 leaky_relu elu celu selu hardswish hardsigmoid hardtanh softplus log_sigmoid glu logsumexp linalg_vector_norm
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution
lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_tanh.data rnn_relu.input rnn_relu.data lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
batch_norm instance_norm _native_batch_norm_legit _native_batch_norm_legit_no_training _native_batch_norm_legit_functional native_batch_norm
bernoulli bernoulli.p rand rand_like randn randn_like randint normal multinomial alpha_dropout feature_dropout rrelu
std.correction var.correction addmm baddbmm masked_fill.Scalar masked_fill.Tensor square rsub.Scalar rsub.Tensor stack roll index_add repeat_interleave.self_int
detach one_hot tril triu softmax log_softmax flip floor_divide select_scatter slice_scatter binary_cross_entropy
""".split()


def decompositions():
    table = torch.export.default_decompositions()
    for name in KEPT:
        name, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, name, None)
        for each in [overload] if overload else (packet.overloads() if packet else []):
            if packet is not None and each in packet.overloads():
                table.pop(getattr(packet, each), None)
    return table


def captured(module, args, kwargs):
    """An ExportedProgram of functional ops, each with `stack_trace` and `nn_module_stack`, and what it says wrongly, a list of Problems. ExportError
    where PyTorch itself cannot make one."""
    with quiet(), hints_left_alone(), untouched(module), without_cache(module), own_derivatives() as functions:
        try:
            program = torch.export.export(module, tuple(args), dict(kwargs), strict=False)
            detach_what_has_no_gradient(program.graph_module)
            program = program.run_decompositions(decompositions())
        except Exception as error:
            raise ExportError([problem_of(error)]) from error
    return program, wrong_derivatives(functions)


@contextlib.contextmanager
def without_cache(module):
    """Modules of transformers return keys and values for generating, unless their config says no; they are no part of a loss."""
    configs = {id(config): config for part in module.modules() if getattr(config := getattr(part, "config", None), "use_cache", False) is True}
    for config in configs.values():
        config.use_cache = False
    try:
        yield
    finally:
        for config in configs.values():
            config.use_cache = True


def detach_what_has_no_gradient(module):
    """Decompositions write out what stands under torch.no_grad as if it stood nowhere: what goes in is detached before."""
    for part in module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in list(part.graph.nodes):
            if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled and node.args[0] is False:
                detach_operands(part.graph, node)
        part.recompile()


def detach_operands(graph, node):
    for operand in dict.fromkeys(arg for arg in node.args[2:] if isinstance(arg, torch.fx.Node)):
        value = operand.meta.get("val")
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            with graph.inserting_before(node):
                detached = graph.call_function(torch.ops.aten.detach.default, (operand,))
            detached.meta = {**node.meta, "val": value}
            node.replace_input_with(operand, detached)


@contextlib.contextmanager
def quiet():
    """Without the warnings and graphs that torch.export prints: what matters of them becomes a Problem."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def untouched(module):
    """What a module keeps of its own calls (masks made once, its last loss) is that of torch.export's tensors without values: it is taken back."""
    before = [(each, dict(vars(each)), dict(each._buffers), set(each._non_persistent_buffers_set)) for each in module.modules()]
    try:
        yield
    finally:
        for each, attributes, buffers, own in before:
            vars(each).clear()
            vars(each).update(attributes)
            each._buffers.clear()
            each._buffers.update(buffers)
            each._non_persistent_buffers_set.clear()
            each._non_persistent_buffers_set.update(own)


@contextlib.contextmanager
def hints_left_alone():
    """nn.Transformer looks into its masks for whether they are causal, which cannot be traced and is a hint alone: the mask counts."""
    from torch.nn.modules import transformer
    before = transformer._detect_is_causal_mask
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: is_causal is True
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = before


def problem_of(error):
    """What torch.export says, as one line, with the place in the module."""
    text = str(error)
    what = type(error).__name__
    depends = "DataDependent" in what or "data-dependent" in text or "unbacked" in text or "u0" in text
    if depends:
        advice = "control flow or a shape depends on the values of tensors; say it with masks, torch.where or fixed sizes"
        return Problem("data-dependent control flow", place_in(error, text), advice)
    first = next((line.strip() for line in text.splitlines() if line.strip()), what)
    return Problem(f"torch.export: {what}", place_in(error, text), f"PyTorch cannot trace this: {first[:300]}")


def place_in(error, text):
    """The innermost line of the module's own code: of the traceback, or of the one that the message quotes."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    frames = [(path, line) for path, line in frames if is_users(path)]
    quoted = [(path, int(line)) for path, line in re.findall(r'File "([^"]+)", line (\d+)', text) if is_users(path)]
    found = quoted or frames
    return "{}:{}".format(shortened(found[-1][0]), found[-1][1]) if found else ""
