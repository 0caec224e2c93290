"""Numbers and conditions of the tuning parameters, as expressions of search spaces."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _conditions, _python_text
from .._errors import ArgumentError
from . import _arguments
from ._functions import PIECE, Condition, Reading, Row, called, expression, interpreted, listed, plain, rows
from ._parameters import Parameters

_translate: Any = _conditions
_text: Any = _python_text


class Terms:
    """Makes expressions of what a script gives: texts, and functions of the parameters. Where the language has no expression, a
    table of all values takes its place. `definitions` are parts of long ones."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.definitions: list[dict[str, str]] = []

    def _value(self, where: str, one: Any, config: Reading) -> Any:
        """A number of a configuration: given as such, as a text or as a function."""
        one = plain(one)
        if callable(one):
            return called(where, one, config)
        if not isinstance(one, str):
            return one
        try:
            return interpreted(one, config, self.parameters.values)
        except _text.PythonTextError as error:
            raise ArgumentError(f"{where}: in '{one}': {error}") from None

    def term(self, where: str, one: Any, is_whole: bool) -> tuple[str, str]:
        """The same as an expression over another; PythonTextError if it cannot be one. Texts are rounded towards zero."""
        one = plain(one)
        if callable(one):
            text = expression(where, one, self.parameters.values)
            if text is None:
                raise _text.PythonTextError(1, "its source does not say what it computes")
        else:
            text, is_whole = str(one), is_whole or isinstance(one, str)
        above, below = _translate.Translator(self.parameters.values).number(_text.parse_python(text))
        if is_whole and below.constant != 1:
            if above.low < 0:
                raise _text.PythonTextError(1, "it may be negative")
            return _translate.floor_divide(above, below).text, "1"
        return above.text, below.text

    def number(self, where: str, name: str, compute: Callable[[Reading], Any], term: Callable[[], str]) -> str:
        """An expression for a whole number: what `term` translates, or a table of what is computed."""
        try:
            return term()
        except (_text.PythonTextError, OverflowError):
            pass

        def checked(config: Reading) -> int | None:
            try:
                return int(compute(config))
            except ZeroDivisionError:
                return None  # such a configuration is not valid
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"{where}: {error}") from None

        found = rows(where, checked, self.parameters.values)
        self.parameters.index(one for row in found for one in row.values)
        results: dict[int | None, list[Row]] = {}
        for row in found:
            results.setdefault(row.result, []).append(row)
        base = max((result for result in results if result is not None), key=lambda one: len(results[one]), default=0)
        terms = [str(base)]
        for result, of in results.items():
            factor = "1 / 0" if result is None else str(result - base)
            terms += [f"(({text}) ? {factor} : 0)" if result is None else f"({factor}) * ({text})"
                      for text in self.parameters.any_of(of) if result != base]
        return self._sum(name, terms)

    def _sum(self, name: str, terms: Sequence[str]) -> str:
        """A sum that may be longer than one expression: definitions have its parts."""
        parts: list[str] = []
        for term in terms:
            if parts and len(parts[-1]) + len(term) < PIECE:
                parts[-1] += " + " + term
            else:
                parts.append(term)
        if len(parts) == 1:
            return parts[0]
        names = [f"kt_{name}_{i}" for i in range(len(parts))]
        self.definitions += [{"name": one, "value": part} for one, part in zip(names, parts)]
        return " + ".join(names)

    def condition(self, one: Any) -> Condition:
        values = self.parameters.values
        one = _as_function(one, values)
        if not callable(one) and not isinstance(one, str):
            raise ArgumentError(f"restrictions: {type(one).__name__} cannot be taken over; give texts or functions")
        text = one if isinstance(one, str) else expression("restrictions", one, values)
        why: Any = None
        if text is not None:
            try:
                tree = _text.parse_python(text)
                reads = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) & frozenset(values)
                translated = _translate.translate_condition(text, values)
                return Condition([translated], text, reads, lambda config: bool(_holds(tree, config, values)))
            except _text.PythonTextError as error:
                why = error

        def compute(config: Reading) -> bool:
            try:
                return bool(self._value("restrictions", one, config))
            except ZeroDivisionError:
                return False

        try:
            found = rows("restrictions", compute, values)
        except ArgumentError as error:
            raise ArgumentError(f"restrictions: in '{text}': {why}" if isinstance(one, str) and why else str(error)) from None
        self.parameters.index(name for row in found for name in row.values)
        refused, taken = ([row for row in found if row.result is result] for result in (False, True))
        texts = self.parameters.any_of(taken)
        if not taken or len(texts) > 1 or len(taken) > len(refused):
            texts = [f"!({piece})" for piece in self.parameters.any_of(refused)]
        reads = frozenset(name for row in found for name in row.values)
        return Condition(texts, str(text or getattr(one, "__name__", "")), reads, lambda config: compute(Reading(config)))

    def shared_bytes(self, smem_args: Mapping[str, Any] | None) -> str:
        """Bytes of dynamic shared memory."""
        size = smem_args.get("size", 0) if smem_args else 0
        return self.number("smem_args", "shared", lambda config: int(self._value("smem_args", size, config)),
                           lambda: self.term("smem_args", size, True)[0])

    def grid(self, problem_size: Any, given: Sequence[Any], blocks: Sequence[str]) -> list[str]:
        """Blocks along each axis: the problem's size over the product of the divisors, rounded up."""
        sizes = self._sizes(problem_size)  # texts and numbers, as far as they are known
        grid: list[str] = []
        for axis, (listing, block) in enumerate(zip(given, blocks)):
            where = f"grid_div_{'xyz'[axis]}"
            divisors = ([block] if block in self.parameters.values else []) if listing is None else listed(listing)
            for one in divisors:
                if isinstance(one, str) and not one.strip():
                    raise ArgumentError(f"{where}: a text is empty")
            size = sizes[axis] if sizes else None

            def compute(config: Reading, axis: int = axis, divisors: Sequence[Any] = divisors, where: str = where) -> int:
                total = _sizes_of(called("problem_size", problem_size, config) if callable(problem_size)
                                  else problem_size)[axis]
                total = int(self._value("problem_size", total, config))
                by = 1.0
                for one in divisors:
                    found = self._value(where, one, config)
                    by *= int(found) if isinstance(one, str) else found
                return math.ceil(total / by)

            def term(size: Any = size, divisors: Sequence[Any] = divisors, where: str = where) -> str:
                if size is None:
                    raise _text.PythonTextError(1, "its source does not say what it computes")
                total, factors = self.term("problem_size", size, True)[0], []
                for one in divisors:
                    above, below = self.term(where, one, False)
                    factors.append(above)
                    total = total if below == "1" else f"{total} * {below}"
                return f"ceil_div({total}, {' * '.join(factors)})" if factors else total

            grid.append(self.number("problem_size" if callable(problem_size) else where, "xyz"[axis], compute, term))
        return grid

    def _sizes(self, problem_size: Any) -> list[Any] | None:
        """A number or a text for each axis; None of a function whose source does not say what it computes."""
        if not callable(problem_size):
            return _sizes_of(problem_size)
        text = expression("problem_size", problem_size, self.parameters.values)
        if text is None:
            return None
        body = ast.parse(text, mode="eval").body
        parts = body.elts if isinstance(body, (ast.Tuple, ast.List)) else [body]
        return _sizes_of([ast.unparse(part) for part in parts])


class _Chosen:
    """A restriction on some of the parameters: a function of these, or a constraint of python-constraint's."""

    def __init__(self, one: Any, names: Sequence[str], values: Mapping[str, Sequence[Any]]) -> None:
        self._one, self._names, self._values = one, list(names), values
        self.__name__ = getattr(one, "__name__", type(one).__name__)
        for name in self._names:
            if name not in values:
                raise ArgumentError(f"restrictions: {self.__name__} asks for '{name}', which is not in tune_params")

    def __call__(self, config: Mapping[str, Any]) -> bool:
        chosen = {name: config[name] for name in self._names}
        if hasattr(self._one, "preProcess"):
            return bool(self._one(self._names, {name: list(self._values[name]) for name in self._names}, chosen))
        return bool(self._one(**chosen))


def _as_function(one: Any, values: Mapping[str, Sequence[Any]]) -> Any:
    """A restriction that is a pair of a function and the names of its parameters, or a constraint, as a function."""
    if isinstance(one, tuple) and len(one) in (2, 3) and callable(one[0]):
        return _Chosen(one[0], one[1], values)
    return _Chosen(one, list(values), values) if hasattr(one, "preProcess") else one


def _holds(tree: Any, config: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    try:
        return bool(_translate.ConditionEvaluator(dict(config), values).evaluate(tree))
    except _text.PythonTextError:
        return False


def _sizes_of(problem_size: Any) -> list[Any]:
    are_several = isinstance(problem_size, (list, tuple)) or _arguments.is_array(problem_size)
    sizes = [plain(size) for size in (problem_size if are_several else [problem_size])]
    sizes = [int(size) if isinstance(size, str) and size.strip().isdecimal() else size for size in sizes]
    if not 1 <= len(sizes) <= 3 or not all(isinstance(size, str) or isinstance(size, int) and size >= 1 for size in sizes):
        raise ArgumentError(f"problem_size: {problem_size!r} is not one to three numbers of at least 1, or texts of parameters")
    return sizes + [1] * (3 - len(sizes))
