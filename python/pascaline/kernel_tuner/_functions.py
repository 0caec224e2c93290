"""Functions and texts of the tuning parameters, as expressions of search spaces or as tables of their values."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from .. import _conditions, _python_text
from .._errors import ArgumentError

_text: Any = _python_text
_translate: Any = _conditions

Values = Mapping[str, Sequence[Any]]
MOST = 4096  # rows of a table
MOST_TRIED = 65536
PIECE = 3000  # characters of an expression, which may have 4096


class Reading(dict[str, Any]):
    """A configuration that notes which parameters are read, in their order."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.order: list[str] = []

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name not in self.order:
            self.order.append(name)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    # They are overridden so that `dict(p)`, `**p` and loops read by the method above.
    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def pop(self, name: str, *default: Any) -> Any:
        if name in self:
            self[name]
        return super().pop(name, *default)

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __repr__(self) -> str:
        return repr(self.copy())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()


class Row(NamedTuple):
    """What is computed for all configurations that have these values."""

    values: dict[str, Any]
    result: Any


class Condition(NamedTuple):
    """What a configuration must meet: texts for the search space, and what to ask for one configuration."""

    texts: Sequence[str]
    because: str
    reads: frozenset[str]
    holds: Callable[[Mapping[str, Any]], bool]


def rows(where: str, compute: Callable[[Reading], Any], values: Values, conditions: Sequence[Condition] = ()) -> list[Row]:
    """All results of a function of the parameters. Only parameters that it reads are varied: what it reads next depends on
    nothing but what it has read so far. Rows that no configuration which meets the conditions has are left out."""
    found: list[Row] = []
    tried = 0

    def visit(given: dict[str, Any]) -> None:
        nonlocal tried
        tried += 1
        config = Reading({**{name: listed[0] for name, listed in values.items()}, **given})
        result = compute(config)
        chosen = {name: config[name] for name in config.order}
        is_needed = all(condition.holds(chosen) for condition in conditions if condition.reads <= chosen.keys())
        if is_needed and len(found) >= MOST or tried > MOST_TRIED:
            raise ArgumentError(f"{where}: it has more than {MOST} values, over {', '.join(chosen)}; let it read fewer parameters")
        if is_needed:
            found.append(Row(chosen, result))
        fixed = dict(given)
        for name in config.order:
            if name not in given:
                for value in values[name][1:]:
                    visit({**fixed, name: value})
                fixed[name] = values[name][0]

    visit({})
    return found


def called(where: str, function: Callable[..., Any], config: Reading) -> Any:
    """What the function makes of a configuration: its dict, or parameters that are the function's own arguments."""
    try:
        taken = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        taken = []
    try:
        if taken and all(one.name in config for one in taken):
            return function(**{one.name: config[one.name] for one in taken})
        if any(one.kind is one.VAR_KEYWORD for one in taken) and all(one.name in config for one in taken[:-1]):
            return function(**config)
        return function(config)
    except ZeroDivisionError:
        raise
    except Exception as error:
        raise ArgumentError(f"{where}: a function fails for {dict(config.items())}: {type(error).__name__}: {error}") from error


class _Interpreter(_text.Evaluator):  # type: ignore[misc]
    """The value of a text for a configuration, of which it notes what is read; also of texts and reals."""

    def __init__(self, config: Reading, lists: Values) -> None:
        super().__init__()
        self.names = dict.fromkeys(config)
        self.config, self.lists = config, lists

    def of_Name(self, node: Any) -> Any:
        if node.id in self.config and node.id in self.names and self.names[node.id] is None:
            return self.config[node.id]
        return super().of_Name(node)

    def of_Call(self, node: Any) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        only = node.args[0] if name in ("min", "max") and len(node.args) == 1 else None
        if isinstance(only, ast.Name) and only.id in self.config:
            return (min if name == "min" else max)(self.lists[only.id])  # of all values that the parameter has
        return super().of_Call(node)


def interpreted(text: str, config: Reading, values: Values) -> Any:
    """The value of a text in Python's syntax, which is not run."""
    return _Interpreter(config, values).evaluate(_text.parse_python(text))


def expression(where: str, function: Any, parameters: Mapping[str, Any]) -> str | None:
    """The expression that a function of the parameters computes, a lambda or a `def` with no more than a return: p["x"], or an
    argument x, as x, and numbers and texts of its surroundings as such. None if its source does not tell."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        found = {ast.dump(node): node for node in _functions_in(source, function)}
        (node,) = found.values()
        known = inspect.getclosurevars(function)
    except (OSError, TypeError, ValueError):
        return None
    arguments = [argument.arg for argument in node.args.args]
    if len(arguments) != len(inspect.signature(function).parameters):
        return None
    surroundings = {**known.globals, **known.nonlocals}

    class InTheirNames(ast.NodeTransformer):
        def visit_Subscript(self, at: ast.Subscript) -> ast.AST:
            if isinstance(at.value, ast.Name) and at.value.id in arguments and isinstance(at.slice, ast.Constant):
                return ast.Name(str(at.slice.value), ast.Load())
            return self.generic_visit(at)

        def visit_Name(self, at: ast.Name) -> ast.AST:
            value = plain(surroundings.get(at.id))
            return ast.Constant(value) if at.id not in arguments and isinstance(value, (bool, int, float, str)) else at

    body = node.body if isinstance(node, ast.Lambda) else node.body[-1].value
    text = ast.unparse(ast.fix_missing_locations(InTheirNames().visit(body)))
    return None if any(argument not in parameters and re.search(rf"\b{argument}\b", text) for argument in arguments) else text


def _functions_in(source: str, function: Any) -> list[Any]:
    """Lambdas and functions in some lines that may be this one."""
    code = function.__code__
    node: Any
    if function.__name__ != "<lambda>":
        node = ast.parse(source).body[0]
        body = node.body[1:] if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) else getattr(node, "body", [])
        return [node] if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value else []
    found: list[Any] = []
    for begin in (match.start() for match in re.finditer(r"\blambda\b", source)):
        for end in range(len(source), begin, -1):  # the lines need not be a whole statement
            try:
                node = ast.parse(source[begin:end].strip(), mode="eval").body
            except (SyntaxError, ValueError):
                continue
            if isinstance(node, ast.Lambda):
                made: Any = next(one for one in compile(ast.Expression(node), "", "eval").co_consts
                                 if isinstance(one, CodeType))
                if (made.co_varnames == code.co_varnames and made.co_consts == code.co_consts
                        and set(made.co_names) == {*code.co_names, *code.co_freevars}):
                    found.append(node)
                break
    return found


def plain(value: Any) -> Any:
    """A Python number of one of NumPy's."""
    return value.item() if hasattr(value, "item") and not isinstance(value, (int, float, str)) else value


def listed(texts: Any) -> list[Any]:
    """Texts, numbers and functions, of which one may stand for a list of one."""
    if texts is None:
        return []
    return [texts] if isinstance(texts, (str, int)) or callable(texts) or hasattr(texts, "item") else list(texts)
