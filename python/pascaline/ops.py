"""Operations on arrays, each by the variant that is fastest for its shape as far as it was tuned.

Arrays are those of any library with DLPack (NumPy, PyTorch, CuPy, JAX) or `__cuda_array_interface__`, row by row, and are
used where they lie, without a copy; addresses are multiples of 16 bytes. `out` is written, and returned; without it an
array is made by the library of the first argument. What is in host memory is computed by the processor, with
`device="emulator"` by the kernels on the emulated device; what is on a GPU by kernels there, after what its default
stream was given, and has been computed on return.

Raises TypeError for what is not an array of a supported element type, ArgumentError for shapes, strides and devices that
do not fit, both naming the argument.

Written by python/make_ops.py: change its table, not this file.
"""

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
    if not isinstance(value, (int, float) if kind is float else kind) or (kind is not bool and isinstance(value, bool)):
        raise TypeError(f"{name}: {type(value).__name__} is not a{'n int' if kind is int else ' ' + kind.__name__}")
    number: Any = value
    if abs(number) > 2**53 or number != number:
        raise ArgumentError(f"{name}: {number} is out of range")
    return float(number)


def _device(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"device: {type(value).__name__} is not a str")
    return value or ""


def _new(name: str, like: Any, arguments: dict[str, Any], shape: Any) -> Any:
    """An array of the library, element type and device of `like`."""
    for argument, value in arguments.items():
        if value is not None and not hasattr(value, "shape"):
            raise TypeError(f"{argument}: {type(value).__name__} is not an array")
    try:
        extents = tuple(shape())
    except IndexError:
        needed = ", ".join(arguments)
        raise ArgumentError(f"{name}: {needed} do not have the dimensions that it takes; see its help") from None
    if hasattr(like, "new_empty"):  # PyTorch
        return like.new_empty(extents)
    if hasattr(like, "__array_namespace__"):  # the array API standard
        library = like.__array_namespace__()
        return library.empty(extents, dtype=like.dtype, device=like.device)
    import numpy

    if isinstance(like, numpy.ndarray):
        return numpy.empty(extents, dtype=like.dtype)
    raise TypeError(f"out: {type(like).__name__} cannot make an array for the result; pass one")


def matmul(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    epilogue: Epilogue = "none",
    device: str | None = None,
) -> Array:
    """c = epilogue(a · bᵀ): a linear layer.

    a: [M, K], float32 or float16.
    b: [N, K], float32, float16 or bfloat16, or a packed.PackedMatrix: the weight.
    bias: [N], float32; where the epilogue adds it.
    residual: [M, N] of a's type; where the epilogue adds it.
    out: [M, N] of a's type, [M, N/2] for swiglu; may be the residual.
    epilogue: what is done with the sums before they are stored.
    """
    if packed.needs_rounding(a, b, device):
        return packed.matmul(a, b, bias=bias, residual=residual, out=out, epilogue=epilogue, device=device)
    numbers: dict[str, float] = {"epilogue": _epilogue(epilogue)}
    tensors: dict[str, Any] = {"a": a, "b": b, "bias": bias, "residual": residual}
    if out is None:
        out = _new("matmul", a, tensors, lambda: (a.shape[0], b.shape[0] // (2 if epilogue == 'swiglu' else 1)))
    tensors["out"] = out
    _native.run_operation("matmul", tensors, numbers, _device(device))
    return out


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
) -> Array:
    """c = epilogue(rmsnorm(a) · bᵀ) for up to 8 rows, in one kernel.

    a: [M, K], float32 or float16; M at most 8.
    norm: [K], float32: the norm's weight.
    b: [N, K], float32, float16 or bfloat16, or a packed.PackedMatrix.
    bias: as for matmul.
    residual: as for matmul.
    out: as for matmul.
    epilogue: what is done with the sums before they are stored.
    epsilon: what the norm adds to the mean of squares, from 1e-9 to 1.
    """
    numbers: dict[str, float] = {"epilogue": _epilogue(epilogue), "epsilon": _number("epsilon", epsilon, float)}
    tensors: dict[str, Any] = {"a": a, "norm": norm, "b": b, "bias": bias, "residual": residual}
    if out is None:
        out = _new("normed_matmul", a, tensors, lambda: (a.shape[0], b.shape[0] // (2 if epilogue == 'swiglu' else 1)))
    tensors["out"] = out
    _native.run_operation("normed_matmul", tensors, numbers, _device(device))
    return out


def mlp(
    x: Array,
    norm: Array,
    gate_up: Array,
    down: Array,
    *,
    out: Array | None = None,
    epsilon: float = 1e-06,
    device: str | None = None,
) -> Array:
    """A decoder's feed-forward block for up to 8 rows: x + (SiLU(g) · u) · downᵀ, where g and u are the even and the odd columns of rmsnorm(x) · gate_upᵀ.

    x: [M, HIDDEN], float32 or float16; M at most 8.
    norm: [HIDDEN], float32.
    gate_up: [2 · INTERMEDIATE, HIDDEN]: gate and factor in alternate rows.
    down: [HIDDEN, INTERMEDIATE], of gate_up's type.
    out: as x; may be x.
    epsilon: what the norm adds to the mean of squares, from 1e-9 to 1.
    """
    numbers: dict[str, float] = {"epsilon": _number("epsilon", epsilon, float)}
    tensors: dict[str, Any] = {"x": x, "norm": norm, "gate_up": gate_up, "down": down}
    if out is None:
        out = _new("mlp", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("mlp", tensors, numbers, _device(device))
    return out


def patch_embed(
    patches: Array,
    weight: Array,
    bias: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """patches · weightᵀ + bias.

    patches: [N, P], float32 or float16.
    weight: [WIDTH, P].
    bias: [WIDTH], float32.
    out: [N, WIDTH] of the patches' type.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"patches": patches, "weight": weight, "bias": bias}
    if out is None:
        out = _new("patch_embed", patches, tensors, lambda: (patches.shape[0], weight.shape[0]))
    tensors["out"] = out
    _native.run_operation("patch_embed", tensors, numbers, _device(device))
    return out


def rmsnorm(
    x: Array,
    weight: Array,
    *,
    residual: Array | None = None,
    out: Array | None = None,
    epsilon: float = 1e-06,
    device: str | None = None,
) -> Array:
    """s / √(mean(s²) + epsilon) · weight for each row, with s = x, or x + residual, which then receives s.

    x: [ROWS, WIDTH], float32 or float16.
    weight: [WIDTH], float32.
    residual: [ROWS, WIDTH] of x's type; changed.
    out: [ROWS, WIDTH], float32 or float16.
    epsilon: what the norm adds to the mean of squares, from 1e-9 to 1.
    """
    numbers: dict[str, float] = {"epsilon": _number("epsilon", epsilon, float)}
    tensors: dict[str, Any] = {"x": x, "weight": weight, "residual": residual}
    if out is None:
        out = _new("rmsnorm", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("rmsnorm", tensors, numbers, _device(device))
    return out


def layernorm(
    x: Array,
    weight: Array,
    bias: Array,
    *,
    residual: Array | None = None,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """(s − mean) / √(variance + 1e-6) · weight + bias for each row, with s as for rmsnorm.

    x: [ROWS, WIDTH], float32 or float16.
    weight: [WIDTH], float32.
    bias: [WIDTH], float32.
    residual: [ROWS, WIDTH] of x's type; changed.
    out: [ROWS, WIDTH], float32 or float16.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"x": x, "weight": weight, "bias": bias, "residual": residual}
    if out is None:
        out = _new("layernorm", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("layernorm", tensors, numbers, _device(device))
    return out


def softmax(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """exp(x − max) / Σ exp(x − max) for each row.

    x: [ROWS, WIDTH], float32 or float16.
    out: as x.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"x": x}
    if out is None:
        out = _new("softmax", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("softmax", tensors, numbers, _device(device))
    return out


def add(
    a: Array,
    b: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """a + b.

    a: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    b: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as a, or another of these types.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"a": a, "b": b}
    if out is None:
        out = _new("add", a, tensors, lambda: a.shape)
    tensors["out"] = out
    _native.run_operation("add", tensors, numbers, _device(device))
    return out


def convert(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """x in the element type of `out`: a conversion, or a copy.

    x: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as x, or another of these types.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"x": x}
    if out is None:
        out = _new("convert", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("convert", tensors, numbers, _device(device))
    return out


def silu_multiply(
    gate: Array,
    factor: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """SiLU(gate) · factor.

    gate: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    factor: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as gate, or another of these types.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"gate": gate, "factor": factor}
    if out is None:
        out = _new("silu_multiply", gate, tensors, lambda: gate.shape)
    tensors["out"] = out
    _native.run_operation("silu_multiply", tensors, numbers, _device(device))
    return out


def gelu_multiply(
    gate: Array,
    factor: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """GELU(gate) · factor, by tanh.

    gate: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    factor: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as gate, or another of these types.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"gate": gate, "factor": factor}
    if out is None:
        out = _new("gelu_multiply", gate, tensors, lambda: gate.shape)
    tensors["out"] = out
    _native.run_operation("gelu_multiply", tensors, numbers, _device(device))
    return out


def gelu_tanh(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """GELU by tanh.

    x: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as x, or another of these types.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"x": x}
    if out is None:
        out = _new("gelu_tanh", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("gelu_tanh", tensors, numbers, _device(device))
    return out


def gelu_erf(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """GELU by erf.

    x: float32, float16 or bfloat16; any shape of 1 to 4 dimensions.
    out: as x, or another of these types.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"x": x}
    if out is None:
        out = _new("gelu_erf", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("gelu_erf", tensors, numbers, _device(device))
    return out


def transpose(
    x: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """xᵀ.

    x: [ROWS, COLUMNS], float32 or float16.
    out: [COLUMNS, ROWS] of x's type.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"x": x}
    if out is None:
        out = _new("transpose", x, tensors, lambda: (x.shape[1], x.shape[0]))
    tensors["out"] = out
    _native.run_operation("transpose", tensors, numbers, _device(device))
    return out


def gather(
    table: Array,
    indices: Array,
    *,
    out: Array | None = None,
    device: str | None = None,
) -> Array:
    """Row indices[t] of a table for each t; zeros for an index that is not a row.

    table: [ROWS, WIDTH], float32, float16 or bfloat16, or a packed.PackedMatrix.
    indices: [TOKENS], int32.
    out: [TOKENS, WIDTH], float32 or float16.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"table": table, "indices": indices}
    if out is None:
        out = _new("gather", table, tensors, lambda: (indices.shape[0], table.shape[1]))
    tensors["out"] = out
    _native.run_operation("gather", tensors, numbers, _device(device))
    return out


def rope_vision(
    qkv: Array,
    cosine: Array,
    sine: Array,
    positions: Array,
    *,
    device: str | None = None,
) -> Array:
    """Rotates the query and key heads of patches in place and returns them.

    qkv: [PATCHES, 3, HEADS, HEAD_DIM], float32 or float16; changed.
    cosine: [POSITIONS, HEAD_DIM/4], float32.
    sine: as cosine.
    positions: [2, PATCHES], int32: row and column of each patch.
    """
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"qkv": qkv, "cosine": cosine, "sine": sine, "positions": positions}
    _native.run_operation("rope_vision", tensors, numbers, _device(device))
    return qkv


def position_embedding(
    x: Array,
    table: Array,
    *,
    out: Array | None = None,
    grid_h: int,
    grid_w: int,
    merge: int = 2,
    device: str | None = None,
) -> Array:
    """x + a learned square grid, stretched to grid_h × grid_w patches by bilinear interpolation.

    x: [grid_h · grid_w, WIDTH], float32 or float16.
    table: [SIDE, SIDE, WIDTH], float32.
    out: as x.
    grid_h: patches from top to bottom.
    grid_w: patches from left to right.
    merge: patches come in blocks of merge × merge.
    """
    numbers: dict[str, float] = {"grid_h": _number("grid_h", grid_h, int), "grid_w": _number("grid_w", grid_w, int), "merge": _number("merge", merge, int)}
    tensors: dict[str, Any] = {"x": x, "table": table}
    if out is None:
        out = _new("position_embedding", x, tensors, lambda: x.shape)
    tensors["out"] = out
    _native.run_operation("position_embedding", tensors, numbers, _device(device))
    return out


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
) -> Array:
    """softmax(q · kᵀ / √HEAD_DIM + mask) · v for each head.

    q: [QUERIES, HEADS, HEAD_DIM], float32 or float16.
    k: [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8.
    v: as k.
    k_scales: [KEYS, KV_HEADS], float32; with int8 only.
    v_scales: as k_scales.
    segment_starts: [SEGMENTS + 1], int32: a query sees its own segment; not with causal.
    out: as q.
    causal: query i sees keys 0 to KEYS − QUERIES + i.
    """
    numbers: dict[str, float] = {"causal": _number("causal", causal, bool)}
    tensors: dict[str, Any] = {"q": q, "k": k, "v": v, "k_scales": k_scales, "v_scales": v_scales, "segment_starts": segment_starts}
    if out is None:
        out = _new("attention_prefill", q, tensors, lambda: q.shape)
    tensors["out"] = out
    _native.run_operation("attention_prefill", tensors, numbers, _device(device))
    return out


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
    numbers: dict[str, float] = {}
    tensors: dict[str, Any] = {"q": q, "k": k, "v": v, "length": length, "k_scales": k_scales, "v_scales": v_scales}
    if out is None:
        out = _new("attention_decode", q, tensors, lambda: q.shape)
    tensors["out"] = out
    _native.run_operation("attention_decode", tensors, numbers, _device(device))
    return out
