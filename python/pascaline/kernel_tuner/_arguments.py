"""What scripts pass to kernels: NumPy's arrays and scalars, also of complex numbers, and arrays of CuPy and PyTorch."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from .. import import_t1
from .._errors import ArgumentError
from .._given import on_host as on_host
from ._signature import is_whole

_t1: Any = import_t1

_SCALARS = {"float32": "float32", "float64": "float64", "int32": "int32", "uint32": "uint32", "int64": "int64",
            "uint64": "int64",
            "int8": "int8", "uint8": "uint8", "bool": "uint8", "int16": "int32", "uint16": "int32", "float16": "float16"}
# The type of a buffer, and how many of its elements one of the array's is.
_BUFFERS = {**{name: (name, 1) for name in ("float16", "float32", "float64", "int32", "uint32", "int64", "int8", "uint8")},
            "uint64": ("int64", 1),
            "bool": ("uint8", 1), "complex64": ("float32", 2), "complex128": ("float64", 2), "int16": ("uint8", 2),
            "uint16": ("uint8", 2)}


class Tunable(dict[Any, Any]):
    """An argument that is one of several, by a parameter, a text or a function of the parameters.

    param_key: the parameter, or what computes the key of `arrays`. arrays: a dict, or a list, whose keys are its places."""

    def __init__(self, param_key: str | Callable[..., Any], arrays: Any) -> None:
        super().__init__(arrays if isinstance(arrays, Mapping) else enumerate(arrays))
        self.param_key = param_key

    def select_for_configuration(self, params: Mapping[str, Any]) -> Any:
        """The argument of a configuration."""
        return self[self.key(params)]

    __call__ = select_for_configuration

    def key(self, params: Mapping[str, Any]) -> Any:
        """Which of them a configuration takes."""
        if callable(self.param_key):
            key = self.param_key(params)
        else:
            # A text is the caller's own code, as a function would be.
            key = params[self.param_key] if self.param_key in params else eval(self.param_key, {"__builtins__": {}}, params)
        if key not in self:
            raise KeyError(f"'{key}' is none of {', '.join(map(str, self))}")
        return key


def is_array(value: Any) -> bool:
    return bool(getattr(value, "shape", None))


def same(one: Any, other: Any) -> bool:
    """Whether two arrays have the same type and contents."""
    other = on_host(other)
    return one is other or (is_array(other) and one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all()))


def alike(result: Any, given: Any) -> Any:
    """The result as an array of the library that was given, in host memory."""
    if type(given).__module__.partition(".")[0] == "torch":
        return type(given)(result) if not hasattr(result, "__array_interface__") else __import__("torch").from_numpy(result)
    return result


def entry(where: str, name: str, value: Any, written: bool) -> dict[str, Any]:
    """An argument of a search space."""
    dtype = str(getattr(getattr(value, "dtype", None), "name", None))
    if dtype not in (_BUFFERS if is_array(value) else _SCALARS):
        raise ArgumentError(f"{where}: {type(value).__name__} of {dtype} cannot be passed; give NumPy's arrays and scalars of "
                            f"{', '.join(_BUFFERS if is_array(value) else _SCALARS)}")
    if is_array(value):
        buffer, parts = _BUFFERS[dtype]
        if not value.size:
            raise ArgumentError(f"{where}: the array is empty")
        return {"name": name, "buffer": buffer, "access": "inout" if written else "in", "extent": str(int(value.size) * parts)}
    if dtype in ("float32", "float64") and not is_whole(value):
        return {"name": name, "scalar": dtype, "value": float(value) if math.isfinite(value) else str(float(value))}
    if not is_whole(value) or dtype == "float16":
        raise ArgumentError(f"{where}: the scalar {value} of {dtype} cannot be passed; write it into the kernel, or pass it in "
                            "an array")
    if abs(int(value)) > _t1.EXACT:
        raise ArgumentError(f"{where}: the scalar {value} is more than 2**53; pass it in an array")
    return {"name": name, "scalar": _SCALARS[dtype], "value": int(value)}


def fill(described: dict[str, Any], value: Any) -> bool:
    """Says how to draw contents like the array's, for who sweeps the files without it; whether they are its own."""
    if "buffer" not in described:
        return True
    elements = flat(value)
    low, high = float(elements.min()), float(elements.max())
    if not (abs(low) < 1e300 and abs(high) < 1e300):  # NaN is not
        described["fill"] = "zero"
        return False
    whole = described["buffer"] not in ("float16", "float32", "float64")
    if low == high:
        described.update({"fill": "constant", "low": low} if low else {"fill": "zero"})
    elif value.ndim == 1 and (elements[1:] >= elements[:-1]).all():  # as where rows of a sparse matrix begin
        described.update({"fill": "sorted", "low": low, "high": high + 1 if whole else high})
    else:
        described.update({"fill": "uniform", "low": low, "high": high + 1 if whole else high})
    return low == high


def flat(value: Any) -> Any:
    """The array's memory as elements of the buffer's type."""
    elements = value.ravel(order="K")
    dtype = value.dtype.name
    if dtype == "bool":
        return elements.view("uint8")
    return elements.view(_BUFFERS[dtype][0]) if dtype in _BUFFERS and _BUFFERS[dtype][0] != dtype else elements


def copied(value: Any) -> Any:
    """A copy that lies as the array does; of a scalar itself."""
    return value.copy(order="K") if is_array(value) else value
