"""A kernel's function in its code, and what it takes."""

import math
import re
from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentError
from .._headers import split_parameters


class _Parameter:
    """Of a kernel's function: where it is in the code, and whether it is a pointer to what is not const."""

    def __init__(self, text: str, begin: int) -> None:
        self.text, self.begin = text, begin
        found = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", text)
        self.name = found[1] if found else text.strip()
        self.is_written = "*" in text and not re.search(r"\bconst\b[^*]*\*|\w\s+const\s*\*", text)


class Signature:
    """A kernel's function in its code."""

    def __init__(self, name: str, code: str) -> None:
        self.name, self._code = name, code
        bare = re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), code, flags=re.DOTALL)
        found = re.search(rf"__global__[^;{{}}]*?(?<!\w){re.escape(name)}\s*\(([^{{}};]*?)\)\s*\{{", bare, re.DOTALL)
        if not found:
            raise ArgumentError(f"kernel_source: it has no __global__ function '{name}'")
        self._body = found.end()
        self.parameters: list[_Parameter] = []
        begin = found.start(1)
        for text in split_parameters(found[1]):
            self.parameters.append(_Parameter(text, begin))
            begin += len(text) + 1

    def as_declared(self, i: int, value: Any) -> Any:
        """The argument, or the shorter integer that the kernel takes of it, where that is the same number."""
        declared = _DECLARATION.match(self.parameters[i].text)
        if not declared or getattr(value, "shape", None) != () or not _fits(self.parameters[i].text, value):
            return value
        kinds, size = _DECLARED[" ".join(declared[1].split())]
        unsigned = "u" if declared[1].startswith("unsigned") else ""
        return value.astype(f"{unsigned}int{8 * size}") if kinds == "iu" else value

    def require_types(self, arguments: Sequence[Any]) -> None:
        """Raises for what is passed as another type, of which the kernel would take the bytes: as far as the code tells the
        type."""
        for i, (parameter, value) in enumerate(zip(self.parameters, arguments)):
            if not _fits(parameter.text, value):
                raise ArgumentError(f"arguments[{i}]: {'an array' if value.shape else value} of {value.dtype.name} is passed as "
                                    f"'{parameter.text.strip()}', which is not that type")


# Kinds of NumPy's types, and bytes.
_DECLARED = {"float": ("f", 4), "double": ("f", 8), "int": ("iu", 4), "unsigned": ("iu", 4), "unsigned int": ("iu", 4),
             "short": ("iu", 2), "unsigned short": ("iu", 2), "long long": ("iu", 8), "unsigned long long": ("iu", 8)}
_DECLARATION = re.compile(r"\s*(?:const\s+)?(float|double|(?:unsigned\s+)?(?:short|long\s+long|int)|unsigned)\b(?!\s+(?:int|long|short|char))")


def _fits(parameter: str, value: Any) -> bool:
    """Says if an argument has the type of a kernel's parameter, as far as the parameter's text shows it."""
    is_pointer, is_array = "*" in parameter or "[" in parameter, bool(value.shape)
    declared = _DECLARATION.match(parameter)
    if not declared or parameter.count("*") > 1:
        return is_array or not is_pointer
    kinds, size = _DECLARED[" ".join(declared[1].split())]
    if is_array != is_pointer or value.dtype.kind not in kinds:
        return False
    if is_array or kinds == "f":
        return bool(value.dtype.itemsize == size)
    # The lower bytes of a longer integer are the number, where that is in the range.
    low = 0 if declared[1].startswith("unsigned") else -2**(8 * size - 1)
    return bool(value.dtype.itemsize >= size) and low <= int(value) < low + 2**(8 * size)


def is_whole(value: Any) -> bool:
    """Says if an argument is an array or a whole number."""
    if getattr(value, "shape", ()):
        return True
    number = float(value)
    return math.isfinite(number) and number == int(number) and (number != 0 or math.copysign(1, number) > 0)
