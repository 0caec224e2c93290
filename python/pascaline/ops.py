"""Operations on arrays, each by the variant that is fastest for its shape as far as it was tuned.

Arrays are those of any library with DLPack (NumPy, PyTorch, CuPy, JAX) or `__cuda_array_interface__`, row by row, and are
used where they lie, without a copy; addresses are multiples of 16 bytes. `out` is written, and returned; without it an
array is made by the library of the first argument. What is in host memory is computed by the processor, with
`device="emulator"` by the kernels on the emulated device; what is on a GPU by kernels there.

On a GPU a call works on the current stream of the arrays' library (PyTorch, CuPy), else on the stream that
`__cuda_array_interface__` tells, else on the legacy default stream, or on `stream`: a stream of one of these libraries, or
a handle. It returns when its kernel is queued, as PyTorch's functions do; what a kernel does wrong is raised by a later
call. Only the first call with new shapes and types waits: it compiles, loads and allocates. It cannot be captured into a
CUDA graph, later ones can. With `stream`, `out` must be given, and arrays stay in use until that stream is done.

Raises TypeError for what is not an array of a supported element type, ArgumentError for shapes, strides and devices that
do not fit, both naming the argument.

Written by python/make_ops.py: change its table, not this file.
"""

import numbers
import os
from typing import Any, Literal, Union

from . import _native, packed
from ._errors import ArgumentError
from ._words import path_text

Array = Any
"""Whatever has `__dlpack__` or `__cuda_array_interface__`."""

Epilogue = Literal["none", "bias", "bias_gelu_tanh", "bias_gelu_erf", "residual", "swiglu", "bias_residual"]
"""What matmul does with its sums: adds bias, residual or both, GELU of sum and bias, or SiLU(column 2i) · column 2i+1."""

_EPILOGUES = ("none", "bias", "bias_gelu_tanh", "bias_gelu_erf", "residual", "swiglu", "bias_residual")


def use_database(db: Union[str, "os.PathLike[str]", None]) -> None:
    """Takes winners from this database from now on; None: none, all run in their default configuration. Until it is
    called, they come from the user's default database, if there is one."""
    _native.use_database(path_text("db", db) or None)


def _epilogue(value: Any) -> int:
    if not isinstance(value, str) or value not in _EPILOGUES:
        raise ArgumentError(f"epilogue: there is no {value!r}; it is one of {', '.join(_EPILOGUES)}")
    return _EPILOGUES.index(value)


def _number(name: str, value: Any, kind: type) -> float:
    fits = {float: numbers.Real, int: numbers.Integral}.get(kind, bool)  # also those of NumPy
    if not isinstance(value, fits) or (kind is not bool and isinstance(value, bool)):
        raise TypeError(f"{name}: {type(value).__name__} is not a{'n int' if kind is int else ' ' + kind.__name__}")
    number: Any = value
    if abs(number) > 2**53 or number != number:
        raise ArgumentError(f"{name}: {number} is out of range")
    return float(number)


def _device(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"device: {type(value).__name__} is not a str")
    return value or ""


def _refuse(name: str, arguments: dict[str, Any]) -> None:
    """Says what is wrong with arguments from which the shape of the result does not follow."""
    for argument, value in arguments.items():
        try:
            if value is not None:
                value.shape
        except AttributeError:
            raise TypeError(f"{argument}: {type(value).__name__} is not an array") from None
        except (RuntimeError, ValueError) as error:  # nested tensors of PyTorch, for instance
            raise TypeError(f"{argument}: {type(value).__name__} has no shape: {str(error).splitlines()[0]}") from None
    raise ArgumentError(f"{name}: {', '.join(arguments)} do not have the dimensions that it takes; see its help")


def _new(like: Any, extents: Any, stream: Any) -> Any:
    """An array of the library, element type and device of `like`."""
    if stream is not None:
        raise ArgumentError("out: with stream, pass an array for the result: libraries make theirs for their current stream")
    if hasattr(like, "new_empty"):  # PyTorch
        try:
            return like.new_empty(extents)
        except RuntimeError:
            if str(like.layout) == "torch.strided":
                raise
            raise TypeError(f"out: a tensor of {like.layout} cannot make an array for the result; pass one") from None
    extents = tuple(extents)
    if hasattr(like, "__array_namespace__"):  # the array API standard
        library = like.__array_namespace__()
        return library.empty(extents, dtype=like.dtype, device=like.device)
    import numpy

    if isinstance(like, numpy.ndarray):
        return numpy.empty(extents, dtype=like.dtype)
    raise TypeError(f"out: {type(like).__name__} cannot make an array for the result; pass one")


_matmul = _native.Operation("matmul", ["a", "b", "bias", "residual", "out", "epilogue"]).run


def matmul(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    epilogue: Epilogue = "none",
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """c = epilogue(a · bᵀ): a linear layer.

    a: [M, K], float32 or float16.
    b: [N, K], float32, float16 or bfloat16, or a packed.PackedMatrix: the weight.
    bias: [N], float32; where the epilogue adds it.
    residual: [M, N] of a's type; where the epilogue adds it.
    out: [M, N] of a's type, [M, N/2] for swiglu; may be the residual.
    epilogue: what is done with the sums before they are stored.
    """
    if isinstance(b, packed.PackedMatrix) and packed.needs_rounding(a, b, device):
        return packed.matmul(a, b, bias=bias, residual=residual, out=out, epilogue=epilogue, device=device, stream=stream)
    if out is None:
        try:
            extents = (a.shape[0], b.shape[0] // (2 if epilogue == 'swiglu' else 1))
        except (AttributeError, IndexError, RuntimeError):
            _refuse("matmul", {"a": a, "b": b, "bias": bias, "residual": residual})
            raise
        out = _new(a, extents, stream)
    _matmul((a, b, bias, residual, out, (0 if epilogue == "none" else _epilogue(epilogue))), None if device is None else _device(device), stream)
    return out


_normed_matmul = _native.Operation("normed_matmul", ["a", "norm", "b", "bias", "residual", "out", "epilogue", "epsilon"]).run


def normed_matmul(
    a: Array,
    norm: Array,
    b: Array,
    *,
    bias: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    epilogue: Epilogue = "none",
    epsilon: float = 1e-06,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """c = epilogue(rmsnorm(a) · bᵀ) for up to 8 rows, in one kernel.

    a: [M, K], float32 or float16; M at most 8.
    norm: [K], float32: the norm's weight.
    b: [N, K], float32, float16 or bfloat16, or a packed.PackedMatrix.
    bias: as for matmul.
    residual: as for matmul.
    out: as for matmul.
    epilogue: what is done with the sums before they are stored.
    epsilon: what the norm adds to the mean of squares, from 1e-9 to 1, a whole number of billionths.
    """
    if out is None:
        try:
            extents = (a.shape[0], b.shape[0] // (2 if epilogue == 'swiglu' else 1))
        except (AttributeError, IndexError, RuntimeError):
            _refuse("normed_matmul", {"a": a, "norm": norm, "b": b, "bias": bias, "residual": residual})
            raise
        out = _new(a, extents, stream)
    _normed_matmul((a, norm, b, bias, residual, out, (0 if epilogue == "none" else _epilogue(epilogue)), (epsilon if type(epsilon) is float and 0 <= epsilon <= 1 else _number("epsilon", epsilon, float))), None if device is None else _device(device), stream)
    return out


_mlp = _native.Operation("mlp", ["x", "norm", "gate_up", "down", "out", "epsilon"]).run


def mlp(
    x: Array,
    norm: Array,
    gate_up: Array,
    down: Array,
    *,
    out: Array | None = None,
    epsilon: float = 1e-06,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """A decoder's feed-forward block for up to 8 rows: x + (SiLU(g) · u) · downᵀ, where g and u are the even and the odd columns of rmsnorm(x) · gate_upᵀ.

    x: [M, HIDDEN], float32 or float16; M at most 8.
    norm: [HIDDEN], float32.
    gate_up: [2 · INTERMEDIATE, HIDDEN]: gate and factor in alternate rows.
    down: [HIDDEN, INTERMEDIATE], of gate_up's type.
    out: as x; may be x.
    epsilon: what the norm adds to the mean of squares, from 1e-9 to 1, a whole number of billionths.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("mlp", {"x": x, "norm": norm, "gate_up": gate_up, "down": down})
            raise
        out = _new(x, extents, stream)
    _mlp((x, norm, gate_up, down, out, (epsilon if type(epsilon) is float and 0 <= epsilon <= 1 else _number("epsilon", epsilon, float))), None if device is None else _device(device), stream)
    return out


_patch_embed = _native.Operation("patch_embed", ["patches", "weight", "bias", "out"]).run


def patch_embed(
    patches: Array,
    weight: Array,
    bias: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """patches · weightᵀ + bias.

    patches: [N, P], float32 or float16.
    weight: [WIDTH, P].
    bias: [WIDTH], float32.
    out: [N, WIDTH] of the patches' type.
    """
    if out is None:
        try:
            extents = (patches.shape[0], weight.shape[0])
        except (AttributeError, IndexError, RuntimeError):
            _refuse("patch_embed", {"patches": patches, "weight": weight, "bias": bias})
            raise
        out = _new(patches, extents, stream)
    _patch_embed((patches, weight, bias, out), None if device is None else _device(device), stream)
    return out


_rmsnorm = _native.Operation("rmsnorm", ["x", "weight", "residual", "out", "epsilon"]).run


def rmsnorm(
    x: Array,
    weight: Array,
    *,
    residual: Array | None = None,
    out: Array | None = None,
    epsilon: float = 1e-06,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """s / √(mean(s²) + epsilon) · weight for each row, with s = x, or x + residual, which then receives s.

    x: [ROWS, WIDTH], float32 or float16.
    weight: [WIDTH], float32.
    residual: [ROWS, WIDTH] of x's type; changed.
    out: [ROWS, WIDTH], float32 or float16.
    epsilon: what the norm adds to the mean of squares, from 1e-9 to 1, a whole number of billionths.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("rmsnorm", {"x": x, "weight": weight, "residual": residual})
            raise
        out = _new(x, extents, stream)
    _rmsnorm((x, weight, residual, out, (epsilon if type(epsilon) is float and 0 <= epsilon <= 1 else _number("epsilon", epsilon, float))), None if device is None else _device(device), stream)
    return out


_layernorm = _native.Operation("layernorm", ["x", "weight", "bias", "residual", "out"]).run


def layernorm(
    x: Array,
    weight: Array,
    bias: Array,
    *,
    residual: Array | None = None,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """(s − mean) / √(variance + 1e-6) · weight + bias for each row, with s as for rmsnorm.

    x: [ROWS, WIDTH], float32 or float16.
    weight: [WIDTH], float32.
    bias: [WIDTH], float32.
    residual: [ROWS, WIDTH] of x's type; changed.
    out: [ROWS, WIDTH], float32 or float16.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("layernorm", {"x": x, "weight": weight, "bias": bias, "residual": residual})
            raise
        out = _new(x, extents, stream)
    _layernorm((x, weight, bias, residual, out), None if device is None else _device(device), stream)
    return out


_softmax = _native.Operation("softmax", ["x", "out"]).run


def softmax(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """exp(x − max) / Σ exp(x − max) for each row.

    x: [ROWS, WIDTH], float32 or float16.
    out: as x.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("softmax", {"x": x})
            raise
        out = _new(x, extents, stream)
    _softmax((x, out), None if device is None else _device(device), stream)
    return out


_add = _native.Operation("add", ["a", "b", "out"]).run


def add(
    a: Array,
    b: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """a + b.

    a: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    b: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as a, or another of these types.
    """
    if out is None:
        try:
            extents = a.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("add", {"a": a, "b": b})
            raise
        out = _new(a, extents, stream)
    _add((a, b, out), None if device is None else _device(device), stream)
    return out


_convert = _native.Operation("convert", ["x", "out"]).run


def convert(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """x in the element type of `out`: a conversion, or a copy.

    x: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as x, or another of these types.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("convert", {"x": x})
            raise
        out = _new(x, extents, stream)
    _convert((x, out), None if device is None else _device(device), stream)
    return out


_silu_multiply = _native.Operation("silu_multiply", ["gate", "factor", "out"]).run


def silu_multiply(
    gate: Array,
    factor: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """SiLU(gate) · factor.

    gate: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    factor: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as gate, or another of these types.
    """
    if out is None:
        try:
            extents = gate.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("silu_multiply", {"gate": gate, "factor": factor})
            raise
        out = _new(gate, extents, stream)
    _silu_multiply((gate, factor, out), None if device is None else _device(device), stream)
    return out


_gelu_multiply = _native.Operation("gelu_multiply", ["gate", "factor", "out"]).run


def gelu_multiply(
    gate: Array,
    factor: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """GELU(gate) · factor, by tanh.

    gate: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    factor: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as gate, or another of these types.
    """
    if out is None:
        try:
            extents = gate.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("gelu_multiply", {"gate": gate, "factor": factor})
            raise
        out = _new(gate, extents, stream)
    _gelu_multiply((gate, factor, out), None if device is None else _device(device), stream)
    return out


_gelu_tanh = _native.Operation("gelu_tanh", ["x", "out"]).run


def gelu_tanh(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """GELU by tanh.

    x: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as x, or another of these types.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("gelu_tanh", {"x": x})
            raise
        out = _new(x, extents, stream)
    _gelu_tanh((x, out), None if device is None else _device(device), stream)
    return out


_gelu_erf = _native.Operation("gelu_erf", ["x", "out"]).run


def gelu_erf(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """GELU by erf.

    x: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as x, or another of these types.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("gelu_erf", {"x": x})
            raise
        out = _new(x, extents, stream)
    _gelu_erf((x, out), None if device is None else _device(device), stream)
    return out


_transpose = _native.Operation("transpose", ["x", "out"]).run


def transpose(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """xᵀ.

    x: [ROWS, COLUMNS], float32 or float16.
    out: [COLUMNS, ROWS] of x's type.
    """
    if out is None:
        try:
            extents = (x.shape[1], x.shape[0])
        except (AttributeError, IndexError, RuntimeError):
            _refuse("transpose", {"x": x})
            raise
        out = _new(x, extents, stream)
    _transpose((x, out), None if device is None else _device(device), stream)
    return out


_gather = _native.Operation("gather", ["table", "indices", "out"]).run


def gather(
    table: Array,
    indices: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """Row indices[t] of a table for each t; zeros for an index that is not a row.

    table: [ROWS, WIDTH], float32, float16 or bfloat16, or a packed.PackedMatrix.
    indices: [TOKENS], int32.
    out: [TOKENS, WIDTH], float32 or float16; without it one of the table's type is made, or of float32 if that is another.
    """
    if out is None and stream is None and hasattr(table, "shape") and hasattr(indices, "shape"):
        out = packed.gathered(table, indices)
    if out is None:
        try:
            extents = (indices.shape[0], table.shape[1])
        except (AttributeError, IndexError, RuntimeError):
            _refuse("gather", {"table": table, "indices": indices})
            raise
        out = _new(table, extents, stream)
    _gather((table, indices, out), None if device is None else _device(device), stream)
    return out


_rope_vision = _native.Operation("rope_vision", ["qkv", "cosine", "sine", "positions"]).run


def rope_vision(
    qkv: Array,
    cosine: Array,
    sine: Array,
    positions: Array,
    *,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """Rotates the query and key heads of patches in place and returns them.

    qkv: [PATCHES, 3, HEADS, HEAD_DIM], float32 or float16; changed.
    cosine: [POSITIONS, HEAD_DIM/4], float32.
    sine: as cosine.
    positions: [2, PATCHES], int32: row and column of each patch.
    """
    _rope_vision((qkv, cosine, sine, positions), None if device is None else _device(device), stream)
    return qkv


_position_embedding = _native.Operation("position_embedding", ["x", "table", "out", "grid_h", "grid_w", "merge"]).run


def position_embedding(
    x: Array,
    table: Array,
    *,
    out: Array | None = None,
    grid_h: int,
    grid_w: int,
    merge: int = 2,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """x + a learned square grid, stretched to grid_h × grid_w patches by bilinear interpolation.

    x: [grid_h · grid_w, WIDTH], float32 or float16.
    table: [SIDE, SIDE, WIDTH], float32.
    out: as x.
    grid_h: patches from top to bottom.
    grid_w: patches from left to right.
    merge: patches come in blocks of merge × merge.
    """
    if out is None:
        try:
            extents = x.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("position_embedding", {"x": x, "table": table})
            raise
        out = _new(x, extents, stream)
    _position_embedding((x, table, out, _number("grid_h", grid_h, int), _number("grid_w", grid_w, int), _number("merge", merge, int)), None if device is None else _device(device), stream)
    return out


_attention_prefill = _native.Operation("attention_prefill", ["q", "k", "v", "k_scales", "v_scales", "segment_starts", "out", "causal"]).run


def attention_prefill(
    q: Array,
    k: Array,
    v: Array,
    *,
    k_scales: Array | None = None,
    v_scales: Array | None = None,
    segment_starts: Array | None = None,
    out: Array | None = None,
    causal: bool = True,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """softmax(q · kᵀ / √HEAD_DIM + mask) · v for each head.

    q: [QUERIES, HEADS, HEAD_DIM], float32 or float16.
    k: [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8.
    v: as k.
    k_scales: [KEYS, KV_HEADS], float32; with int8 only.
    v_scales: as k_scales.
    segment_starts: [SEGMENTS + 1], int32, ascending from 0 to QUERIES, which is not looked at on a GPU: a query sees its own segment; not with causal.
    out: as q.
    causal: query i sees keys 0 to KEYS − QUERIES + i.
    """
    if out is None:
        try:
            extents = q.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("attention_prefill", {"q": q, "k": k, "v": v, "k_scales": k_scales, "v_scales": v_scales, "segment_starts": segment_starts})
            raise
        out = _new(q, extents, stream)
    _attention_prefill((q, k, v, k_scales, v_scales, segment_starts, out, (causal if type(causal) is bool else _number("causal", causal, bool))), None if device is None else _device(device), stream)
    return out


_attention_decode = _native.Operation("attention_decode", ["q", "k", "v", "length", "k_scales", "v_scales", "out"]).run


def attention_decode(
    q: Array,
    k: Array,
    v: Array,
    length: Array,
    *,
    k_scales: Array | None = None,
    v_scales: Array | None = None,
    out: Array | None = None,
    device: str | None = None,
    stream: Any = None,
) -> Array:
    """The same for one query a head against the first `length` rows of a cache.

    q: [HEADS, HEAD_DIM], float32 or float16.
    k: [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8.
    v: as k.
    length: [1], int32, where the other arrays are.
    k_scales: [KEYS, KV_HEADS], float32; with int8 only.
    v_scales: as k_scales.
    out: as q.
    """
    if out is None:
        try:
            extents = q.shape
        except (AttributeError, IndexError, RuntimeError):
            _refuse("attention_decode", {"q": q, "k": k, "v": v, "length": length, "k_scales": k_scales, "v_scales": v_scales})
            raise
        out = _new(q, extents, stream)
    _attention_decode((q, k, v, length, k_scales, v_scales, out), None if device is None else _device(device), stream)
    return out
