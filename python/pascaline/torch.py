"""PyTorch: operators that torch.compile and torch.export see, modules, and models whose modules are replaced.

Each operator computes with the tuned kernels (`pascaline.ops`) what PyTorch's function of that name does. Where they cannot
(another element type, a mask, a kernel that cannot be built), PyTorch computes it: each reason is warned of once, and counted
in `stats()`. Derivatives are PyTorch's, which computes the function again for them.

On a GPU a call works on the current stream and returns when its kernel is queued, as PyTorch's functions do. Shapes that were
called before can be captured by `torch.cuda.graph`; of others, PyTorch's function is captured. A plain call, without a
derivative, compiling or tracing, goes to the kernels directly; every other one through PyTorch's dispatcher.
"""

import dataclasses
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
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


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise _Unsupported(reason)


_Parameter = torch.nn.Parameter
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_transforms: Callable[[], Any] = torch._C._functorch.peek_interpreter_stack
_is_traced: Callable[[], bool] = torch._C._is_tracing


def _is_plain(*tensors: Optional[Tensor]) -> bool:
    """Whether a call concerns nobody but its caller: no derivative, transformation or graph of PyTorch's is being made, and
    the tensors are of PyTorch's own classes."""
    if torch.compiler.is_compiling() or _dispatch_modes() or _transforms() is not None or _is_traced():
        return False
    derivatives = torch.is_grad_enabled()
    for tensor in tensors:
        if tensor is not None:
            kind = type(tensor)
            if (kind is not Tensor and kind is not _Parameter) or (derivatives and tensor.requires_grad):
                return False
    return True


def _run(name: str, by_kernel: Callable[..., Tensor], by_torch: Callable[..., Tensor], *arguments: Any) -> Tensor:
    _stats.calls[name] += 1
    try:
        return by_kernel(*arguments)
    except (DeviceLostError, OutOfMemoryError):
        raise
    except (_Unsupported, Error, TypeError) as error:
        key = (name, str(error).splitlines()[0])
    _stats.fallbacks[key] += 1
    if key not in _warned:
        _warned.add(key)
        warnings.warn(f"pascaline::{name} is computed by PyTorch: {key[1]}", FallbackWarning, stacklevel=3)
    return by_torch(*arguments)


def _dense(x: Tensor) -> Tensor:
    """The same of two to four dimensions and without gaps, as operations read a matrix: its memory if it is so."""
    dimensions = x.dim()
    if not 2 <= dimensions <= 4:
        _require(dimensions > 0, "the tensor has no dimensions")
        x = x.reshape(-1, x.shape[-1])
    return x if x.is_contiguous() else x.contiguous()


def _like(x: Tensor) -> Tensor:
    """A tensor for results of that shape, without gaps."""
    return torch.empty_like(x) if x.is_contiguous() else x.new_empty(x.shape)


def _float(x: Tensor) -> Tensor:
    return x if x.dtype is torch.float32 else x.float()


def _differentiable(operator: Any, reference: Callable[..., Tensor]) -> None:
    """Derivatives by computing the reference again."""

    def remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.where = [i for i, value in enumerate(inputs) if isinstance(value, Tensor)]
        ctx.others = [None if isinstance(value, Tensor) else value for value in inputs]
        ctx.save_for_backward(*[inputs[i] for i in ctx.where])

    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        inputs = list(ctx.others)
        for i, value in zip(ctx.where, ctx.saved_tensors):
            inputs[i] = value.detach().requires_grad_(ctx.needs_input_grad[i])
        wanted = [i for i in ctx.where if ctx.needs_input_grad[i]]
        with torch.enable_grad():
            found = torch.autograd.grad(reference(*inputs), [inputs[i] for i in wanted], gradient)
        gradients: list[Optional[Tensor]] = [None] * len(inputs)
        for i, one in zip(wanted, found):
            gradients[i] = one
        return tuple(gradients)

    operator.register_autograd(backward, setup_context=remember)


# ---- Operators ----
# Each is a function of the kernels, one of PyTorch's, the operator of both that PyTorch's dispatcher knows, and what is called.


_BIAS = _ops._epilogue("bias")


def _linear_by_kernel(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    rows = _dense(x)
    out = x.new_empty(*x.shape[:-1], weight.shape[0])
    if bias is None:
        _ops._matmul((rows, weight, None, None, _dense(out), 0), None, None, True)
    else:
        _ops._matmul((rows, weight, _float(bias), None, _dense(out), _BIAS), None, None, True)
    return out


def _linear_by_torch(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return _functional.linear(x, weight, bias).contiguous()


@torch.library.custom_op("pascaline::linear", mutates_args=())
def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    with torch.no_grad():
        return _run("linear", _linear_by_kernel, _linear_by_torch, x, weight, bias)


@_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


_differentiable(_linear, _functional.linear)


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.linear: x [..., K], weight [N, K], bias [N]."""
    if _is_plain(x, weight, bias):
        return _run("linear", _linear_by_kernel, _linear_by_torch, x, weight, bias)
    return _linear(x, weight, bias)  # type: ignore[no-any-return]


def _linear_packed_by_kernel(x: Tensor, data: Tensor, format: str, rows: int, columns: int, bias: Optional[Tensor]) -> Tensor:
    _stats.calls["linear_packed"] += 1
    try:
        flat = x.reshape(-1, x.shape[-1]).contiguous()
    except IndexError:
        raise ArgumentError("x: the tensor has no dimensions") from None
    out = x.new_empty(flat.shape[0], rows)
    _ops.matmul(flat, _packed.PackedMatrix(data, format, (rows, columns)),  # type: ignore[arg-type]
                bias=None if bias is None else _float(bias), out=out, epilogue="none" if bias is None else "bias")
    return out.view(*x.shape[:-1], rows)


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
    if _is_plain(x, data, bias):
        return _linear_packed_by_kernel(x, data, format, rows, columns, bias)
    return _linear_packed(x, data, format, rows, columns, bias)  # type: ignore[no-any-return]


def _rms_norm_by_kernel(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    out = _like(x)
    epsilon = epsilon if type(epsilon) is float and 0 <= epsilon <= 1 else _ops._number("epsilon", epsilon, float)
    _ops._rmsnorm((_dense(x), _float(weight), None, _dense(out), epsilon), None, None, True)
    return out


def _rms_norm_by_torch(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return _functional.rms_norm(x, (x.shape[-1],), weight, epsilon)


def _rms_norm_contiguous(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return _rms_norm_by_torch(x, weight, epsilon).contiguous()


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
    if _is_plain(x, weight):
        return _run("rms_norm", _rms_norm_by_kernel, _rms_norm_contiguous, x, weight, epsilon)
    return _rms_norm(x, weight, epsilon)  # type: ignore[no-any-return]


def _layer_norm_by_kernel(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    _require(math.isclose(epsilon, _LAYERNORM_EPSILON, rel_tol=1e-3), f"the kernel's epsilon is 1e-6, not {epsilon:g}")
    out = _like(x)
    _ops._layernorm((_dense(x), _float(weight), _float(bias), None, _dense(out)), None, None, True)
    return out


def _layer_norm_by_torch(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    return _functional.layer_norm(x, (x.shape[-1],), weight, bias, epsilon)


def _layer_norm_contiguous(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    return _layer_norm_by_torch(x, weight, bias, epsilon).contiguous()


@torch.library.custom_op("pascaline::layer_norm", mutates_args=())
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-6) -> Tensor:
    with torch.no_grad():
        return _run("layer_norm", _layer_norm_by_kernel, _layer_norm_contiguous, x, weight, bias, epsilon)


@_layer_norm.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-6) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_differentiable(_layer_norm, _layer_norm_by_torch)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-6) -> Tensor:
    """torch.nn.functional.layer_norm over the last dimension; the kernel's epsilon is 1e-6."""
    if _is_plain(x, weight, bias):
        return _run("layer_norm", _layer_norm_by_kernel, _layer_norm_contiguous, x, weight, bias, epsilon)
    return _layer_norm(x, weight, bias, epsilon)  # type: ignore[no-any-return]


def _swiglu_by_kernel(gate: Tensor, factor: Tensor) -> Tensor:
    _require(gate.shape == factor.shape, "the shapes differ")
    out = _like(gate)
    _ops._silu_multiply((_dense(gate), _dense(factor), _dense(out)), None, None, True)
    return out


def _swiglu_by_torch(gate: Tensor, factor: Tensor) -> Tensor:
    return _functional.silu(gate) * factor


def _swiglu_contiguous(gate: Tensor, factor: Tensor) -> Tensor:
    return _swiglu_by_torch(gate, factor).contiguous()


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
    if _is_plain(gate, factor):
        return _run("swiglu", _swiglu_by_kernel, _swiglu_contiguous, gate, factor)
    return _swiglu(gate, factor)  # type: ignore[no-any-return]


def _attention_by_kernel(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    _require(query.dim() == 4 and key.dim() == 4, "tensors have four dimensions here")
    _require(not is_causal or query.shape[2] == key.shape[2], "a causal mask is for as many queries as keys")
    out = query.new_empty(query.shape[0], query.shape[2], query.shape[1], query.shape[3])
    for one in range(query.shape[0]):  # rows of heads side by side, as projections give them
        q, k, v = (tensor[one].transpose(0, 1).contiguous() for tensor in (query, key, value))
        _ops.attention_prefill(q, k, v, out=out[one], causal=is_causal)
    return out.transpose(1, 2)


def _attention_by_torch(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    return _functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal,
                                                    enable_gqa=query.shape[-3] != key.shape[-3])


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
        return torch.empty_like(query)
    return query.new_empty(query.shape[0], query.shape[2], query.shape[1], query.shape[3]).transpose(1, 2)


_differentiable(_attention, _attention_by_torch)


def attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tensor:
    """`scaled_dot_product_attention` without a mask: [BATCH, HEADS, LENGTH, HEAD_DIM]."""
    if _is_plain(query, key, value):
        return _run("attention", _attention_by_kernel, _attention_contiguous, query, key, value, is_causal)
    return _attention(query, key, value, is_causal)  # type: ignore[no-any-return]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional's function of this name. The kernels compute it without mask, dropout and scale of one's own."""
    usual = scale is None or math.isclose(scale, 1 / math.sqrt(query.shape[-1]), rel_tol=1e-6)
    grouped = query.dim() == 4 and key.dim() == 4 and query.shape[1] != key.shape[1]
    if attn_mask is None and dropout_p == 0.0 and usual and (enable_gqa or not grouped):
        return attention(query, key, value, is_causal)
    reason = "there is a mask" if attn_mask is not None else "there is dropout" if dropout_p else "there is a scale"
    _stats.calls["attention"] += 1
    _stats.fallbacks["attention", reason] += 1
    return _functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                    enable_gqa=enable_gqa)


# ---- Modules ----


class Linear(torch.nn.Linear):
    """torch.nn.Linear, computed by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


class PackedLinear(torch.nn.Module):
    """A linear layer whose weight is in a packed format, made of one of floats. For inference."""

    data: Tensor
    bias: Optional[Tensor]

    def __init__(self, layer: torch.nn.Linear, format: _packed.Format) -> None:
        super().__init__()
        matrix = _packed.pack(layer.weight.detach().float().cpu().numpy(), format)
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


@dataclasses.dataclass
class Optimized:
    """What `optimize` did: names of modules with their classes, and with why they were left."""

    replaced: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    kept: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)


def _floats(weight: Any) -> None:
    _require(weight.dtype in (torch.float32, torch.float16), f"its weight is {str(weight.dtype).removeprefix('torch.')}; "
             "kernels compute in float32 and float16")


def _replacement(module: torch.nn.Module, quantize: Optional[_packed.Format]) -> Optional[torch.nn.Module]:
    """What takes a module's place; None for a class that is not looked at."""
    kind: Any = module
    if type(module) is torch.nn.Linear:
        _floats(module.weight)
        if quantize is not None:
            return PackedLinear(module, quantize)
        linear_layer = Linear.__new__(Linear)
        linear_layer.__dict__ = module.__dict__
        return linear_layer
    if type(module) is torch.nn.LayerNorm:
        _floats(module.weight if module.weight is not None else torch.empty(0))
        _require(module.weight is not None and module.bias is not None, "it has no weight or no bias")
        _require(len(module.normalized_shape) == 1, "it is over several dimensions")
        _require(math.isclose(module.eps, _LAYERNORM_EPSILON, rel_tol=1e-3), f"its epsilon is {module.eps:g}, not 1e-6")
        layer = LayerNorm.__new__(LayerNorm)
        layer.__dict__ = module.__dict__
        return layer
    if type(module).__name__.endswith("RMSNorm") and not isinstance(module, RMSNorm):
        epsilon = getattr(kind, "variance_epsilon", getattr(kind, "eps", None))
        _require(isinstance(getattr(kind, "weight", None), torch.nn.Parameter) and kind.weight.dim() == 1, "it has no weight")
        if type(module) is torch.nn.RMSNorm and epsilon is None:
            epsilon = torch.finfo(kind.weight.dtype).eps
        _require(isinstance(epsilon, float) and 1e-9 <= epsilon <= 1, f"its epsilon is {epsilon}, not from 1e-9 to 1")
        _floats(kind.weight)
        return RMSNorm(kind.weight, float(epsilon or 0))
    return None


def optimize(model: torch.nn.Module, *, quantize: Optional[_packed.Format] = None, skip: Sequence[str] = ()) -> Optimized:
    """Replaces linear layers and norms of a model in place by those above, which share its parameters.

    quantize: packs the weights of linear layers in that format ("q8_0", "q4_k" …); skip: names of modules to leave.
    Returns what was replaced, and what was left and why. Modules that are subclasses of PyTorch's, and so may compute
    something else, are left; of RMSNorm, whose classes are many, those with a weight and an epsilon are replaced by name:
    compare the model's results.
    """
    report = Optimized()
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            full, kind = f"{name}.{child_name}" if name else child_name, type(child).__name__
            if full in skip:
                report.kept.append((full, kind, "it is to be left"))
                continue
            try:
                replaced = _replacement(child, quantize)
            except (_Unsupported, Error) as error:
                report.kept.append((full, kind, str(error)))
                continue
            if replaced is not None:
                replaced.train(child.training)
                setattr(module, child_name, replaced)
                report.replaced.append((full, kind))
            elif not list(child.children()):
                report.kept.append((full, kind, "there is nothing to replace it by"))
    return report
