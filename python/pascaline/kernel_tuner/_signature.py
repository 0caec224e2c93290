"""A kernel's function in its code, and what it takes."""

import math
import re
from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentError


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
        for text in found[1].split(",") if found[1].strip() else []:
            self.parameters.append(_Parameter(text, begin))
            begin += len(text) + 1

    def as_declared(self, i: int, value: Any) -> Any:
        """The argument, or the shorter integer that the kernel takes of it, where that is the same number."""
        text = self.parameters[i].text
        declared = re.match(r"\s*(?:const\s+)?(int|unsigned(?:\s+int)?)\b(?!\s+(?:int|long|short|char))", text)
        if not declared or getattr(value, "shape", None) != () or not _fits(text, value):
            return value
        return value.astype("int32" if declared[1] == "int" else "uint32")

    def require_types(self, arguments: Sequence[Any]) -> None:
        """Raises for what is passed as another type, of which the kernel would take the bytes: as far as the code tells the
        type."""
        for i, (parameter, value) in enumerate(zip(self.parameters, arguments)):
            if not _fits(parameter.text, value):
                raise ArgumentError(f"arguments[{i}]: {'an array' if value.shape else value} of {value.dtype.name} is passed as "
                                    f"'{parameter.text.strip()}', which is not that type")

    def with_long_integers(self, arguments: Sequence[Any]) -> str:
        """The code, in which integers of 16 bits come as ones of 32: a search space has no shorter scalars."""
        code, body = self._code, ""
        for parameter, value in reversed(list(zip(self.parameters, arguments))):
            dtype = value.dtype.name
            if value.shape or dtype not in ("int16", "uint16"):
                continue
            found = re.fullmatch(r"(\s*)(?:const\s+)?((?:unsigned\s+)?\w+)(?:\s+const)?\s+(\w+)\s*", parameter.text)
            known = {"short": "int16", "unsigned short": "uint16"}
            # A name of the code's own may stand for any type.
            if not found or known.get(found[2], dtype) != dtype or found[2] in _DECLARED:
                raise ArgumentError(f"arguments: {value} of {dtype} is passed as '{parameter.text.strip()}', which is not "
                                    "that type; write it into the kernel, or pass it in an array")
            given = f"{found[1]}int {found[3]}_long"
            code = code[:parameter.begin] + given + code[parameter.begin + len(parameter.text):]
            self._body += len(given) - len(parameter.text)
            body = f" {found[2]} {found[3]} = ({found[2]}){found[3]}_long;{body}"
        return code[:self._body] + body + code[self._body:]


# Kinds of NumPy's types, and bytes.
_DECLARED = {"float": ("f", 4), "double": ("f", 8), "int": ("iu", 4), "unsigned": ("iu", 4), "unsigned int": ("iu", 4),
             "long long": ("iu", 8), "unsigned long long": ("iu", 8)}


def _fits(parameter: str, value: Any) -> bool:
    """Says if an argument has the type of a kernel's parameter, as far as the parameter's text shows it."""
    is_pointer, is_array = "*" in parameter or "[" in parameter, bool(value.shape)
    declared = re.match(r"\s*(?:const\s+)?(float|double|int|unsigned(?:\s+int)?|(?:unsigned\s+)?long\s+long)\b"
                        r"(?!\s+(?:int|long|short|char))", parameter)
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
