"""Functions with a backward of their own. torch.export sees their forward alone, whose derivative the model has: they are taken where both
are the same, which is tried with numbers."""
import contextlib
import traceback

import torch

from .errors import Problem
from .places import is_users, shortened


@contextlib.contextmanager
def own_derivatives():
    """Gathers who is called in the meantime: a list of (class, arguments as described(), place)."""
    before, found = torch.autograd.Function.__dict__["apply"], []

    def apply(cls, *args, **kwargs):
        if not cls.__module__.startswith("torch."):
            frames = [frame for frame in traceback.extract_stack() if is_users(frame.filename)]
            where = f"{shortened(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
            found.append((cls, [described(arg) for arg in args], where))
        return before.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield found
    finally:
        torch.autograd.Function.apply = before


def described(arg):
    """Shape and type of a tensor, which has no elements now; else the argument."""
    return (tuple(arg.shape), arg.dtype) if isinstance(arg, torch.Tensor) else arg


def wrong_derivatives(found):
    """A Problem for each class whose backward is not the derivative of its forward."""
    problems, seen = [], set()
    for cls, arguments, where in found:
        if cls not in seen and not is_derivative(cls, arguments):
            advice = "its backward is not the derivative of its forward; write it with plain ops, and detach() what has no gradient"
            problems.append(Problem(f"autograd.Function {cls.__name__}", where, advice))
        seen.add(cls)
    return problems


def is_derivative(cls, arguments):
    try:
        own, plain = gradients(cls.apply, arguments), gradients(lambda *args: without_class(cls, args), arguments)
    except Exception:
        return False
    return all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(own, plain))


def without_class(cls, args):
    """Its forward as plain ops."""
    has_context = cls.setup_context is torch.autograd.Function.setup_context
    return cls.forward(*([Context()] if has_context else []), *args)


class Context:
    """What a forward writes to, and nobody reads."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        pass

    mark_dirty = set_materialize_grads = save_for_forward = mark_non_differentiable


def gradients(function, arguments):
    """Of random numbers of the arguments' shapes, results weighed so that no element is like another."""
    generator, tensors = torch.Generator().manual_seed(0), []
    for each in arguments:
        if isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], torch.dtype):
            shape, dtype = each
            each = torch.randn(shape, generator=generator).requires_grad_() if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)
        tensors.append(each)
    floats = [each for each in tensors if isinstance(each, torch.Tensor) and each.requires_grad]
    with torch.enable_grad():
        results = function(*tensors)
        results = [each for each in (results if isinstance(results, tuple) else [results]) if isinstance(each, torch.Tensor) and each.requires_grad]
        total = sum((each * torch.cos(torch.arange(each.numel()).reshape(each.shape) * 0.7)).sum() for each in results)
        found = torch.autograd.grad(total, floats, allow_unused=True)
    return [torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(floats, found)]
