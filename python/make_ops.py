#!/usr/bin/env python3
"""Writes the package's ops.py from the table below: `make_ops.py FILE`, which the build calls. A tensor is (name, kind, what it is); kinds: in, optional, change, optional_change, out. `shape` and `dtype` are
those of an output that is not given, as expressions over the other arguments."""

import pathlib
import sys

FLOATS = "float32 or float16"
ANY = "float32, float16 or bfloat16"
EPSILON = ("epsilon", "float", 1e-6, "what the norm adds to the mean of squares, from 1e-9 to 1, a whole number of billionths")
EPILOGUE = ("epilogue", "Epilogue", '"none"', "what is done with the sums before they are stored")
PRODUCT_SHAPE = "(a.shape[0], b.shape[0] // (2 if epilogue == 'swiglu' else 1))"


# Many rows are rounded before a kernel multiplies them with a packed weight.
GATHERED = """    if out is None and stream is None and hasattr(table, "shape") and hasattr(indices, "shape"):
        out = packed.gathered(table, indices)"""
PACKED = """    if isinstance(b, packed.PackedMatrix) and packed.needs_rounding(a, b, device):
        return packed.matmul(a, b, bias=bias, residual=residual, out=out, epilogue=epilogue, device=device, stream=stream)"""


def elementwise(name, text, *operands):
    first = operands[0]
    tensors = [(operand, "in", f"{ANY}; any shape of 1 to 4 dimensions") for operand in operands]
    return (name, text, [*tensors, ("out", "out", f"as {first}, or another of these types")], [], f"{first}.shape",
            f"{first}")


OPERATIONS = [
    ("matmul", "c = epilogue(a · bᵀ): a linear layer.",
     [("a", "in", f"[M, K], {FLOATS}"), ("b", "in", f"[N, K], {ANY}, or a packed.PackedMatrix: the weight"),
      ("bias", "optional", "[N], float32; where the epilogue adds it"),
      ("residual", "optional", "[M, N] of a's type; where the epilogue adds it"),
      ("out", "out", "[M, N] of a's type, [M, N/2] for swiglu; may be the residual")],
     [EPILOGUE], PRODUCT_SHAPE, "a", PACKED),
    ("normed_matmul", "c = epilogue(rmsnorm(a) · bᵀ) for up to 8 rows, in one kernel.",
     [("a", "in", f"[M, K], {FLOATS}; M at most 8"), ("norm", "in", "[K], float32: the norm's weight"),
      ("b", "in", f"[N, K], {ANY}, or a packed.PackedMatrix"), ("bias", "optional", "as for matmul"), ("residual", "optional", "as for matmul"),
      ("out", "out", "as for matmul")],
     [EPILOGUE, EPSILON], PRODUCT_SHAPE, "a"),
    ("mlp", "A decoder's feed-forward block for up to 8 rows: x + (SiLU(g) · u) · downᵀ, where g and u are the even and "
     "the odd columns of rmsnorm(x) · gate_upᵀ.",
     [("x", "in", f"[M, HIDDEN], {FLOATS}; M at most 8"), ("norm", "in", "[HIDDEN], float32"),
      ("gate_up", "in", "[2 · INTERMEDIATE, HIDDEN]: gate and factor in alternate rows"),
      ("down", "in", "[HIDDEN, INTERMEDIATE], of gate_up's type"), ("out", "out", "as x; may be x")],
     [EPSILON], "x.shape", "x"),
    ("patch_embed", "patches · weightᵀ + bias.",
     [("patches", "in", f"[N, P], {FLOATS}"), ("weight", "in", "[WIDTH, P]"), ("bias", "in", "[WIDTH], float32"),
      ("out", "out", "[N, WIDTH] of the patches' type")], [], "(patches.shape[0], weight.shape[0])", "patches"),
    ("rmsnorm", "s / √(mean(s²) + epsilon) · weight for each row, with s = x, or x + residual, which then receives s.",
     [("x", "in", f"[ROWS, WIDTH], {FLOATS}"), ("weight", "in", "[WIDTH], float32"),
      ("residual", "optional_change", "[ROWS, WIDTH] of x's type"), ("out", "out", f"[ROWS, WIDTH], {FLOATS}")],
     [EPSILON], "x.shape", "x"),
    ("layernorm", "(s − mean) / √(variance + 1e-6) · weight + bias for each row, with s as for rmsnorm.",
     [("x", "in", f"[ROWS, WIDTH], {FLOATS}"), ("weight", "in", "[WIDTH], float32"), ("bias", "in", "[WIDTH], float32"),
      ("residual", "optional_change", "[ROWS, WIDTH] of x's type"), ("out", "out", f"[ROWS, WIDTH], {FLOATS}")],
     [], "x.shape", "x"),
    ("softmax", "exp(x − max) / Σ exp(x − max) for each row.",
     [("x", "in", f"[ROWS, WIDTH], {FLOATS}"), ("out", "out", "as x")], [], "x.shape", "x"),
    ("log_probability", "x[r, targets[r]] − log Σ exp(x[r]) for each row r of logits; 0 for a target that is not a column.",
     [("x", "in", f"[ROWS, WIDTH], {FLOATS}"), ("targets", "in", "[ROWS], int32"),
      ("out", "out", "[ROWS], float32; to be given where x is float16")], [], "x.shape[:1]", "x"),
    elementwise("add", "a + b.", "a", "b"),
    elementwise("convert", "x in the element type of `out`: a conversion, or a copy.", "x"),
    elementwise("silu_multiply", "SiLU(gate) · factor.", "gate", "factor"),
    elementwise("gelu_multiply", "GELU(gate) · factor, by tanh.", "gate", "factor"),
    elementwise("gelu_tanh", "GELU by tanh.", "x"),
    elementwise("gelu_erf", "GELU by erf.", "x"),
    ("transpose", "xᵀ.", [("x", "in", f"[ROWS, COLUMNS], {FLOATS}"), ("out", "out", "[COLUMNS, ROWS] of x's type")], [],
     "(x.shape[1], x.shape[0])", "x"),
    ("gather", "Row indices[t] of a table for each t; zeros for an index that is not a row.",
     [("table", "in", f"[ROWS, WIDTH], {ANY}, or a packed.PackedMatrix"), ("indices", "in", "[TOKENS], int32"),
      ("out", "out", f"[TOKENS, WIDTH], {FLOATS}; without it one of the table's type is made, or of float32 if that is another")], [],
     "(indices.shape[0], table.shape[1])", "table", GATHERED),
    ("rope_vision", "Rotates the query and key heads of patches in place and returns them.",
     [("qkv", "change", f"[PATCHES, 3, HEADS, HEAD_DIM], {FLOATS}"), ("cosine", "in", "[POSITIONS, HEAD_DIM/4], float32"),
      ("sine", "in", "as cosine"), ("positions", "in", "[2, PATCHES], int32: row and column of each patch")],
     [], None, None),
    ("position_embedding", "x + a learned square grid, stretched to grid_h × grid_w patches by bilinear interpolation.",
     [("x", "in", f"[grid_h · grid_w, WIDTH], {FLOATS}"), ("table", "in", "[SIDE, SIDE, WIDTH], float32"),
      ("out", "out", "as x")],
     [("grid_h", "int", None, "patches from top to bottom"), ("grid_w", "int", None, "patches from left to right"),
      ("merge", "int", 2, "patches come in blocks of merge × merge")], "x.shape", "x"),
    ("attention_prefill", "softmax(q · kᵀ / √HEAD_DIM + mask) · v for each head.",
     [("q", "in", f"[QUERIES, HEADS, HEAD_DIM], {FLOATS}"),
      ("k", "in", "[KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8"), ("v", "in", "as k"),
      ("k_scales", "optional", "[KEYS, KV_HEADS], float32; with int8 only"), ("v_scales", "optional", "as k_scales"),
      ("segment_starts", "optional", "[SEGMENTS + 1], int32, ascending from 0 to QUERIES, which is not looked at on a GPU: a query "
       "sees its own segment; not with causal"),
      ("out", "out", "as q")],
     [("causal", "bool", True, "query i sees keys 0 to KEYS − QUERIES + i")], "q.shape", "q"),
    ("attention_decode", "The same for one query a head against the first `length` rows of a cache.",
     [("q", "in", f"[HEADS, HEAD_DIM], {FLOATS}"), ("k", "in", "[KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8"),
      ("v", "in", "as k"), ("length", "in", "[1], int32, where the other arrays are"),
      ("k_scales", "optional", "[KEYS, KV_HEADS], float32; with int8 only"), ("v_scales", "optional", "as k_scales"),
      ("out", "out", "as q")], [], "q.shape", "q"),
]

HEAD = '''"""Operations on arrays, each by the variant that is fastest for its shape as far as it was tuned.

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
'''


def default_text(value):
    return "" if value is None else f" = {value if isinstance(value, str) else repr(value)}"


CONVERT = {
    "Epilogue": '0 if {0} == "none" else _epilogue({0})',
    "float": '{0} if type({0}) is float and 0 <= {0} <= 1 else _number("{0}", {0}, float)',
    "int": '_number("{0}", {0}, int)',
    "bool": '{0} if type({0}) is bool else _number("{0}", {0}, bool)',
}


def function(operation):
    name, text, tensors, numbers, shape, like, *first = operation
    required = [t for t in tensors if t[1] in ("in", "change")]
    optional = [t for t in tensors if t[1] in ("optional", "optional_change", "out")]
    signature = [f"{t[0]}: Array" for t in required] + ["*"] + [f"{t[0]}: Array | None = None" for t in optional]
    signature += [f"{n}: {kind}{default_text(value)}" for n, kind, value, _ in numbers]
    signature += ["device: str | None = None", "stream: Any = None"]
    names = [t[0] for t in tensors] + [n[0] for n in numbers]
    listed = ", ".join(f'"{n}"' for n in names)
    lines = [f'_{name} = _native.Operation("{name}", [{listed}]).run', "", "",
             f"def {name}(", *[f"    {part}," for part in signature], ") -> Array:", f'    """{text}', ""]
    for tensor, kind, what in tensors:
        changed = "; changed" if kind.endswith("change") else ""
        lines.append(f"    {tensor}: {what}{changed}.")
    lines += [f"    {n}: {what}." for n, _, _, what in numbers]
    lines += ['    """', *first]
    result = "out" if shape else next(t[0] for t in tensors if t[1] == "change")
    if shape:
        inputs = ", ".join(f'"{t[0]}": {t[0]}' for t in tensors if t[1] != "out")
        lines += ["    if out is None:", "        try:", f"            extents = {shape}", "        except (AttributeError, IndexError, RuntimeError):",
                  f'            _refuse("{name}", {{{inputs}}})', "            raise", f"        out = _new({like}, extents, stream)"]
    values = [CONVERT[kind].format(n) for n, kind, _, _ in numbers]
    arguments = ", ".join([t[0] for t in tensors] + [f"({value})" if " if " in value else value for value in values])
    lines += [f"    _{name}(({arguments}{',' if len(names) == 1 else ''}), None if device is None else _device(device), stream)",
              f"    return {result}"]
    return "\n".join(lines)


def main():
    text = HEAD + "".join(f"\n\n{function(operation)}\n" for operation in OPERATIONS)
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE")
    file = pathlib.Path(sys.argv[1])
    file.unlink(missing_ok=True)  # a link would lead elsewhere
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
