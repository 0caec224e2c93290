"""Weights in packed formats: 2 to 8 bits a value, with scales for blocks of a row (docs/formats.md).

`pack` makes a `PackedMatrix` of a matrix; `ops.matmul`, `ops.normed_matmul` and `ops.gather` take one in place of an array.
"""

from typing import Any

from . import _native
from ._errors import ArgumentError
from ._words import text_of, whole

Format = str
"""One of FORMATS."""

FORMATS: tuple[str, ...] = tuple(_native.packed_formats())

FEW_ROWS = 8
"""Rows that a kernel rounds by itself."""


class PackedMatrix:
    """A matrix [rows, columns] in a packed format.

    data: its bytes as the kernels read them, an array of uint8 of any library, which is used where it lies.
    format: "q8_0", "q4_k" … Raises ArgumentError for a format that there is not, or another number of bytes.
    """

    def __init__(self, data: Any, format: Format, shape: tuple[int, int]) -> None:
        try:
            rows, columns = shape
        except ValueError:
            raise ArgumentError(f"shape: {shape!r} is not a number of rows and one of columns") from None
        if type(rows) is not int or type(columns) is not int or max(rows, columns) >= 2**63:
            rows, columns = whole("shape", rows, 0), whole("shape", columns, 0)
        wanted = _native.packed_bytes(text_of("format", format), rows, columns)
        found = getattr(data, "shape", None)
        if found is None or tuple(found) != (wanted,):
            raise ArgumentError(f"data: a matrix of {rows} by {columns} in {format} is an array of {wanted} bytes")
        self.data = data
        self.packed_format = format
        self.shape = (rows, columns)

    def __repr__(self) -> str:
        return f"PackedMatrix({self.packed_format}, {self.shape[0]} by {self.shape[1]})"

    def with_data(self, data: Any) -> "PackedMatrix":
        """The same with its bytes elsewhere: `matrix.with_data(torch.from_numpy(matrix.data).cuda())`."""
        return PackedMatrix(data, self.packed_format, self.shape)

    def unpack(self) -> Any:
        """Its values, a NumPy array of float32; of bytes in host memory."""
        import numpy

        values = numpy.empty(self.shape, numpy.float32)
        _native.unpack(self.packed_format, self.data, values)
        return values


def pack(weight: Any, format: Format) -> PackedMatrix:
    """Quantizes a matrix [rows, columns], what NumPy takes as an array in host memory; its values are read as float32.

    Of the scales that are tried for each block, the one with the smallest sum of squared errors is taken. Raises
    ArgumentError, which names the value, for what the format cannot hold.
    """
    import numpy

    try:
        given = numpy.asarray(weight)
        if given.dtype.kind in "cmM" or given.dtype.names is not None:
            raise TypeError(f"weight: values of {given.dtype} are not real numbers")
        matrix = numpy.ascontiguousarray(given, numpy.float32)
    except (RuntimeError, ValueError) as error:  # what the array's library says, or nested lists of several lengths
        raise ArgumentError(f"weight: {str(error).strip().splitlines()[0]}") from None
    if matrix.ndim != 2:
        raise ArgumentError(f"weight: it has {matrix.ndim} dimensions, not 2")
    data = numpy.empty(_native.packed_bytes(text_of("format", format), *matrix.shape), numpy.uint8)
    _native.pack(format, matrix, data)
    return PackedMatrix(data, format, (matrix.shape[0], matrix.shape[1]))


def needs_rounding(a: Any, b: Any, device: str | None) -> bool:
    """Whether `matmul` has to round the rows of a first: many, on a device, by a packed weight."""
    return (isinstance(b, PackedMatrix) and getattr(a, "shape", (0,))[:1] > (FEW_ROWS,)
            and (bool(device) or not hasattr(a, "__array_interface__")))


_quantize = _native.Operation("quantize", ["x", "values", "scales", "format"]).run
_matmul_q = _native.Operation("matmul_q", ["values", "scales", "b", "bias", "residual", "out", "epilogue"]).run


def quantize(x: Any, format: Format, *, device: str | None = None) -> tuple[Any, Any]:
    """Rows [M, K] of float32 or float16 rounded to int8, as a product with a weight in that format takes them: the values
    [M, columns] and their scales, two arrays of the library of x."""
    from .ops import _device

    columns, blocks = _native.rounded_shape(text_of("format", format), _rank_2("x", x)[1])
    values = _new(x, (x.shape[0], columns), "int8")
    scales = _new(x, (blocks, x.shape[0]), "float32")
    _quantize((x, values, scales, _native.format_number(format)), _device(device), None)
    return values, scales


def matmul(
    a: Any, b: PackedMatrix, *, bias: Any = None, residual: Any = None, out: Any = None, epilogue: str = "none",
    device: str | None = None, stream: Any = None,
) -> Any:
    """`ops.matmul` with a packed weight in two steps, for whatever number of rows: rounds a, then multiplies integers. Its
    rounded rows are arrays that a's library makes for its current stream: `stream` is refused."""
    from .ops import _device, _epilogue

    if stream is not None:
        raise ArgumentError("stream: a product of more than 8 rows with a packed weight is on the current stream; make it so")

    rows, columns = _rank_2("a", a)
    if not isinstance(b, PackedMatrix):
        raise TypeError(f"b: {type(b).__name__} is not a PackedMatrix")
    if columns != b.shape[1]:
        raise ArgumentError(f"a: it has {columns} columns, but b has {b.shape[1]}")
    number = _epilogue(epilogue)
    if out is None:
        out = _new(a, (rows, b.shape[0] // (2 if epilogue == "swiglu" else 1)), None)
    values, scales = quantize(a, b.packed_format, device=device)
    _matmul_q((values, scales, b, bias, residual, out, number), _device(device), None)
    return out


def gathered(table: Any, indices: Any) -> Any:
    """The array for rows of a table that has no such rows itself: of float32, by the library of its data; None for others."""
    data = table.data if isinstance(table, PackedMatrix) else table
    if len(table.shape) != 2 or len(indices.shape) != 1 or (data is table and "bfloat16" not in str(getattr(table, "dtype", ""))):
        return None
    return _new(data, (int(indices.shape[0]), int(table.shape[1])), "float32")


def _rank_2(name: str, array: Any) -> tuple[int, int]:
    shape = getattr(array, "shape", None)
    if shape is None:
        raise TypeError(f"{name}: {type(array).__name__} is not an array")
    if len(shape) != 2:
        raise ArgumentError(f"{name}: it has {len(shape)} dimensions, not 2")
    return int(shape[0]), int(shape[1])


def _new(like: Any, shape: tuple[int, int], kind: str | None) -> Any:
    """An array of the library and device of `like`, and its element type unless another is named."""
    if hasattr(like, "new_empty"):  # PyTorch
        if kind is None:
            return like.new_empty(shape)
        import torch

        return like.new_empty(shape, dtype=getattr(torch, kind))
    if hasattr(like, "__array_namespace__"):  # the array API standard
        library = like.__array_namespace__()
        return library.empty(shape, dtype=like.dtype if kind is None else getattr(library, kind), device=like.device)
    import numpy

    if isinstance(like, numpy.ndarray):
        return numpy.empty(shape, dtype=kind or like.dtype)
    raise TypeError(f"out: {type(like).__name__} cannot make an array for the result")
