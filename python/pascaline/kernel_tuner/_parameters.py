"""The tuning parameters, and which values of them a table's rows ask for."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import import_t1
from .._errors import ArgumentError
from ._functions import PIECE, Row, plain

_t1: Any = import_t1


class Parameters:
    """Of a search space, which compares whole numbers only. Where a function or a condition asks for a text or a real, the
    search space has its place among the values instead, and the code defines the macro by it."""

    def __init__(self, tune_params: Mapping[str, Sequence[Any]]) -> None:
        self.values = {name: list(dict.fromkeys(map(plain, listed))) for name, listed in dict(tune_params).items()}
        if not self.values:
            raise ArgumentError("tune_params: it has no parameters")
        for name, values in self.values.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                raise ArgumentError(f"tune_params: '{name}' is not an identifier")
            if name in _t1.RESERVED or name.startswith("device_"):
                raise ArgumentError(f"tune_params: '{name}' is a word of search spaces; give the parameter another name")
            if not values:
                raise ArgumentError(f"tune_params: {name} has no values")
            if len(values) > _t1.MAX_VALUES:
                raise ArgumentError(f"tune_params: {name} has {len(values)} values; a search space holds {_t1.MAX_VALUES} of a parameter")
            if not all(isinstance(value, (bool, int, float, str)) for value in values):
                raise ArgumentError(f"tune_params: {name} has values that are neither numbers nor texts: {values}")
        for name, values in self.values.items():
            if all(isinstance(value, int) for value in values) and not all(isinstance(value, bool) for value in values):
                self.values[name] = list(dict.fromkeys(map(int, values)))
        self._indexed = {name for name, values in self.values.items() if len({type(value) for value in values}) > 1
                         or any(isinstance(value, str) and not re.fullmatch(r"[\w .<>,+*:-]+", value, re.ASCII)
                                for value in values)}

    def __iter__(self) -> Any:
        return iter(self.values)

    def index(self, names: Iterable[str]) -> None:
        """Makes those comparable that are read by tables."""
        self._indexed |= {name for name in names if not all(isinstance(value, int) for value in self.values[name])}

    def require_macros(self, where: str, names: Iterable[str]) -> None:
        """Raises for parameters that the preprocessor does not see, as threadIdx has members of these names."""
        for name in names:
            if name in ("x", "y", "z", "w"):
                raise ArgumentError(f"{where}: code cannot be chosen by a parameter called '{name}'; give it another name")

    def own(self, name: str) -> str:
        """The name in the search space."""
        return name + "_index" if name in self._indexed else name

    def own_value(self, name: str, value: Any) -> Any:
        return self.values[name].index(value) if name in self._indexed else value

    def config(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration of one of the search space."""
        return {name: self.values[name][int(found[self.own(name)])] if name in self._indexed else _as_given(values, found[name])
                for name, values in self.values.items()}

    def document(self, default: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{"name": self.own(name), "values": [self.own_value(name, value) for value in values],
                 "default": self.own_value(name, default[name]),
                 **({"description": f"{name}: " + ", ".join(map(str, values))} if name in self._indexed else {})}
                for name, values in self.values.items()]

    def macros(self) -> str:
        """Lines that define those that the search space only has by their index."""
        return "".join(choice([(f"{self.own(name)} == {i}", f"#define {name} {value}\n")
                               for i, value in enumerate(map(_macro, self.values[name]))])
                       for name in self.values if name in self._indexed)

    def condition(self, row: Mapping[str, Any]) -> str:
        """An expression, also of the preprocessor, that is true where the parameters have these values."""
        return " && ".join(f"{self.own(name)} == {int(self.own_value(name, value))}" for name, value in row.items()) or "1"

    def any_of(self, rows: Sequence[Row]) -> list[str]:
        """Expressions, of which one is true where a row applies; rows that differ in what was read last share a piece."""
        groups: dict[str, list[str]] = {}
        for row in rows:
            names = list(row.values)
            before = self.condition({name: row.values[name] for name in names[:-1]}) if len(names) > 1 else ""
            groups.setdefault(before, []).append(self.condition({name: row.values[name] for name in names[-1:]}))
        pieces: list[str] = []
        for before, last in groups.items():
            for begin in range(0, len(last), 50):
                text = "(" + " || ".join(last[begin:begin + 50]) + ")"
                piece = f"({before} && {text})" if before else text
                if pieces and len(pieces[-1]) + len(piece) < PIECE:
                    pieces[-1] += " || " + piece
                else:
                    pieces.append(piece)
        return pieces


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value).replace("\n", "\\\n")


def _as_given(values: Sequence[Any], found: Any) -> Any:
    """The value that was given, of which a search space tells another kind: 1 of True, or 2 of 2.0."""
    return next((value for value in values if value == found), found)


def choice(cases: Sequence[tuple[str, str]]) -> str:
    """Lines of which the preprocessor takes those whose condition holds."""
    if len(cases) == 1 or len({text for _, text in cases}) == 1:
        return cases[0][1]
    lines = [f"#{'if' if i == 0 else 'elif'} {condition}\n{text}" + ("" if text.endswith("\n") else "\n")
             for i, (condition, text) in enumerate(cases)]
    return "".join(lines) + "#endif\n"
