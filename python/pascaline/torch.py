"""PyTorch: operators that torch.compile and torch.export see, modules, and models whose modules are replaced.

Each operator computes with the tuned kernels (`pascaline.ops`) what PyTorch's function of that name does. Where they cannot
(another element type, a mask, a kernel that cannot be built), PyTorch computes it: each reason is warned of once, and counted
in `stats()`. Derivatives are PyTorch's, which computes the function again for them.

On a GPU a call works on the current stream and returns when its kernel is queued, as PyTorch's functions do. Shapes that were
called before can be captured by `torch.cuda.graph`; of others, PyTorch's function is captured. A plain call, without a
derivative, compiling or tracing, goes to the kernels directly; every other one through PyTorch's dispatcher.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import textwrap
import threading
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad as _forward_ad
from torch.nn import functional as _functional

from . import ops as _ops
from . import packed as _packed
from ._errors import ArgumentError, DeviceLostError, Error, OutOfMemoryError

_LAYERNORM_EPSILON = 1e-6  # of the kernel


class FallbackWarning(UserWarning):
    """PyTorch computes something in place of a tuned kernel."""


@dataclasses.dataclass
class Stats:
    """Calls of each operator since the last `reset_stats`, and of these, how many PyTorch computed, by operator and reason."""

    calls: "Counter[str]" = dataclasses.field(default_factory=Counter)
    fallbacks: "Counter[tuple[str, str]]" = dataclasses.field(default_factory=Counter)


_stats = Stats()
_warned: set[tuple[str, str]] = set()


def stats() -> Stats:
    """A copy of the counts so far."""
    return Stats(Counter(_stats.calls), Counter(_stats.fallbacks))


def reset_stats() -> None:
    """Counts from 0 again, and warns again."""
    _stats.calls.clear()
    _stats.fallbacks.clear()
    _warned.clear()


class _Unsupported(Exception):
    """Why the kernels cannot compute a call."""


_OTHER = "a tensor is sparse or nested"


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise _Unsupported(reason)


_Parameter = torch.nn.Parameter
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_transforms: Callable[[], Any] = torch._C._functorch.peek_interpreter_stack
_is_traced: Callable[[], bool] = torch._C._is_tracing
_casts: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", torch.is_autocast_enabled)
_is_scripting: Callable[[], bool] = torch.jit.is_scripting
_NO_DISPATCH: Any = torch._C._disabled_torch_dispatch_impl  # of classes that leave an operator to PyTorch


def _is_plain(*tensors: Tensor) -> bool:
    """Whether a call concerns nobody but its caller: no derivative, transformation or graph of PyTorch's is being made, nothing
    is cast, and the tensors are of PyTorch's own classes."""
    if (torch.compiler.is_compiling() or _dispatch_modes() or _transforms() is not None or _is_traced() or _casts()
            or _forward_ad._current_level >= 0):
        return False
    derivatives = torch.is_grad_enabled()
    for tensor in tensors:
        kind = type(tensor)
        if (kind is not Tensor and kind is not _Parameter) or (derivatives and tensor.requires_grad):
            return False
    return True


def _has_tangent(x: Tensor) -> bool:
    """Whether derivatives in forward mode, or of torch.func, go through a tensor."""
    tracked: bool = torch._C._functorch.is_gradtrackingtensor(x)
    return tracked or (_forward_ad._current_level >= 0 and _forward_ad.unpack_dual(x).tangent is not None)


def _is_other(tensor: Any) -> bool:
    """Whether it is a tensor without one place in memory for each element: sparse, nested."""
    return isinstance(tensor, Tensor) and (tensor.layout is not torch.strided or tensor.is_nested)


def _dispatches(tensor: Any) -> bool:
    """Whether its class says itself what PyTorch's operators do with it, as DTensor does, and so knows no others."""
    return isinstance(tensor, Tensor) and type(tensor).__torch_dispatch__ is not _NO_DISPATCH


def _require_tensors(name: str, tensors: dict[str, Any]) -> None:
    """Raises for what is no tensor, of which None would be taken as one that is not there, and no stand-in for one, as in
    torch.fx."""
    for argument, tensor in tensors.items():
        if not isinstance(tensor, Tensor) and not hasattr(type(tensor), "__torch_function__"):
            kind = tensor if tensor is None else type(tensor).__name__
            raise TypeError(f"{name}: argument '{argument}' is {kind}, not a Tensor")


def _is_left(name: str, **tensors: Optional[Tensor]) -> bool:
    """Whether PyTorch's function has to be called, because it does what an operator of a library cannot, counting it then."""
    _require_tensors(name, tensors)
    if _casts():  # of the types that PyTorch's lists say
        reason = "within torch.autocast"
    elif any(map(_is_other, tensors.values())):
        reason = _OTHER
    elif torch.compiler.is_compiling():
        return False
    elif _transforms() is not None:
        reason = "within a transformation of torch.func"
    elif _forward_ad._current_level >= 0:
        reason = "with derivatives in forward mode"
    elif not _dispatch_modes() and any(map(_dispatches, tensors.values())):
        reason = "a tensor is of a class with a __torch_dispatch__ of its own"
    else:
        return False
    if not torch.compiler.is_compiling():
        _stats.calls[name] += 1
        _note_fallback(name, reason, 1)
    return True


def _run(name: str, by_kernel: Callable[..., Tensor], by_torch: Callable[..., Tensor], *arguments: Any) -> Tensor:
    _stats.calls[name] += 1
    try:
        return by_kernel(*arguments)
    except (DeviceLostError, OutOfMemoryError):
        raise
    except (_Unsupported, Error, TypeError, IndexError) as error:
        reason = str(error).splitlines()[0]
    except RuntimeError:  # of PyTorch
        if not any(map(_is_other, arguments)):
            raise
        reason = _OTHER
    return _run_otherwise(name, by_kernel, by_torch, arguments, reason)


def _run_otherwise(
    name: str, by_kernel: Callable[..., Tensor], by_torch: Callable[..., Tensor], arguments: Sequence[Any], reason: str,
) -> Tensor:
    """What the kernels would not compute: of tensors with a negative bit, on copies; else by PyTorch."""
    if reason is not _OTHER and any(isinstance(one, Tensor) and one.is_neg() for one in arguments):
        try:
            return by_kernel(*[one.resolve_neg() if isinstance(one, Tensor) else one for one in arguments])
        except (_Unsupported, ArgumentError, TypeError, IndexError) as error:
            reason = str(error).splitlines()[0]
    _note_fallback(name, reason, 2)
    if _casts():  # in an operator, whose fake kernel knows of no other types
        with torch.autocast(arguments[0].device.type, enabled=False):
            return by_torch(*arguments)
    return by_torch(*arguments)


def _note_fallback(name: str, reason: str, deeper: int = 0) -> None:
    """Counts it, and warns if it is the first for that reason. deeper: how many functions lie between this one and the one that
    users call."""
    key = (name, reason)
    _stats.fallbacks[key] += 1
    if key not in _warned:
        _warned.add(key)
        warnings.warn(f"pascaline::{name} is computed by PyTorch: {reason}", FallbackWarning, stacklevel=3 + deeper)


def _dense(x: Tensor) -> Tensor:
    """The same of two to four dimensions and without gaps, as operations read a matrix: its memory if it is so."""
    dimensions = x.dim()
    if not 2 <= dimensions <= 4:
        _require(dimensions > 0, "the tensor has no dimensions")
        x = x.flatten(0, -2) if dimensions > 1 else x.unsqueeze(0)
    return x if x.is_contiguous() else x.contiguous()


def _contiguous(x: Tensor) -> Tensor:
    """The same as kernels' results lie, if it is a tensor that can."""
    return x if _is_other(x) else x.contiguous()


def _like(x: Tensor) -> Tensor:
    """A tensor for results of that shape, without gaps."""
    return torch.empty_like(x) if x.is_contiguous() else x.new_empty(x.shape)


def _float(x: Tensor) -> Tensor:
    if x.dtype is torch.float32:
        return x
    _require(x.dtype in (torch.float16, torch.bfloat16), f"a weight or bias is {str(x.dtype).removeprefix('torch.')}")
    return x.float()


def _differentiable(operator: Any, reference: Callable[..., Tensor]) -> None:
    """Derivatives by computing the reference again."""

    def remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.where = [i for i, value in enumerate(inputs) if isinstance(value, Tensor)]
        ctx.others = [None if isinstance(value, Tensor) else value for value in inputs]
        ctx.save_for_backward(*[inputs[i] for i in ctx.where])

    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        inputs, again = list(ctx.others), torch.is_grad_enabled()  # derivatives of these are wanted, too
        for i, value in zip(ctx.where, ctx.saved_tensors):
            # A view is in the graph, but what other arguments are made of is not a path to it.
            inputs[i] = value.view_as(value) if again else value.detach().requires_grad_(ctx.needs_input_grad[i])
        wanted = [i for i in ctx.where if ctx.needs_input_grad[i]]
        with torch.enable_grad():
            found = torch.autograd.grad(reference(*inputs), [inputs[i] for i in wanted], gradient, create_graph=again)
        gradients: list[Optional[Tensor]] = [None] * len(inputs)
        for i, one in zip(wanted, found):
            gradients[i] = one
        return tuple(gradients)

    operator.register_autograd(backward, setup_context=remember)


# ---- Operators ----
# Each is a function of the kernels, one of PyTorch's, the operator of both that PyTorch's dispatcher knows, and what is called.


_BIAS = _ops._epilogue("bias")


def _linear_by_kernel(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    shape = x.shape
    out = x.new_empty((*shape[:-1], weight.shape[0]))
    rows, results = (x, out) if 2 <= len(shape) <= 4 and x.is_contiguous() else (_dense(x), _dense(out))
    if bias is None:
        _ops._matmul((rows, weight, None, None, results, 0), None, None, True)
    else:
        _ops._matmul((rows, weight, _float(bias), None, results, _BIAS), None, None, True)
    return out


def _linear_by_torch(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return _contiguous(_functional.linear(x, weight, bias))


@torch.library.custom_op("pascaline::linear", mutates_args=())
def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    with torch.no_grad():
        return _run("linear", _linear_by_kernel, _linear_by_torch, x, weight, bias)


@_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return x.new_empty(*x.shape[:-1], *weight.shape[:-1])


def _linear_of_one_type(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return _functional.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


_differentiable(_linear, _linear_of_one_type)  # PyTorch's mixes no types


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.linear: x [..., K], weight [N, K], bias [N]."""
    if _is_scripting():
        return torch.ops.pascaline.linear(x, weight, bias)  # type: ignore[no-any-return]
    if _is_plain(x, weight) if bias is None else _is_plain(x, weight, bias):
        return _run("linear", _linear_by_kernel, _linear_by_torch, x, weight, bias)
    if _is_left("linear", x=x, weight=weight) if bias is None else _is_left("linear", x=x, weight=weight, bias=bias):
        return _functional.linear(x, weight, bias)
    return _linear(x, weight, bias)  # type: ignore[no-any-return]


_SWIGLU = _ops._epilogue("swiglu")


def _linear_swiglu_by_kernel(x: Tensor, weight: Tensor) -> Tensor:
    out = x.new_empty((*x.shape[:-1], weight.shape[0] // 2))
    _ops._matmul((_dense(x), weight, None, None, _dense(out), _SWIGLU), None, None, True)
    return out


def _linear_swiglu_by_torch(x: Tensor, weight: Tensor) -> Tensor:
    products = _functional.linear(x, weight)
    return _functional.silu(products[..., 0::2]) * products[..., 1::2]


def _linear_swiglu_contiguous(x: Tensor, weight: Tensor) -> Tensor:
    return _contiguous(_linear_swiglu_by_torch(x, weight))


@torch.library.custom_op("pascaline::linear_swiglu", mutates_args=())
def _linear_swiglu(x: Tensor, weight: Tensor) -> Tensor:
    with torch.no_grad():
        return _run("linear_swiglu", _linear_swiglu_by_kernel, _linear_swiglu_contiguous, x, weight)


@_linear_swiglu.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0] // 2)


_differentiable(_linear_swiglu, _linear_swiglu_by_torch)


def linear_swiglu(x: Tensor, weight: Tensor) -> Tensor:
    """silu(x · gateᵀ) · (x · factorᵀ) in one product: x [..., K], weight [2 · N, K], which has rows of gate and factor in turn."""
    if _is_scripting():
        return torch.ops.pascaline.linear_swiglu(x, weight)  # type: ignore[no-any-return]
    if _is_plain(x, weight):
        return _run("linear_swiglu", _linear_swiglu_by_kernel, _linear_swiglu_contiguous, x, weight)
    if _is_left("linear_swiglu", x=x, weight=weight):
        return _linear_swiglu_by_torch(x, weight)
    return _linear_swiglu(x, weight)  # type: ignore[no-any-return]


def _linear_packed_by_kernel(x: Tensor, data: Tensor, format: str, rows: int, columns: int, bias: Optional[Tensor]) -> Tensor:
    _stats.calls["linear_packed"] += 1
    try:
        flat = _dense(x).resolve_neg()
        added = None if bias is None else _float(bias).resolve_neg()
        flat = flat if flat.dim() == 2 else flat.flatten(0, -2)
        out = x.new_empty(flat.shape[0], rows)
    except _Unsupported as error:
        raise ArgumentError(f"{'bias' if x.dim() else 'x'}: {error}") from None
    except RuntimeError:
        _refuse_other(x, data, bias)
        raise
    _ops.matmul(flat, _packed.PackedMatrix(data, format, (rows, columns)),  # type: ignore[arg-type]
                bias=added, out=out, epilogue="none" if bias is None else "bias")
    return out.view(*x.shape[:-1], rows)


def _refuse_other(x: Tensor, data: Tensor, bias: Optional[Tensor]) -> None:
    for argument, tensor in (("x", x), ("data", data), ("bias", bias)):
        if _is_other(tensor):
            raise ArgumentError(f"{argument}: the tensor is sparse or nested; pass a dense one")


@torch.library.custom_op("pascaline::linear_packed", mutates_args=())
def _linear_packed(x: Tensor, data: Tensor, format: str, rows: int, columns: int, bias: Optional[Tensor] = None) -> Tensor:
    with torch.no_grad():
        return _linear_packed_by_kernel(x, data, format, rows, columns, bias)


@_linear_packed.register_fake
def _(x: Tensor, data: Tensor, format: str, rows: int, columns: int, bias: Optional[Tensor] = None) -> Tensor:
    return x.new_empty(*x.shape[:-1], rows)


def linear_packed(x: Tensor, data: Tensor, format: str, rows: int, columns: int, bias: Optional[Tensor] = None) -> Tensor:
    """`linear` with a weight [rows, columns] in a packed format, of which `data` are the bytes. It has no derivative, and no
    other way to be computed: what does not fit raises."""
    if _is_scripting():
        return torch.ops.pascaline.linear_packed(x, data, format, rows, columns, bias)  # type: ignore[no-any-return]
    if _is_plain(x, data) if bias is None else _is_plain(x, data, bias):
        return _linear_packed_by_kernel(x, data, format, rows, columns, bias)
    _require_tensors("linear_packed", {"x": x, "data": data} if bias is None else {"x": x, "data": data, "bias": bias})
    _refuse_other(x, data, bias)
    if not torch.compiler.is_compiling() and isinstance(x, Tensor) and _has_tangent(x):
        raise ArgumentError("x: linear_packed has no derivative, in forward mode neither")
    return _linear_packed(x, data, format, rows, columns, bias)  # type: ignore[no-any-return]


def _rms_norm_by_kernel(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    out = _like(x)
    epsilon = epsilon if type(epsilon) is float and 0 <= epsilon <= 1 else _ops._number("epsilon", epsilon, float)
    _ops._rmsnorm((_dense(x), _float(weight), None, _dense(out), epsilon), None, None, True)
    return out


def _rms_norm_by_torch(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return _functional.rms_norm(x, weight.shape[-1:], weight, epsilon)


def _rms_norm_contiguous(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return _contiguous(_rms_norm_by_torch(x, weight, epsilon))


@torch.library.custom_op("pascaline::rms_norm", mutates_args=())
def _rms_norm(x: Tensor, weight: Tensor, epsilon: float = 1e-6) -> Tensor:
    with torch.no_grad():
        return _run("rms_norm", _rms_norm_by_kernel, _rms_norm_contiguous, x, weight, epsilon)


@_rms_norm.register_fake
def _(x: Tensor, weight: Tensor, epsilon: float = 1e-6) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_differentiable(_rms_norm, _rms_norm_by_torch)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float = 1e-6) -> Tensor:
    """torch.nn.functional.rms_norm over the last dimension."""
    if _is_scripting():
        return torch.ops.pascaline.rms_norm(x, weight, epsilon)  # type: ignore[no-any-return]
    if _is_plain(x, weight):
        return _run("rms_norm", _rms_norm_by_kernel, _rms_norm_contiguous, x, weight, epsilon)
    if _is_left("rms_norm", x=x, weight=weight):
        return _rms_norm_by_torch(x, weight, epsilon)
    return _rms_norm(x, weight, epsilon)  # type: ignore[no-any-return]


def _layer_norm_by_kernel(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    _require(math.isclose(epsilon, _LAYERNORM_EPSILON, rel_tol=1e-3), f"the kernel's epsilon is 1e-6, not {epsilon:g}")
    out = _like(x)
    _ops._layernorm((_dense(x), _float(weight), _float(bias), None, _dense(out)), None, None, True)
    return out


def _layer_norm_by_torch(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    return _functional.layer_norm(x, weight.shape[-1:], weight, bias, epsilon)


def _layer_norm_contiguous(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    return _contiguous(_layer_norm_by_torch(x, weight, bias, epsilon))


@torch.library.custom_op("pascaline::layer_norm", mutates_args=())
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-6) -> Tensor:
    with torch.no_grad():
        return _run("layer_norm", _layer_norm_by_kernel, _layer_norm_contiguous, x, weight, bias, epsilon)


@_layer_norm.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-6) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _layer_norm_of_one_type(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    return _layer_norm_by_torch(x, weight.to(x.dtype), bias.to(x.dtype), epsilon)


_differentiable(_layer_norm, _layer_norm_of_one_type)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-6) -> Tensor:
    """torch.nn.functional.layer_norm over the last dimension; the kernel's epsilon is 1e-6."""
    if _is_scripting():
        return torch.ops.pascaline.layer_norm(x, weight, bias, epsilon)  # type: ignore[no-any-return]
    if _is_plain(x, weight, bias):
        return _run("layer_norm", _layer_norm_by_kernel, _layer_norm_contiguous, x, weight, bias, epsilon)
    if _is_left("layer_norm", x=x, weight=weight, bias=bias):
        return _layer_norm_by_torch(x, weight, bias, epsilon)
    return _layer_norm(x, weight, bias, epsilon)  # type: ignore[no-any-return]


def _swiglu_by_kernel(gate: Tensor, factor: Tensor) -> Tensor:
    _require(gate.shape == factor.shape, "the shapes differ")
    out = _like(gate)
    _ops._silu_multiply((_dense(gate), _dense(factor), _dense(out)), None, None, True)
    return out


def _swiglu_by_torch(gate: Tensor, factor: Tensor) -> Tensor:
    return _functional.silu(gate) * factor


def _swiglu_contiguous(gate: Tensor, factor: Tensor) -> Tensor:
    return _contiguous(_swiglu_by_torch(gate, factor))


@torch.library.custom_op("pascaline::swiglu", mutates_args=())
def _swiglu(gate: Tensor, factor: Tensor) -> Tensor:
    with torch.no_grad():
        return _run("swiglu", _swiglu_by_kernel, _swiglu_contiguous, gate, factor)


@_swiglu.register_fake
def _(gate: Tensor, factor: Tensor) -> Tensor:
    return torch.empty_like(_swiglu_by_torch(gate, factor), memory_format=torch.contiguous_format)


_differentiable(_swiglu, _swiglu_by_torch)


def swiglu(gate: Tensor, factor: Tensor) -> Tensor:
    """silu(gate) · factor, of equal shapes."""
    if _is_scripting():
        return torch.ops.pascaline.swiglu(gate, factor)  # type: ignore[no-any-return]
    if _is_plain(gate, factor):
        return _run("swiglu", _swiglu_by_kernel, _swiglu_contiguous, gate, factor)
    if _is_left("swiglu", gate=gate, factor=factor):
        return _swiglu_by_torch(gate, factor)
    return _swiglu(gate, factor)  # type: ignore[no-any-return]


def _attention_by_kernel(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    _require(query.dim() == 4 and key.dim() == 4 and value.dim() == 4, "tensors have four dimensions here")
    _require(query.shape[0] == key.shape[0] == value.shape[0], "the batches differ")
    _require(not is_causal or query.shape[2] == key.shape[2], "a causal mask is for as many queries as keys")
    out = query.new_empty(query.shape[0], query.shape[2], query.shape[1], query.shape[3])
    for one in range(query.shape[0]):  # rows of heads side by side, as projections give them
        q, k, v = (tensor[one].transpose(0, 1).contiguous() for tensor in (query, key, value))
        _ops.attention_prefill(q, k, v, out=out[one], causal=is_causal)
    return out.transpose(1, 2)


def _attention_by_torch(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    grouped = query.dim() > 2 and key.dim() > 2 and bool(query.size(-3) != key.size(-3))
    return _functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=grouped)


def _attention_contiguous(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    """The same with the strides that the kernel's results have."""
    x = _attention_by_torch(query, key, value, is_causal)
    return x.transpose(1, 2).contiguous().transpose(1, 2) if x.dim() == 4 else x.clone()


@torch.library.custom_op("pascaline::attention", mutates_args=())
def _attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tensor:
    with torch.no_grad():
        return _run("attention", _attention_by_kernel, _attention_contiguous, query, key, value, is_causal)


@_attention.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tensor:
    if query.dim() != 4:
        return query.new_empty(*query.shape[:-1], value.shape[-1])
    batch = torch.broadcast_shapes(query.shape[:1], key.shape[:1], value.shape[:1])
    return query.new_empty(*batch, query.shape[2], query.shape[1], value.shape[3]).transpose(1, 2)


_differentiable(_attention, _attention_by_torch)


def attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tensor:
    """`scaled_dot_product_attention` without a mask: [BATCH, HEADS, LENGTH, HEAD_DIM]."""
    if _is_scripting():
        return torch.ops.pascaline.attention(query, key, value, is_causal)  # type: ignore[no-any-return]
    if _is_plain(query, key, value):
        return _run("attention", _attention_by_kernel, _attention_contiguous, query, key, value, is_causal)
    if _is_left("attention", query=query, key=key, value=value):
        return _attention_by_torch(query, key, value, is_causal)
    return _attention(query, key, value, is_causal)  # type: ignore[no-any-return]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional's function of this name. The kernels compute it without mask, dropout and scale of one's own."""
    if _is_scripting():
        heads_fit = query.dim() == 4 and key.dim() == 4 and (enable_gqa or query.shape[1] == key.shape[1])
        if attn_mask is None and dropout_p == 0.0 and scale is None and heads_fit:
            return torch.ops.pascaline.attention(query, key, value, is_causal)  # type: ignore[no-any-return]
        return _functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                        enable_gqa=enable_gqa)
    reason = _why_left(query, key, attn_mask, dropout_p, scale, enable_gqa)
    if reason is None:
        return attention(query, key, value, is_causal)
    if not torch.compiler.is_compiling():
        _stats.calls["attention"] += 1
        _note_fallback("attention", reason)
    return _functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                    enable_gqa=enable_gqa)


def _why_left(query: Tensor, key: Tensor, mask: Optional[Tensor], dropout: float, scale: Optional[float],
              enable_gqa: bool) -> Optional[str]:
    """Why PyTorch computes an attention; None: it need not."""
    if mask is not None:
        return "there is a mask"
    if dropout != 0.0:
        return "there is dropout"
    if not isinstance(query, Tensor) or not isinstance(key, Tensor) or query.dim() < 2:
        return "query or key is not a tensor of two dimensions or more"
    if scale is not None and not (query.size(-1) and math.isclose(scale, 1 / math.sqrt(query.size(-1)), rel_tol=1e-6)):
        return "there is a scale"
    if not enable_gqa and query.dim() == 4 and key.dim() == 4 and query.size(1) != key.size(1):
        return "the numbers of heads differ without enable_gqa"
    return None


# ---- Modules ----


class Linear(torch.nn.Linear):
    """torch.nn.Linear, computed by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        if _is_scripting():
            return torch.ops.pascaline.linear(input, self.weight, self.bias)  # type: ignore[no-any-return]
        parameters = self._parameters  # what Module's attributes find later
        weight, bias = parameters.get("weight"), parameters.get("bias")
        return linear(input, self.weight if weight is None else weight, self.bias if bias is None else bias)


class PackedLinear(torch.nn.Module):
    """A linear layer whose weight is in a packed format, made of one of floats. For inference."""

    data: Tensor
    bias: Optional[Tensor]

    def __init__(self, layer: torch.nn.Linear, format: _packed.Format) -> None:
        super().__init__()
        matrix = _packed.pack(layer.weight.detach().float().cpu().resolve_neg().numpy(), format)
        self.format, (self.out_features, self.in_features) = format, matrix.shape
        self.register_buffer("data", torch.from_numpy(matrix.data).to(layer.weight.device))
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach().float().clone())

    def forward(self, input: Tensor) -> Tensor:
        return linear_packed(input, self.data, self.format, self.out_features, self.in_features,
                             self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, format={self.format}"


class RMSNorm(torch.nn.Module):
    """torch.nn.RMSNorm over the last dimension, and the class of that name of Transformers' models."""

    def __init__(self, weight: torch.nn.Parameter, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = weight, epsilon

    def forward(self, input: Tensor) -> Tensor:
        return rms_norm(input, self.weight, self.epsilon)


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm with weight and bias over the last dimension."""

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.weight, self.bias, self.eps)


class SwiGLU(torch.nn.Module):
    """silu(gate) · factor."""

    def forward(self, gate: Tensor, factor: Tensor) -> Tensor:
        return swiglu(gate, factor)


# ---- Layers that are computed together ----
# A module whose linear layers can share a product gets a class that is derived from its own and from one of these. The
# weights of those layers become parts of one matrix, and stay parameters of their own.


def _parts(matrix: Tensor, rows: Sequence[int], alternate: bool) -> list[Tensor]:
    """The matrix's rows in turn, or one part after another."""
    return [matrix[i::len(rows)] for i in range(len(rows))] if alternate else list(matrix.split(list(rows)))


def _gathered(parameters: Sequence[Any], alternate: bool) -> Tensor:
    """A tensor of which the parameters are parts from now on, or already were."""
    first, rows = parameters[0], [parameter.shape[0] for parameter in parameters]
    shape = (sum(rows), *first.shape[1:])
    if first.untyped_storage().nbytes() == math.prod(shape) * first.element_size():
        known: Tensor = first.detach().as_strided(shape, (*first.shape[1:], 1), 0)
        if all(parameter.data_ptr() == part.data_ptr() and parameter.stride() == part.stride()
               for parameter, part in zip(parameters, _parts(known, rows, alternate))):
            return known
    for parameter in parameters:
        own = parameter.is_contiguous() and parameter.untyped_storage().nbytes() == parameter.numel() * parameter.element_size()
        _require(own, "a weight is part of other memory")
    with torch.no_grad():
        matrix = torch.empty(shape, dtype=first.dtype, device=first.device)
        for parameter, part in zip(parameters, _parts(matrix, rows, alternate)):
            part.copy_(parameter)
            parameter.data = part
    if matrix.is_cuda:
        torch.cuda.empty_cache()  # what the weights had: blocks of their sizes serve nobody else
    return matrix


def _has_hooks(module: Any) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks) or "forward" in module.__dict__


class _Together:
    """Linear layers whose weights are one matrix, and whose biases one vector."""

    def __init__(self, layers: dict[str, Any], alternate: bool) -> None:
        first, *others = layers.values()
        for name, layer in layers.items():
            kind = type(layer).__name__ + (", of PyTorch" if type(layer) is torch.nn.Linear else "")
            _require(isinstance(layer, Linear), f"{name} is of class {kind}")
            _require(not _has_hooks(layer), f"{name} has hooks")
            weight = layer.weight
            _require(type(weight) is _Parameter and type(weight.data) is Tensor and not weight.is_inference()
                     and weight.device.type in ("cpu", "cuda"), f"the weight of {name} is of another kind or elsewhere")
            _require(layer.out_features * weight.element_size() % 16 == 0, f"{name} has {layer.out_features} results")
        for other in others:
            _require(other.in_features == first.in_features, "they read different numbers of columns")
            _require(other.weight.dtype is first.weight.dtype, "their weights have different types")
            _require(other.weight.device == first.weight.device, "their weights are on different devices")
            _require((other.bias is None) == (first.bias is None), "only some have a bias")
            _require(not alternate or other.out_features == first.out_features, "they give different numbers of columns")
        _require(not alternate or first.bias is None, "they have a bias")
        _require(len({layer.weight.data_ptr() for layer in layers.values()}) == len(layers), "two weights are one")
        self.rows = [layer.out_features for layer in layers.values()]
        self.weight = _gathered([layer.weight for layer in layers.values()], alternate)
        self.bias = None if first.bias is None else _gathered([layer.bias for layer in layers.values()], False)
        self.places = [(layer.weight.data_ptr(), 0 if layer.bias is None else layer.bias.data_ptr()) for layer in layers.values()]

    def is_of(self, layers: Sequence[Any]) -> bool:
        """Whether the layers' parameters still are the parts of this."""
        for layer, (weight, bias) in zip(layers, self.places):
            if not isinstance(layer, Linear):
                return False
            parameters = layer._parameters
            parameter = parameters.get("weight")
            if parameter is None or parameter.data_ptr() != weight:
                return False
            parameter = parameters.get("bias")
            if bias != (0 if parameter is None else parameter.data_ptr()):
                return False
        return True


class _Fused:
    """A module of which some linear layers are computed together. The classes that are made with it have the names of those
    that they are derived from."""

    _fused_names: tuple[str, ...]
    _fused_alternate = False
    _together: Optional[_Together] = None
    _fused_left = ""  # why they are not to be computed together any more
    _fused_class: Any  # the class that it was

    def _fuse(self) -> None:
        """Raises _Unsupported for a reason against it."""
        modules = self._modules  # type: ignore[attr-defined]
        self._together = None
        self._together = _Together({name: modules[name] for name in self._fused_names}, self._fused_alternate)

    def _fuse_again(self) -> None:
        try:
            if not self._fused_left:
                self._fuse()
        except (_Unsupported, KeyError, RuntimeError):
            self._together = None

    def _fused_now(self, input: Tensor) -> tuple[Optional[_Together], list[Any]]:
        """What is computed together of that input, if its parameters and layers are still those, and the layers."""
        modules = self._modules  # type: ignore[attr-defined]
        layers = [modules.get(name) for name in self._fused_names]
        together = self._together
        if together is None:
            return None, layers
        if not together.is_of(layers):
            self._together = None
            _fell_back("together", f"weights of {', '.join(self._fused_names)} were replaced; optimize again")
            return None, layers
        for layer in layers:
            if layer._forward_hooks or layer._forward_pre_hooks or "forward" in layer.__dict__:
                return None, layers
        if torch.is_grad_enabled():
            return together if _is_plain(input, *[one for layer in layers for one in layer.parameters()]) else None, layers
        return together if _is_plain(input) else None, layers

    def __prepare_scriptable__(self) -> Any:
        raise ArgumentError("TorchScript cannot compile layers that are computed together: call pascaline.torch.separate(model) "
                            "before torch.jit.script, or optimize(model, fuse=False) in the first place")

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        module = super()._apply(fn, recurse)  # type: ignore[misc]
        self._fuse_again()
        return module

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickled, (self._fused_class, self._fused_mixin), {**self.__dict__, "_together": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self._fuse_again()
        if getattr(state.get("config"), "_attn_implementation", None) == "pascaline":
            _register_attention()

    _fused_mixin: Any


def _fell_back(name: str, reason: str) -> None:
    _stats.fallbacks[name, reason] += 1
    if (name, reason) not in _warned:
        _warned.add((name, reason))
        warnings.warn(f"pascaline.torch: {reason}", FallbackWarning, stacklevel=4)


class _FusedMLP(_Fused):
    """down(silu(gate(x)) · up(x)) in two products."""

    _fused_names = ("gate_proj", "up_proj")
    _fused_alternate = True

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and self._together is not None:
            together, _ = self._fused_now(x)
            activation = getattr(self, "act_fn", None)
            if (together is not None and _is_silu(activation)
                    and not (isinstance(activation, torch.nn.Module) and _has_hooks(activation))):
                gated = _run("linear_swiglu", _linear_swiglu_by_kernel, _linear_swiglu_contiguous, x, together.weight)
                return self.down_proj(gated)  # type: ignore[attr-defined, no-any-return]
        return super().forward(x)  # type: ignore[misc, no-any-return]


_Known = list[tuple[str, Optional[Tensor], Optional[int]]]


class _Held:
    """What a product of this version of the input (None: it has none) gave for layers that were not called yet: by the layers
    their results and, of their parameters, names, tensors (None: it has none) and versions."""

    __slots__ = ("input", "results", "version")

    def __init__(self, input: Tensor, version: Optional[int], results: dict[Any, tuple[Tensor, _Known]]) -> None:
        self.input, self.version, self.results = input, version, results


class _Scope(threading.local):
    """The attention whose `forward` runs in this thread."""

    attention: Any = None
    held: Optional[_Held] = None


_scope = _Scope()


class _Projection(Linear):
    """One of several linear layers of the same input. While the module's `forward` runs to which they belong, the first that is
    called computes all of them, and the others take their results, if they are called with the same tensor, unchanged."""

    def forward(self, input: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and _scope.attention is not None:
            result: Optional[Tensor] = _scope.attention._fused_result(self, input)
            if result is not None:
                return result
        return linear(input, self.weight, self.bias)


class _FusedAttention(_Fused):
    """Query, key and value by one product."""

    _fused_names = ("q_proj", "k_proj", "v_proj")

    def forward(self, *arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling() or self._together is None:
            return super().forward(*arguments, **named)  # type: ignore[misc]
        outer = _scope.attention, _scope.held
        _scope.attention, _scope.held = self, None
        try:
            result = super().forward(*arguments, **named)  # type: ignore[misc]
            if _scope.held is not None and _scope.held.results:  # computed for nothing
                self._fused_left, self._together = "they are called with different tensors", None
                _fell_back("together", f"{', '.join(self._fused_names)}: {self._fused_left}")
            return result
        finally:
            _scope.attention, _scope.held = outer

    def _fused_result(self, layer: Any, input: Tensor) -> Optional[Tensor]:
        held = _scope.held
        if held is None:
            return self._fused_products(layer, input)
        if held.input is not input or layer not in held.results or (held.version is not None and held.version != input._version):
            return None
        result, known = held.results[layer]
        if any(layer._parameters.get(name) is not one or (one is not None and one._version != version)
               for name, one, version in known):
            return None
        if torch.is_grad_enabled() and not _is_plain(input, *layer.parameters()):
            return None
        del held.results[layer]
        return result

    def _fused_products(self, layer: Any, input: Tensor) -> Optional[Tensor]:
        if type(input) is not Tensor:
            return None
        uncounted = input.is_inference()  # whether it is changed between the calls cannot be seen
        if uncounted and not self._fused_class.__module__.startswith("transformers."):
            return None
        together, layers = self._fused_now(input)
        if together is None or layer not in layers:
            return None
        products = _run("linear", _linear_by_kernel, _linear_by_torch, input, together.weight, together.bias)
        parts = torch.split_with_sizes(products, together.rows, -1)
        if products.numel() != products.shape[-1]:
            parts = [part.contiguous() for part in parts]  # as those that see them expect results of a linear layer
        results: dict[Any, tuple[Tensor, _Known]] = {}
        for one, part in zip(layers, parts):
            results[one] = (part, [(name, given, None if given is None else given._version)
                                   for name, given in one._parameters.items() if name in ("weight", "bias")])
        found: Tensor = results.pop(layer)[0]
        _scope.held = _Held(input, None if uncounted else input._version, results)
        return found


@functools.lru_cache(None)
def _derived(plain: Any, mixin: Any) -> Any:
    method = mixin.forward
    forward = types.FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    functools.update_wrapper(forward, plain.forward)
    return type(plain.__name__, (mixin, plain), {
        "__module__": plain.__module__, "__qualname__": plain.__qualname__, "__doc__": plain.__doc__, "forward": forward,
        "_fused_class": plain, "_fused_mixin": mixin})


def _unpickled(plain: Any, mixin: Any) -> Any:
    kind = _derived(plain, mixin)
    return kind.__new__(kind)


def _is_silu(activation: Any) -> bool:
    kind = type(activation)
    named = kind.__name__ == "SiLUActivation" and kind.__module__ == "transformers.activations"
    return kind is torch.nn.SiLU or named or activation is _functional.silu


@functools.lru_cache(None)
def _computes_swiglu(forward: Any) -> bool:
    """Whether a method's source is what `_FusedMLP` computes and no more."""
    try:
        method = ast.parse(textwrap.dedent(inspect.getsource(forward))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return False
    if not isinstance(method, ast.FunctionDef) or method.decorator_list or len(method.args.args) != 2:
        return False
    if method.args.vararg or method.args.kwarg or method.args.kwonlyargs or method.args.args[0].arg != "self":
        return False
    body = [line for line in method.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
    value = body[-1].value if body and isinstance(body[-1], ast.Return) else None
    if len(body) == 2 and isinstance(body[0], ast.Assign) and isinstance(value, ast.Name):
        value = body[0].value if [ast.unparse(target) for target in body[0].targets] == [value.id] else None
    elif len(body) != 1:
        value = None
    x = method.args.args[1].arg
    gate, up = f"self.act_fn(self.gate_proj({x}))", f"self.up_proj({x})"
    return value is not None and ast.unparse(value) in (f"self.down_proj({gate} * {up})", f"self.down_proj({up} * {gate})")


def _fuse_layers(module: Any) -> Optional[str]:
    """Lets the module compute layers together, if it has such; says which."""
    if isinstance(module, torch.jit.ScriptModule):
        return None
    modules = module._modules
    mixin: Any = next((kind for kind in (_FusedMLP, _FusedAttention) if all(modules.get(name) for name in kind._fused_names)), None)
    if mixin is None or (mixin is _FusedMLP and modules.get("down_proj") is None):
        return None
    if isinstance(module, mixin):
        if module._together is not None and module._together.is_of([modules[name] for name in mixin._fused_names]):
            return None
        module._fused_left = ""
        module._fuse()
    else:
        _require("forward" not in module.__dict__, "its forward is not its class's")
        if mixin is _FusedMLP:
            _require(_is_silu(getattr(module, "act_fn", None)), "its activation is not SiLU")
            _require(_computes_swiglu(type(module).forward), "its forward is another, or its source is not there")
        plain: Any = type(module)
        module.__class__ = _derived(plain, mixin)
        try:
            module._fuse()
        except _Unsupported:
            module.__class__ = plain
            module.__dict__.pop("_together", None)
            raise
    if mixin is _FusedMLP:
        return "gate_proj, up_proj and SwiGLU in one product"
    for name in mixin._fused_names:
        modules[name].__class__ = _Projection
    return "q_proj, k_proj and v_proj in one product"


# ---- Attention of Transformers ----


@functools.lru_cache(None)
def _attention_of_transformers() -> Any:
    return importlib.import_module("transformers.integrations.sdpa_attention").sdpa_attention_forward


def _transformers_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor], dropout: float = 0.0,
    scaling: Optional[float] = None, is_causal: Optional[bool] = None, **named: Any,
) -> tuple[Tensor, Optional[Tensor]]:
    """What Transformers calls for an implementation of attention: prompts by the kernels, all else by that of "sdpa"."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    length, usual = query.shape[2], 1 / math.sqrt(query.shape[-1])
    others = any(named.get(name) is not None for name in ("position_bias", "softcap", "s_aux"))
    if (attention_mask is None and not dropout and not others and causal is True and length > 1 and _is_plain(query, key, value)
            and (scaling is None or math.isclose(scaling, usual, rel_tol=1e-6))):
        key, value = key[:, :, :length], value[:, :, :length]  # as there: a cache with room behind them
        out = _run("attention", _attention_by_kernel, _attention_contiguous, query, key, value, True)
        return out.transpose(1, 2), None
    _stats.calls["attention"] += 1
    _stats.fallbacks["attention", "one query" if length == 1 else "a mask, dropout, scale or derivative"] += 1
    found: tuple[Tensor, Optional[Tensor]] = _attention_of_transformers()(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **named)
    return found


def _register_attention() -> bool:
    try:
        library = importlib.import_module("transformers")
        masks = importlib.import_module("transformers.masking_utils").ALL_MASK_ATTENTION_FUNCTIONS["sdpa"]
        _attention_of_transformers()
        library.AttentionInterface.register("pascaline", _transformers_attention)
        library.AttentionMaskInterface.register("pascaline", masks)
    except (ImportError, AttributeError, KeyError):  # of another version
        return False
    return True


def _use_attention(module: Any) -> bool:
    """Has a causal attention of Transformers that goes through "sdpa" go through the function above."""
    config: Any = getattr(module, "config", None)
    if (getattr(config, "_attn_implementation", None) != "sdpa" or getattr(module, "is_causal", False) is not True
            or not type(module).__module__.startswith("transformers.")):
        return False
    if not _register_attention():
        return False
    config._attn_implementation = "pascaline"
    return True


@dataclasses.dataclass
class Optimized:
    """What `optimize` did: names of modules with their classes, and with what is computed together there or why they were left."""

    replaced: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    kept: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    fused: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)


def _floats(weight: Any) -> None:
    _require(weight.dtype in (torch.float32, torch.float16), f"its weight is {str(weight.dtype).removeprefix('torch.')}; "
             "kernels compute in float32 and float16")


def _own_forward(module: Any) -> None:
    _require("forward" not in module.__dict__, "its forward is not its class's")


def _new_is_enough(module: Any) -> None:
    """That nothing is lost if another object takes the module's place."""
    _own_forward(module)
    _require(not _has_hooks(module), "it has hooks")
    _require(module.weight.device.type != "meta", "its weight is not there")


def _computes_rms_norm(module: Any, epsilon: float) -> bool:
    """Whether a module whose class is only called so (others add 1 to the weight, or take more tensors) gives its results."""
    weight = module.weight
    x = torch.linspace(-2.0, 3.0, 2 * weight.shape[0], device=weight.device).view(2, -1)
    x[1] *= math.sqrt(epsilon)  # so small that the epsilon counts
    x = x.to(weight.dtype)
    with torch.no_grad():
        try:
            found = module(x)
        except Exception:
            return False
        expected = _rms_norm_by_torch(x.float(), weight.float(), epsilon)
    close = 1e-4 if weight.dtype is torch.float32 else 1e-2
    return (isinstance(found, Tensor) and found.shape == x.shape
            and torch.allclose(found.float(), expected, rtol=close, atol=close))


def _replacement(module: torch.nn.Module, quantize: Optional[_packed.Format]) -> Optional[torch.nn.Module]:
    """What takes a module's place; None for a class that is not looked at."""
    kind: Any = module
    if type(module) is torch.nn.Linear or (quantize is not None and type(module) is Linear):
        _floats(module.weight)
        if quantize is not None:
            _new_is_enough(module)
            return PackedLinear(module, quantize)
        _own_forward(module)
        linear_layer = Linear.__new__(Linear)
        linear_layer.__dict__ = module.__dict__
        return linear_layer
    if type(module) is torch.nn.LayerNorm:
        _floats(module.weight if module.weight is not None else torch.empty(0))
        _require(module.weight is not None and module.bias is not None, "it has no weight or no bias")
        _require(len(module.normalized_shape) == 1, "it is over several dimensions")
        _require(math.isclose(module.eps, _LAYERNORM_EPSILON, rel_tol=1e-3), f"its epsilon is {module.eps:g}, not 1e-6")
        _own_forward(module)
        layer = LayerNorm.__new__(LayerNorm)
        layer.__dict__ = module.__dict__
        return layer
    if type(module).__name__.endswith("RMSNorm") and not isinstance(module, RMSNorm):
        epsilon: Any = getattr(kind, "variance_epsilon", getattr(kind, "eps", None))
        _require(isinstance(getattr(kind, "weight", None), torch.nn.Parameter) and kind.weight.dim() == 1, "it has no weight")
        if type(module) is torch.nn.RMSNorm and epsilon is None:
            epsilon = torch.finfo(kind.weight.dtype).eps
        _require(isinstance(epsilon, float) and 1e-9 <= epsilon <= 1, f"its epsilon is {epsilon}, not from 1e-9 to 1")
        _require(math.isclose(round(1e9 * epsilon), 1e9 * epsilon, rel_tol=1e-5),
                 f"its epsilon is {epsilon:g}, not a whole number of billionths")
        _floats(kind.weight)
        _new_is_enough(module)
        _require(_computes_rms_norm(module, float(epsilon)), "it computes something else than an RMSNorm with its weight")
        return RMSNorm(kind.weight, float(epsilon))
    return None


@functools.lru_cache(None)
def _source(method: Any) -> str:
    try:
        return inspect.getsource(method)
    except (OSError, TypeError):
        return ""


def _reads_weight(module: torch.nn.Module, child: str) -> bool:
    """Whether a module's forward looks at its layer's weight, as that of torch.nn.TransformerEncoderLayer does."""
    return f"self.{child}.weight" in _source(type(module).forward)


def _checked(model: Any, quantize: Any, skip: Any, fuse: Any) -> list[str]:
    """The modules to leave; raises for arguments of `optimize` that do not fit."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: {type(model).__name__} is not a torch.nn.Module")
    if quantize is not None and quantize not in _packed.FORMATS:
        raise ArgumentError(f"quantize: there is no packed format {quantize!r}; it is one of {', '.join(_packed.FORMATS)}")
    if isinstance(skip, str) or not isinstance(skip, Iterable):
        raise TypeError(f"skip: {type(skip).__name__} is not a list of modules' names")
    if not isinstance(fuse, bool):
        raise TypeError(f"fuse: {type(fuse).__name__} is not a bool")
    left = list(skip)
    names = {name for name, _ in model.named_modules(remove_duplicate=False)}
    for name in left:
        if name not in names:
            raise ArgumentError(f"skip: the model has no module {name!r}")
    return left


def optimize(model: torch.nn.Module, *, quantize: Optional[_packed.Format] = None, skip: Sequence[str] = (),
             fuse: bool = True) -> Optimized:
    """Replaces linear layers and norms of a model in place by those above, which share its parameters.

    quantize: packs the weights of linear layers in that format ("q8_0", "q4_k" …); skip: names of modules to leave.
    fuse: also has layers computed together, where the model's weights are floats: in modules with `gate_proj`, `up_proj`,
    `down_proj` and the activation SiLU, of which `forward` says no more than that, gate and up with the activation; in
    modules with `q_proj`, `k_proj` and `v_proj` these; and Transformers' causal attention over prompts ("sdpa" there becomes
    "pascaline" in the configuration). Parameters stay, as parts of larger matrices.

    Returns what was replaced, fused, and what was left and why. Modules that are subclasses of PyTorch's, and so may compute
    something else, are left; of RMSNorm, whose classes are many, those whose name ends so, with a weight and an epsilon, are
    tried with numbers, and replaced if they give an RMSNorm's results. Modules of which other code depends on hooks or on a
    `forward` of their own are left, too.
    """
    skip = _checked(model, quantize, skip, fuse)
    if quantize is not None:
        separate(model)
    report = Optimized()
    made: dict[Any, torch.nn.Module] = {}  # of modules that are in several places
    for name, module in list(model.named_modules()):
        for child_name, child in list(module._modules.items()):
            if child is None:
                continue
            full, kind = f"{name}.{child_name}" if name else child_name, type(child).__name__
            if full in skip:
                report.kept.append((full, kind, "it is to be left"))
                continue
            try:
                _require(quantize is None or type(child) not in (torch.nn.Linear, Linear) or not _reads_weight(module, child_name),
                         "its module's forward reads its weight")
                replaced = made.get(child) or _replacement(child, quantize)
            except (_Unsupported, Error) as error:
                report.kept.append((full, kind, str(error)))
                continue
            if replaced is not None:
                made[child] = replaced.train(child.training)
                setattr(module, child_name, replaced)
                report.replaced.append((full, kind))
            elif isinstance(child, (Linear, PackedLinear, RMSNorm, LayerNorm, SwiGLU)):
                report.kept.append((full, kind, "it is one of these already"))
            elif isinstance(child, (torch.nn.Linear, torch.nn.LayerNorm)):
                report.kept.append((full, kind, "its class is derived from PyTorch's, and may compute something else"))
            elif not list(child.children()):
                report.kept.append((full, kind, "there is nothing to replace it by"))
    if not list(model.children()):
        report.kept.append(("", type(model).__name__, "it has no modules in it, which are what is replaced"))
    if fuse and quantize is None:
        _fuse_modules(model, skip, report)
    return report


def _fuse_modules(model: torch.nn.Module, skip: Sequence[str], report: Optimized) -> None:
    for name, module in list(model.named_modules()):
        kind = type(module).__name__
        if name in skip:
            continue
        try:
            what = _fuse_layers(module)
            if what is not None:
                report.fused.append((name, kind, what))
        except _Unsupported as error:
            report.kept.append((name, kind, f"its layers are computed one by one: {error}"))
        if _use_attention(module):
            report.fused.append((name, kind, "attention over prompts, here and where else its configuration is used"))


def separate(model: torch.nn.Module) -> None:
    """Takes back what `optimize` fused: weights lie by themselves again, which safetensors and so Transformers' `save_pretrained`
    need; modules that were replaced stay so."""
    for module in list(model.modules()):
        if isinstance(module, _Fused):
            layers = [module._modules[name] for name in module._fused_names]  # type: ignore[attr-defined]
            module._together = None
            module.__class__ = module._fused_class
            for layer in layers:
                if type(layer) is _Projection:
                    layer.__class__ = Linear
                for parameter in layer.parameters(recurse=False):
                    parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
        config: Any = getattr(module, "config", None)
        if getattr(config, "_attn_implementation", None) == "pascaline":
            config._attn_implementation = "sdpa"
