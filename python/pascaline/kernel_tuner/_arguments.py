"""What scripts pass to kernels: NumPy's arrays and scalars, also of complex numbers and structures, and arrays of CuPy and PyTorch."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from .. import import_t1
from .._errors import ArgumentError
from .._given import on_host as on_host
from ._signature import is_whole

_t1: Any = import_t1

_TYPES = {**{name: name for name in ("float16", "float32", "float64", "int32", "uint32", "int64", "uint64", "int16", "uint16", "int8",
                                     "uint8", "bool")}, "complex64": "float32", "complex128": "float64"}
_WHOLE = 2**63  # scalars that are whole numbers are below it


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


class Structures:
    """Structures of a search space, of NumPy's structured types."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self.document: list[dict[str, Any]] = []

    def name(self, where: str, dtype: Any) -> str:
        """The structure of a type; raises for one that C++ lays out in another way."""
        if dtype not in self._names:
            usual = _aligned(dtype)
            if [usual.fields[name][1] for name in dtype.names] != [dtype.fields[name][1] for name in dtype.names] or \
                    usual.itemsize != dtype.itemsize:
                raise ArgumentError(f"{where}: C++ lays the members of {dtype} out in another way; make the type with align=True")
            members = [self._member(f"{where}.{name}", name, dtype.fields[name][0]) for name in dtype.names]
            self._names[dtype] = f"structure_{len(self.document) + 1}"
            self.document.append({"name": self._names[dtype], "members": members})
        return self._names[dtype]

    def _member(self, where: str, name: str, dtype: Any) -> list[Any]:
        base, shape = dtype.subdtype or (dtype, ())
        if len(shape) > 1 or base.name not in _TYPES and not base.names or base.kind == "c":
            raise ArgumentError(f"{where}: {dtype} cannot be passed; give numbers, structures and arrays of one dimension of these")
        return [name, self.name(where, base) if base.names else _TYPES[base.name], *map(int, shape)]


def _aligned(dtype: Any) -> Any:
    """The type with its members, and theirs, where C++ puts them."""
    import numpy

    base, shape = dtype.subdtype or (dtype, ())
    if not base.names:
        return dtype
    found = numpy.dtype([(name, _aligned(base.fields[name][0])) for name in base.names], align=True)
    return numpy.dtype((found, shape)) if shape else found


def _members(value: Any) -> list[Any]:
    """The numbers of a structure in the order in which they lie."""
    import numpy

    return [number for name in value.dtype.names for one in numpy.ravel(value[name])
            for number in (_members(one) if one.dtype.names else [one])]


def parts(value: Any) -> list[Any]:
    """Arrays of the numbers in an array: its members, or itself."""
    if not value.dtype.names:
        return [value]
    return [part for name in value.dtype.names for part in parts(value[name])]


def types(value: Any) -> list[str]:
    """Element types of the numbers in an array."""
    return [_TYPES[part.dtype.name] for part in parts(value)]


def entry(where: str, name: str, value: Any, written: bool, structures: Structures) -> dict[str, Any]:
    """An argument of a search space."""
    dtype = getattr(value, "dtype", None)
    is_structure = bool(getattr(dtype, "names", None))
    kind = str(getattr(dtype, "name", None))
    if kind not in _TYPES and not is_structure:
        raise ArgumentError(f"{where}: {type(value).__name__} of {kind} cannot be passed; give NumPy's arrays and scalars of "
                            f"{', '.join(_TYPES)} and structures of these")
    element = structures.name(where, dtype) if is_structure else _TYPES[kind]
    if is_array(value):
        if not value.size:
            raise ArgumentError(f"{where}: the array is empty")
        extent = int(value.size) * (2 if value.dtype.kind == "c" else 1)
        return {"name": name, "buffer": element, "access": "inout" if written else "in", "extent": str(extent)}
    if is_structure:
        return {"name": name, "scalar": element, "value": [_number(where, one) for one in _members(value)]}
    if value.dtype.kind == "c":
        return {"name": name, "scalar": kind, "value": [_number(where, value.real), _number(where, value.imag)]}
    return {"name": name, "scalar": element, "value": _number(where, value)}


def _number(where: str, value: Any) -> Any:
    """The scalar as a search space has it."""
    if value.dtype.kind == "f":
        is_short = is_whole(value) and abs(value) <= _t1.EXACT
        return int(value) if is_short else float(value) if math.isfinite(value) else str(float(value))
    if int(value) >= _WHOLE:
        raise ArgumentError(f"{where}: the scalar {value} is more than 2**63 - 1; pass it in an array")
    return int(value)


def fill(described: dict[str, Any], value: Any) -> bool:
    """Says how to draw contents like the array's, for who sweeps the files without it; whether they are its own."""
    if "buffer" not in described:
        return True
    if not value.dtype.names:
        filled, is_own = _fill(value)
        described.update(filled)
        return is_own
    members = {name: _fill(*parts(value[name])) for name in value.dtype.names}
    described["members"] = {name: filled for name, (filled, _) in members.items()}
    return all(is_own for _, is_own in members.values())


def _fill(*numbers: Any) -> tuple[dict[str, Any], bool]:
    """The keys of a fill in the range of all these arrays, and whether it makes these arrays."""
    parts_of = [flat(one) for one in numbers]
    low, high = min(float(one.min()) for one in parts_of), max(float(one.max()) for one in parts_of)
    if not (abs(low) < 1e300 and abs(high) < 1e300):  # NaN is not
        return {"fill": "zero"}, False
    elements = parts_of[0]
    is_whole_type = any(one.dtype.kind != "f" for one in parts_of)
    if low == high:
        is_own = all(bool((one == elements.flat[0]).all()) for one in parts_of) and (not is_whole_type or abs(low) <= _t1.EXACT)
        return {"fill": "constant", "low": low} if low else {"fill": "zero"}, is_own
    if len(parts_of) == numbers[0].ndim == 1 and (elements[1:] >= elements[:-1]).all():  # as where rows of a sparse matrix begin
        return {"fill": "sorted", "low": low, "high": high + 1 if is_whole_type else high}, False
    return {"fill": "uniform", "low": low, "high": high + 1 if is_whole_type else high}, False


def flat(value: Any) -> Any:
    """The array's memory as elements of the buffer's type, of structures as bytes."""
    elements = value.ravel(order="K")
    return elements.view("uint8") if value.dtype.names else elements.view(_TYPES[value.dtype.name])


def copied(value: Any) -> Any:
    """A copy that lies as the array does; of a scalar itself."""
    return value.copy(order="K") if is_array(value) else value
