#!/usr/bin/env python3
"""Makes a search space and its kernel out of a T1 input (autotuning's exchange format, version 1.x, CUDA only).

  scripts/import_t1_space.py stencil.json --into my
  pascaline sweep --kernels my --spaces my --kernel stencil

Writes NAME.json and NAME.cu, both or neither; docs/exchange.md says what becomes what. The Python texts of a T1 input
are parsed by Python's own `ast` and never run: values are worked out by an interpreter of the few things that they may
hold, conditions are translated into the expressions of search spaces (docs/search_spaces.md).
"""
import argparse
import ast
import dataclasses
import gzip
import json
import math
import operator
import os
import pathlib
import re
import sys
import tempfile
import warnings
from fractions import Fraction

MAX_VALUES = 4096  # of a parameter of a search space
MAX_LISTED = 65535
MAX_STEPS = 500_000
MAX_TEXT = 1 << 20
MAX_EXPRESSION = 4096  # characters
MAX_EXPONENT = 62
MAX_FILE = 512 << 20
MAX_BUFFER = 1 << 40  # bytes
MAX_TRIED = 1_000_000
EXACT = 1 << 53  # whole numbers up to it are exact as reals
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1
RESERVED = {"min", "max", "abs", "ceil_div", "round_up", "is_pow2", "log2", "sizeof"}


class InputError(Exception):
    """Something that cannot be taken over, with its place."""


class PythonTextError(Exception):
    def __init__(self, node, message):
        super().__init__(message)
        self.column = node if isinstance(node, int) else node.col_offset + 1


# ---- Python texts ----


def parse_python(text):
    """The expression as a tree. Line ends count as spaces, as in parentheses."""
    if len(text) > MAX_TEXT:
        raise PythonTextError(1, f"longer than {MAX_TEXT} characters")
    flat = re.sub(r"\s", " ", text)
    start = len(flat) - len(flat.lstrip(" "))
    if start == len(flat):
        raise PythonTextError(1, "expected a value before the end")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(flat[start:], mode="eval").body
    except SyntaxError as error:
        raise PythonTextError(start + (error.offset or 1), error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise PythonTextError(1, f"cannot be parsed: {error or 'nested too deeply'}") from None
    for node in ast.walk(body):
        if hasattr(node, "col_offset"):
            node.col_offset += start
    return body


ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
              ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor}
COMPARISONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
               ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.In: lambda a, b: a in b,
               ast.NotIn: lambda a, b: a not in b}
FUNCTIONS = {"list": list, "tuple": list, "sorted": sorted, "len": len, "min": min, "max": max, "sum": sum, "abs": abs,
             "int": int, "float": float, "range": range}


class Evaluator:
    """Works out an expression: literals, lists, comprehensions, arithmetic on numbers and lists, comparisons and the
    functions above. Steps, lengths and numbers are bounded. With `exact`, `/` gives fractions."""

    def __init__(self, names=None, exact=False):
        self.names = dict(names or {})
        self.exact = exact
        self.steps = 0

    def evaluate(self, node):
        self.step(node)
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            raise PythonTextError(node, f"{what(node)} cannot be used here")
        try:
            return method(node)
        except ZeroDivisionError:
            raise PythonTextError(node, "division by zero") from None
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            raise PythonTextError(node, str(error)) from None
        except RecursionError:
            raise PythonTextError(node, "nested too deeply") from None

    def step(self, node, by=1):
        self.steps += by
        if self.steps > MAX_STEPS:
            raise PythonTextError(node, f"takes more than {MAX_STEPS} steps to work out")

    def checked(self, node, value):
        if isinstance(value, list):
            self.step(node, len(value))
            if len(value) > MAX_LISTED:
                raise PythonTextError(node, f"more than {MAX_LISTED} values")
        elif isinstance(value, Fraction) and value.denominator == 1:
            return self.checked(node, int(value))
        elif isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
            raise PythonTextError(node, "the number does not fit 64 bits")
        elif isinstance(value, complex) or isinstance(value, float) and not math.isfinite(value):
            raise PythonTextError(node, "the number is not finite")
        return value

    def list_of(self, node):
        value = self.evaluate(node)
        if not isinstance(value, (list, range)):
            raise PythonTextError(node, "expected a list")
        if len(value) > MAX_LISTED:
            raise PythonTextError(node, f"more than {MAX_LISTED} values")
        return self.checked(node, list(value))

    def of_Constant(self, node):
        if not isinstance(node.value, (bool, int, float, str)):
            raise PythonTextError(node, f"{node.value!r} cannot be used here")
        return self.checked(node, node.value)

    def of_Name(self, node):
        if node.id not in self.names:
            raise PythonTextError(node, f"unknown name '{node.id}'")
        return self.names[node.id]

    def of_List(self, node):
        return self.checked(node, [self.evaluate(child) for child in node.elts])

    of_Tuple = of_List

    def of_UnaryOp(self, node):
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.Invert):
            raise PythonTextError(node, "'~' cannot be used")
        return self.checked(node, -value if isinstance(node.op, ast.USub) else +value)

    def of_BinOp(self, node):
        function = ARITHMETIC.get(type(node.op))
        if function is None:
            raise PythonTextError(node, f"{what(node.op)} cannot be used")
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(left, str) or isinstance(right, str):
            raise PythonTextError(node, "expected numbers, found a text")
        left, right = (list(value) if isinstance(value, range) else value for value in (left, right))
        if isinstance(left, list) or isinstance(right, list):
            length = sum(len(value) for value in (left, right) if isinstance(value, list))
            times = [value for value in (left, right) if isinstance(value, int)]
            if isinstance(node.op, ast.Mult) and times and length * times[0] > MAX_LISTED:
                raise PythonTextError(node, f"more than {MAX_LISTED} values")
        elif isinstance(node.op, ast.Pow):
            self.check_power(node, left, right)
        if self.exact and isinstance(node.op, (ast.Div, ast.Pow)):
            left = Fraction(left)
        return self.checked(node, function(left, right))

    @staticmethod
    def check_power(node, base, exponent):
        if isinstance(base, (int, Fraction)) and abs(base) > 1 and abs(exponent) * math.log2(abs(base)) > 64:
            raise PythonTextError(node, "the number does not fit 64 bits")

    def of_Compare(self, node):
        left = self.evaluate(node.left)
        for op, child in zip(node.ops, node.comparators):
            right = self.evaluate(child)
            if isinstance(right, list):
                self.step(node, len(right))
            if type(op) not in COMPARISONS:
                raise PythonTextError(node, "'is' cannot be used; compare with ==")
            if isinstance(right, str) and isinstance(op, (ast.In, ast.NotIn)):
                raise PythonTextError(node, "'in' needs a list")
            if not COMPARISONS[type(op)](left, right):
                return False
            left = right
        return True

    def of_BoolOp(self, node):
        value = None
        for child in node.values:
            value = self.evaluate(child)
            if bool(value) == isinstance(node.op, ast.Or):
                break
        return value

    def of_IfExp(self, node):
        return self.evaluate(node.body if self.evaluate(node.test) else node.orelse)

    def of_Subscript(self, node):
        if isinstance(node.slice, ast.Slice):
            raise PythonTextError(node, "a slice cannot be used here")
        return self.list_of(node.value)[operator.index(self.evaluate(node.slice))]

    def of_ListComp(self, node):
        out = []
        saved = dict(self.names)
        self.comprehend(node, node.generators, out)
        self.names = saved
        return out

    of_GeneratorExp = of_ListComp

    def comprehend(self, node, clauses, out):
        if not clauses:
            out.append(self.evaluate(node.elt))
            self.checked(node, out[-1])
            if len(out) > MAX_LISTED:
                raise PythonTextError(node, f"more than {MAX_LISTED} values")
            return
        clause = clauses[0]
        if not isinstance(clause.target, ast.Name) or clause.is_async:
            raise PythonTextError(clause.target, "expected the name of a variable")
        for value in self.list_of(clause.iter):
            self.names[clause.target.id] = value
            if all(self.evaluate(condition) for condition in clause.ifs):
                self.comprehend(node, clauses[1:], out)

    def of_Call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in FUNCTIONS:
            raise PythonTextError(node, f"the function '{name}' is not known; known are {', '.join(FUNCTIONS)}")
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise PythonTextError(node, f"{name} takes plain arguments only")
        arguments = [self.evaluate(argument) for argument in node.args]
        if name in ("int", "float") and any(isinstance(argument, str) for argument in arguments):
            raise PythonTextError(node, "expected a number, found a text")
        result = FUNCTIONS[name](*arguments)
        if isinstance(result, range):
            if len(result) > MAX_LISTED:
                raise PythonTextError(node, f"more than {MAX_LISTED} values")
            result = list(result)
        return self.checked(node, result)


def what(node):
    """How a message calls a piece of Python."""
    names = {"Attribute": "a member", "Lambda": "lambda", "LShift": "a shift", "RShift": "a shift",
             "MatMult": "'@'", "JoinedStr": "a formatted text", "Dict": "a dictionary", "Set": "a set",
             "NamedExpr": "':='", "Starred": "'*'", "Slice": "a slice"}
    return names.get(type(node).__name__, type(node).__name__)


def python_values(text):
    """The values that a Python text lists."""
    tree = parse_python(text)
    values = Evaluator().evaluate(tree)
    if not isinstance(values, list):
        raise PythonTextError(tree, "expected a list of values")
    if any(isinstance(value, list) for value in values):
        raise PythonTextError(tree, "a list cannot be a parameter's value")
    return values


# ---- Conditions as expressions of search spaces ----


@dataclasses.dataclass
class Term:
    """A piece of an expression of search spaces that can stand anywhere, with bounds of its value, by which simpler
    expressions can be chosen."""
    text: str
    low: float
    high: float
    constant: object = None


def product(a, b):
    return 0 if a == 0 or b == 0 else a * b  # 0 times infinity is 0: both stand for finite numbers


def constant(value):
    if not MIN_INTEGER < value <= MAX_INTEGER:  # the language has no literal for the smallest number
        raise OverflowError("the number does not fit 64 bits")
    return Term(f"({value})" if value < 0 else str(value), value, value, value)


def folded(function, a, b):
    """The operation's constant, if both are and it fits."""
    if a.constant is None or b.constant is None:
        return None
    value = function(a.constant, b.constant)
    return constant(value) if MIN_INTEGER < value <= MAX_INTEGER else None


def add(a, b):
    if a.constant == 0 or b.constant == 0:
        return b if a.constant == 0 else a
    return folded(operator.add, a, b) or Term(f"({a.text} + {b.text})", a.low + b.low, a.high + b.high)


def subtract(a, b):
    if b.constant == 0:
        return a
    return folded(operator.sub, a, b) or Term(f"({a.text} - {b.text})", a.low - b.high, a.high - b.low)


def multiply(a, b):
    if a.constant == 1 or b.constant == 1:
        return b if a.constant == 1 else a
    corners = [product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return folded(operator.mul, a, b) or Term(f"({a.text} * {b.text})", min(corners), max(corners))


def floor_divide(a, b):
    """Rounded down, as Python's `//`; the language rounds towards zero."""
    if b.constant == 1:
        return a
    if a.low >= 0 and b.low >= 0:
        return Term(f"({a.text} / {b.text})", 0, a.high)
    most = max(abs(a.low), abs(a.high)) + 1
    x, y = a.text, b.text
    return Term(f"({x} / {y} - ({x} % {y} != 0 && ({x} < 0) != ({y} < 0)))", -most, most)


def floor_modulo(a, b):
    """The remainder with b's sign, as Python's `%`; the language's has a's."""
    x, y = a.text, b.text
    if a.low >= 0 and b.low >= 0:
        return Term(f"({x} % {y})", 0, min(a.high, b.high))
    low, high = min(b.low, 0), max(b.high, 0)
    if b.low >= 0:
        # Of a positive divisor the remainder plus the divisor cannot overflow: they have opposite signs.
        return Term(f"({x} % {y} < 0 ? {x} % {y} + {y} : {x} % {y})", low, high)
    return Term(f"({x} % {y} != 0 && ({x} < 0) != ({y} < 0) ? {x} % {y} + {y} : {x} % {y})", low, high)


def negate(a):
    return subtract(constant(0), a)


def absolute(a):
    if a.low >= 0:
        return a
    if a.constant is not None:
        return constant(-a.constant)
    return Term(f"abs({a.text})", 0, max(abs(a.low), abs(a.high)))


def choose(condition, a, b):
    return Term(f"({condition} ? {a.text} : {b.text})", min(a.low, b.low), max(a.high, b.high))


class Translator:
    """Python's meaning in the language of search spaces, whose numbers are 64-bit integers: a number is a pair of
    terms, numerator and denominator, of which the latter is never negative. Where Python would divide by zero the
    expression has no value."""

    COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

    def __init__(self, parameters, lists=None):
        self.parameters = parameters  # name: values
        self.lists = lists or {}      # name: integers that an index chooses from

    def truth(self, node):
        """An expression that is not 0 where the node is true."""
        if isinstance(node, ast.Compare):
            return self.chain(node)
        if isinstance(node, ast.BoolOp):
            word = " && " if isinstance(node.op, ast.And) else " || "
            return "(" + self.short(node, word.join(self.truth(child) for child in node.values)) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.short(node, "!" + self.truth(node.operand))
        return self.number(node)[0].text

    def number(self, node):
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            raise PythonTextError(node, f"{what(node)} cannot be used in conditions")
        try:
            above, below = method(node)
        except OverflowError as error:
            raise PythonTextError(node, str(error)) from None
        except RecursionError:
            raise PythonTextError(node, "nested too deeply") from None
        self.short(node, above.text)
        self.short(node, below.text)
        return above, below

    @staticmethod
    def short(node, text):
        """Long pieces are refused before pieces made of them grow without bound."""
        if len(text) > MAX_EXPRESSION:
            raise PythonTextError(node, f"the expression becomes longer than {MAX_EXPRESSION} characters")
        return text

    def of_Constant(self, node):
        value = node.value
        if isinstance(value, str):
            raise PythonTextError(node, "text cannot be used in conditions")
        if isinstance(value, float):
            if not math.isfinite(value) or value != math.floor(value) or abs(value) > EXACT:
                raise PythonTextError(node, "a real that is not whole cannot be used in conditions; write it as a "
                                            "fraction, as in 1 / 2")
        elif not isinstance(value, int):
            raise PythonTextError(node, f"{value!r} cannot be used in conditions")
        return constant(int(value)), constant(1)

    def of_Name(self, node):
        name = node.id
        if name in self.lists:
            if len(self.lists[name]) > 1:
                raise PythonTextError(node, f"'{name}' is a list; give an index, as in {name}[0]")
            return constant(self.lists[name][0]), constant(1)
        if name not in self.parameters:
            raise PythonTextError(node, f"unknown name '{name}'")
        values = self.parameters[name]
        for kind, called in ((float, "a real"), (str, "text")):
            if any(isinstance(value, kind) for value in values):
                raise PythonTextError(node, f"'{name}' is {called}, which cannot be used in conditions")
        return Term(name, int(min(values)), int(max(values))), constant(1)

    def of_Subscript(self, node):
        if not isinstance(node.value, ast.Name) or node.value.id not in self.lists:
            raise PythonTextError(node, "only the problem's size can have an index in conditions")
        above, below = self.number(node.slice)
        elements = self.lists[node.value.id]
        if above.constant is None or below.constant != 1 or not 0 <= above.constant < len(elements):
            raise PythonTextError(node, f"'{node.value.id}' has no element with this index")
        return constant(elements[above.constant]), constant(1)

    @staticmethod
    def compare(a, word, b):
        """By cross multiplication, denominators being positive."""
        return f"({multiply(a[0], b[1]).text} {word} {multiply(b[0], a[1]).text})"

    def chain(self, node):
        """Each operand is translated once, although those in the middle are compared twice."""
        parts = []
        left = self.number(node.left)
        for index, (op, right) in enumerate(zip(node.ops, node.comparators)):
            if isinstance(op, (ast.In, ast.NotIn)):
                if index + 1 < len(node.ops):
                    raise PythonTextError(right, "a list cannot be compared")
                parts.append(self.membership(left, right, isinstance(op, ast.In)))
            elif type(op) in self.COMPARISONS:
                other = self.number(right)
                parts.append(self.compare(left, self.COMPARISONS[type(op)], other))
                left = other
            else:
                raise PythonTextError(right, "'is' cannot be used; compare with ==")
            self.short(node, " && ".join(parts))
        text = " && ".join(parts)
        return f"({text})" if len(parts) > 1 else text

    def membership(self, left, node, wanted):
        if not isinstance(node, (ast.List, ast.Tuple)):
            raise PythonTextError(node, "'in' needs a list or a tuple that is written out")
        text = " || ".join(self.compare(left, "==", self.number(child)) for child in node.elts)
        self.short(node, text)
        if not text:
            return "0" if wanted else "1"
        return f"({text})" if wanted else f"!({text})"

    def of_Compare(self, node):
        return Term(self.truth(node), 0, 1), constant(1)

    def of_BoolOp(self, node):
        """What `a and b` is as a number: a where it decides, else b."""
        out = self.number(node.values[-1])
        for child in reversed(node.values[:-1]):
            left = self.number(child)
            condition = left[0].text
            out = (self.pick(condition, left, out) if isinstance(node.op, ast.Or) else
                   self.pick(condition, out, left))
            self.short(node, out[0].text)
        return out

    @staticmethod
    def pick(condition, a, b):
        whole = a[1].constant == 1 and b[1].constant == 1
        return choose(condition, a[0], b[0]), constant(1) if whole else choose(condition, a[1], b[1])

    def of_IfExp(self, node):
        return self.pick(self.truth(node.test), self.number(node.body), self.number(node.orelse))

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return Term(self.truth(node), 0, 1), constant(1)
        if isinstance(node.op, ast.Invert):
            raise PythonTextError(node, "'~' cannot be used")
        above, below = self.number(node.operand)
        return (negate(above) if isinstance(node.op, ast.USub) else above), below

    def of_BinOp(self, node):
        if isinstance(node.op, ast.Pow):
            return self.power(node)
        a, b = self.number(node.left), self.number(node.right)
        if isinstance(node.op, ast.Mult):
            return multiply(a[0], b[0]), multiply(a[1], b[1])
        if isinstance(node.op, ast.Div):
            return self.divide(a, b)
        left, right = multiply(a[0], b[1]), multiply(b[0], a[1])
        if isinstance(node.op, ast.FloorDiv):
            return floor_divide(left, right), constant(1)
        below = multiply(a[1], b[1])
        if isinstance(node.op, ast.Mod):
            return floor_modulo(left, right), below
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return (add if isinstance(node.op, ast.Add) else subtract)(left, right), below
        sign = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}.get(type(node.op))
        if sign is None:
            raise PythonTextError(node, f"{what(node.op)} cannot be used")
        if below.constant != 1:
            raise PythonTextError(node, f"'{sign}' needs integers")
        return Term(f"({left.text} {sign} {right.text})", -math.inf, math.inf), constant(1)

    @staticmethod
    def divide(a, b):
        """The divisor's sign goes to the numerator. Where it may be 0, a remainder of it takes care that there is no
        value."""
        above = multiply(a[0], b[1])
        if b[0].high < 0:
            above = negate(above)
        elif b[0].low < 0:
            above = choose(b[0].text + " < 0", negate(above), above)
        if b[0].low <= 0 <= b[0].high:
            above = Term(f"({above.text} + 0 * (1 % {b[0].text}))", above.low, above.high)
        return above, multiply(a[1], absolute(b[0]))

    def power(self, node):
        base, exponent = self.number(node.left), self.number(node.right)
        whole = exponent[1].constant == 1
        if whole and exponent[0].constant is not None and abs(exponent[0].constant) <= MAX_EXPONENT:
            out = constant(1), constant(1)
            for _ in range(abs(exponent[0].constant)):
                out = multiply(out[0], base[0]), multiply(out[1], base[1])
                self.short(node, out[0].text)
            return self.divide((constant(1), constant(1)), out) if exponent[0].constant < 0 else out
        if base[0].constant == 2 and base[1].constant == 1 and whole and 0 <= exponent[0].low and \
                exponent[0].high <= MAX_EXPONENT:
            return Term(f"(1 << {exponent[0].text})", 1, 2**exponent[0].high), constant(1)
        raise PythonTextError(node, "a power needs an exponent that is a constant from -62 to 62, or the base 2 and "
                                    "an exponent from 0 to 62")

    def of_Call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in ("abs", "min", "max"):
            raise PythonTextError(node, f"the function '{name}' cannot be used in conditions; abs, min and max can")
        arguments = node.args
        if node.keywords or not arguments or name == "abs" and len(arguments) != 1:
            raise PythonTextError(node, f"{name} takes {'one number' if name == 'abs' else 'several numbers'}")
        if name == "abs":
            above, below = self.number(arguments[0])
            return absolute(above), below
        if len(arguments) == 1 and isinstance(arguments[0], ast.Name):  # of all values that the parameter has
            term = self.number(arguments[0])[0]
            return constant(term.low if name == "min" else term.high), constant(1)
        if len(arguments) == 1:
            arguments = arguments[0].elts if isinstance(arguments[0], (ast.List, ast.Tuple)) else []
        if not arguments:
            raise PythonTextError(node, f"{name} takes several numbers, or a list of them")
        out = self.number(arguments[0])
        for argument in arguments[1:]:
            out = self.lesser_or_greater(name, out, self.number(argument))
            self.short(node, out[0].text)
        return out

    def lesser_or_greater(self, name, a, b):
        if a[1].constant != 1 or b[1].constant != 1:
            return self.pick(self.compare(b, "<" if name == "min" else ">", a), b, a)
        function = min if name == "min" else max
        return (Term(f"{name}({a[0].text}, {b[0].text})", function(a[0].low, b[0].low), function(a[0].high, b[0].high)),
                constant(1))


def translate_condition(text, parameters, lists=None):
    """A condition in Python as an expression of search spaces that is not 0 exactly where Python finds it true."""
    tree = parse_python(text)
    try:
        return Translator(parameters, lists).truth(tree)
    except RecursionError:
        raise PythonTextError(tree, "nested too deeply") from None


def translate_number(text, parameters, lists=None, round_up=False):
    """As above, of a whole number; one that can be a fraction is refused, or rounded up."""
    tree = parse_python(text)
    above, below = Translator(parameters, lists).number(tree)
    if below.constant == 1:
        return above.text
    if above.constant is not None and below.constant and above.constant % below.constant == 0:
        return constant(above.constant // below.constant).text
    if not round_up:
        raise PythonTextError(tree, "this can be a fraction, and a whole number is needed; divide with //")
    return negate(floor_divide(negate(above), below)).text


class ConditionEvaluator(Evaluator):
    """A condition's own value, for choosing the default: as the translation has it, which `min(NAME)` tells apart."""

    def __init__(self, names, parameters):
        super().__init__(names, exact=True)
        self.parameters = parameters

    def of_Call(self, node):
        if len(node.args) == 1 and isinstance(node.args[0], ast.Name) and node.args[0].id in self.parameters:
            if node.func.id in ("min", "max"):
                return FUNCTIONS[node.func.id](self.parameters[node.args[0].id])
        return super().of_Call(node)


# ---- The T1 input ----


class Node:
    """A value of a JSON document with its place."""

    def __init__(self, value, file, pointer=""):
        self.value, self.file, self.pointer = value, file, pointer

    def fail(self, message):
        raise InputError(f"{self.file}:{self.pointer}: {message}" if self.pointer else f"{self.file}: {message}")

    def kind(self, wanted, called):
        if not isinstance(self.value, wanted) or isinstance(self.value, bool) and wanted is not bool:
            self.fail(f"expected {called}, found {type(self.value).__name__}")
        return self.value

    def __contains__(self, key):
        return key in self.kind(dict, "an object") and self.value[key] is not None

    def __getitem__(self, key):
        if key not in self.kind(dict, "an object"):
            self.fail(f"the key '{key}' is missing")
        escaped = key.replace("~", "~0").replace("/", "~1")
        return Node(self.value[key], self.file, f"{self.pointer}/{escaped}")

    def require_known(self, *known):
        """Requires that every member is one of these: others may change what the kernel computes."""
        for key, value in self.kind(dict, "an object").items():
            if key not in known and value is not None:
                self[key].fail("this member cannot be taken over; remove it if results do not depend on it")

    def items(self):
        return [Node(value, self.file, f"{self.pointer}/{index}")
                for index, value in enumerate(self.kind(list, "a list"))]

    def text(self):
        return self.kind(str, "text")

    def name(self):
        if not self.text().strip():
            self.fail("must not be empty")
        return self.value

    def integer(self):
        return self.kind(int, "a whole number")

    def number(self):
        return self.kind((int, float), "a number")

    def one_of(self, *words):
        if self.text() not in words:
            self.fail(f"'{self.value}' is none of {', '.join(words)}")
        return self.value

    def python(self, work, text=None):
        """Runs `work` on a Python text and tells its complaints with the text's place."""
        text = self.text() if text is None else text
        try:
            return work(text)
        except PythonTextError as error:
            self.fail(f"in '{text[:200]}', column {error.column}: {error}")

    def python_text(self):
        """A number or a Python text."""
        return str(self.integer()) if isinstance(self.value, (int, float)) else self.name()


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key '{key}' appears twice in one object")
    return dict(pairs)


def read_input(file):
    data = pathlib.Path(file).read_bytes()
    if data[:2] == b"\x1f\x8b":
        with gzip.open(file) as packed:
            data = packed.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InputError(f"{file}: larger than {MAX_FILE} bytes")
    try:
        return Node(json.loads(data, parse_constant=refuse_constant, object_pairs_hook=unique_keys), file)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: no JSON: {error}") from None


def check_version(parent, key):
    """Written as 1, "1" or "1.0.0", or not at all."""
    if key in parent:
        version = str(parent[key].value)
        if version != "1" and not version.startswith("1."):
            parent[key].fail(f"version {version[:40]} of T1 is not known; known is 1.x")


def typed(node, kind, value):
    """A parameter's value as its type has it."""
    number = isinstance(value, (int, float))
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "bool" and isinstance(value, int) and value in (0, 1):
        return bool(value)
    if kind == "float" and number:
        return float(value)
    if kind in ("int", "uint") and number and value == math.floor(value) and \
            (isinstance(value, int) or abs(value) <= EXACT) and (kind == "int" or value >= 0):
        return int(value)
    node.fail(f"the value '{value}' is no {kind}")


def read_parameters(space):
    """Values of each parameter, and the default of those that have one, with its place."""
    parameters, defaults = {}, {}
    for node in space["TuningParameters"].items():
        node.require_known("Name", "Type", "Values", "Default")
        name = node["Name"].name()
        if name in parameters:
            node["Name"].fail(f"the parameter '{name}' appears twice")
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            node["Name"].fail(f"'{name}' is not an identifier")
        if name in RESERVED or name.startswith("device_"):
            node["Name"].fail(f"'{name}' is a word of the expression language")
        kind = node["Type"].one_of("int", "uint", "float", "bool", "string")
        listed = node["Values"]
        values = list(dict.fromkeys(typed(listed, kind, value) for value in listed.python(python_values)))
        if not values:
            listed.fail("a parameter needs a value")
        if len(values) > MAX_VALUES:
            listed.fail(f"has {len(values)} values; a search space holds {MAX_VALUES} of a parameter")
        parameters[name] = values
        if "Default" in node:
            default = typed(node["Default"], kind, node["Default"].value)
            if default not in values:
                node["Default"].fail(f"{default} is not among the values")
            defaults[name] = default, node["Default"]
    if not parameters:
        space["TuningParameters"].fail("there is no parameter")
    return parameters, defaults


def read_sizes(node):
    """X, Y and Z of a size; the latter two may be missing."""
    node["X"]
    node.require_known(*"XYZ")
    return [node[axis] if axis in node else None for axis in "XYZ"]


def read_problem_size(kernel):
    if "ProblemSize" not in kernel:
        return []
    node = kernel["ProblemSize"]
    sizes = [part.integer() for part in node.items()] if isinstance(node.value, list) else [node.integer()]
    if not 1 <= len(sizes) <= 3 or any(size < 1 for size in sizes):
        node.fail("expected one to three numbers of at least 1")
    return sizes


# ---- The search space ----


FLOAT_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}  # of sums in another order
RANGES = {"float64": (-sys.float_info.max, sys.float_info.max),
          "float32": (-3.4028234663852886e38, 3.4028234663852886e38), "float16": (-65504, 65504), "int8": (-128, 127),
          "uint8": (0, 255), "int32": (-(1 << 31), (1 << 31) - 1),
          "uint32": (0, (1 << 32) - 1), "int64": (MIN_INTEGER, MAX_INTEGER)}
SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "int8": 1, "uint8": 1}
TYPES = {"float": ("float32", 1), "float2": ("float32", 2), "float4": ("float32", 4), "double": ("float64", 1),
         "double2": ("float64", 2), "double4": ("float64", 4), "half": ("float16", 1), "half2": ("float16", 2),
         "bool": ("uint8", 1), **{name: (name, 1) for name in ("int32", "uint32", "int64", "int8", "uint8")}}


KERNEL_MEMBERS = ("Language", "KernelName", "KernelFile", "CompilerOptions", "ProblemSize", "GlobalSize", "GlobalSizeType",
                  "LocalSize", "GridDivX", "GridDivY", "GridDivZ", "SharedMemory", "Arguments")
# How to search, where, and what to do with results: nothing that a kernel computes.
NO_EFFECT = ("$schema", "General", "Search", "Budget", "Device", "Profiling", "SimulationInput", "BenchmarkName")


class SpaceWriter:
    def __init__(self, root):
        space, self.kernel = root["ConfigurationSpace"], root["KernelSpecification"]
        root.require_known("ConfigurationSpace", "KernelSpecification", "schema_version", *NO_EFFECT)
        space.require_known("TuningParameters", "Conditions")
        self.kernel.require_known(*KERNEL_MEMBERS, *NO_EFFECT)
        self.parameters, self.defaults = read_parameters(space)
        self.space = space
        self.problem_size = read_problem_size(self.kernel)
        self.lists = {"ProblemSize": self.problem_size} if self.problem_size else {}
        self.conditions = []  # tree, expression, Python text
        for node in space["Conditions"].items() if "Conditions" in space else []:
            self.read_condition(node)
        language = self.kernel["Language"].one_of("OpenCL", "CUDA", "Vulkan", "Hypertuner")
        if language != "CUDA":
            self.kernel["Language"].fail(f"kernels in {language} cannot be run here, only CUDA")
        for option in self.kernel["CompilerOptions"].items() if "CompilerOptions" in self.kernel else []:
            option.fail(f"the compiler option '{option.text()}' cannot be taken over; remove it, and give it to the "
                        "space by hand if the kernel needs it")
        self.tolerances = {}
        self.local = read_sizes(self.kernel["LocalSize"])

    def read_condition(self, node):
        node.require_known("Parameters", "Expression")
        for parameter in node["Parameters"].items():
            if parameter.text() not in self.parameters:
                parameter.fail(f"there is no parameter '{parameter.value}'")
        expression = node["Expression"]
        text = expression.python(lambda python: translate_condition(python, self.parameters, self.lists))
        self.conditions.append((parse_python(expression.value), text, expression.value))

    def number(self, node, round_up=False):
        return node.python(lambda text: translate_number(text, self.parameters, self.lists, round_up),
                           node.python_text())

    def document(self, name):
        block = [self.number(node) if node else "1" for node in self.local]
        grid = self.grid(block)
        shared_bytes = self.kernel["SharedMemory"].integer() if "SharedMemory" in self.kernel else 0
        if shared_bytes < 0:
            self.kernel["SharedMemory"].fail("must not be negative")
        arguments = self.arguments()
        default = self.default()
        self.check_extents(arguments, default)
        # Sizes are constants, results are compared with those of the default configuration.
        extents = [f"({entry['extent']}) * {SIZES[entry['buffer']]}" for entry in arguments if "extent" in entry]
        return {
            "schema": 1, "kernel": name, "description": "Imported from a T1 input.", "dimensions": [], "types": [],
            "parameters": [{"name": parameter, "values": values, "default": default[parameter]}
                           for parameter, values in self.parameters.items()],
            "constraints": [{"require": text, "because": python} for _, text, python in self.conditions],
            "launch": {"function": self.kernel["KernelName"].name(), "block": block, "grid": grid,
                       "shared_bytes": shared_bytes},
            "arguments": arguments, "reference": {"default": True}, "tolerance": self.tolerances,
            "work": {"flops": 0, "bytes": " + ".join(extents)}}

    def grid(self, block):
        """With divisors, or a problem's size, the grid covers that size; else the global size is blocks for CUDA,
        threads for the others."""
        divisors = [self.divisors("GridDiv" + axis) for axis in "XYZ"]
        divided = any(axis is not None for axis in divisors)
        kind = "CUDA"
        if "GlobalSizeType" in self.kernel:
            kind = self.kernel["GlobalSizeType"].one_of("OpenCL", "CUDA", "Vulkan")
        grid = []
        for axis, node in enumerate(read_sizes(self.kernel["GlobalSize"])):
            total = self.number(node, round_up=True) if node else "1"
            if self.problem_size:
                total = str(self.problem_size[axis]) if axis < len(self.problem_size) else "1"
            if divided:
                grid.append(f"ceil_div({total}, {' * '.join(divisors[axis])})" if divisors[axis] else total)
            elif not self.problem_size and kind == "CUDA":
                grid.append(total)
            else:
                grid.append(f"ceil_div({total}, {block[axis]})")
        return grid

    def divisors(self, key):
        if key not in self.kernel:
            return None
        node = self.kernel[key]
        return [self.number(part) for part in (node.items() if isinstance(node.value, list) else [node])]

    def arguments(self):
        arguments = []
        for index, node in enumerate(self.kernel["Arguments"].items() if "Arguments" in self.kernel else []):
            name = node["Name"].name() if "Name" in node else f"argument_{index}"
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                node["Name"].fail(f"'{name}' is no identifier")
            if name in self.parameters:
                node["Name"].fail(f"'{name}' is a parameter's name")
            if any(name == other["name"] for other in arguments):
                (node["Name"] if "Name" in node else node).fail(f"the argument '{name}' appears twice")
            if node["Type"].text() not in TYPES:
                node["Type"].fail(f"arguments of type '{node['Type'].value}' cannot be taken over")
            node.require_known("Name", "Type", "MemoryType", "MemType", "AccessType", "Size", "FillType", "FillValue",
                               "RandomSeed", "Output")
            if "MemType" in node and node["MemType"].text() not in ("Global", "Scalar", "Vector"):
                node["MemType"].fail(f"{node['MemType'].value} memory cannot be taken over: only arguments are filled")
            memory = node["MemoryType"].one_of("Scalar", "Vector", "Local", "Symbol")
            if memory not in ("Scalar", "Vector"):
                node["MemoryType"].fail(f"{memory} memory cannot be taken over, only Scalar and Vector")
            arguments.append({"name": name, **(self.scalar(node) if memory == "Scalar" else self.vector(node))})
        if not self.tolerances:
            Node(None, self.kernel.file, self.kernel.pointer + "/Arguments").fail(
                "no vector is written to, so there is no result to check")
        return arguments

    @staticmethod
    def fill(node):
        """How an argument is filled, and with what, which its type holds."""
        kind = ""
        if "FillType" in node:
            kind = node["FillType"].one_of("Constant", "Random", "Generator", "Script", "BinaryRaw", "BinaryHDF")
        if "FillValue" not in node:
            return kind, None
        value = node["FillValue"].number()
        least, most = (0, 1) if node["Type"].value == "bool" else RANGES[TYPES[node["Type"].value][0]]
        if not least <= value <= most:
            node["FillValue"].fail(f"{value} does not fit the type '{node['Type'].value}', which holds {least} to "
                                   f"{most}")
        return kind, value

    def scalar(self, node):
        element, lanes = TYPES[node["Type"].value]
        if lanes > 1 or element == "float16":
            node["Type"].fail(f"scalars of type '{node['Type'].value}' cannot be taken over")
        kind, value = self.fill(node)
        if value is None or kind == "Random" or value != math.floor(value) or abs(value) > EXACT:
            node.fail("a scalar needs a whole number as its FillValue")
        return {"scalar": element, "value": int(value)}

    def vector(self, node):
        element, lanes = TYPES[node["Type"].value]
        if "Size" not in node:
            node.fail("a vector needs its Size")
        extent = self.number(node["Size"]) + (f" * {lanes}" if lanes > 1 else "")
        access = "ReadWrite"
        if "AccessType" in node:
            access = node["AccessType"].one_of("ReadOnly", "WriteOnly", "ReadWrite")
        access = {"ReadOnly": "in", "WriteOnly": "out", "ReadWrite": "inout"}[access]
        out = {"buffer": element, "access": access, "extent": extent}
        if "Output" in node and node["Output"].value and access == "in":
            node["Output"].fail("the AccessType is ReadOnly, so it is not an output")
        if access != "in":
            self.tolerances[element] = FLOAT_TOLERANCES.get(element, 0)
        kind, value = self.fill(node)
        if access == "out":
            return out
        if kind == "Constant":
            out.update({"fill": "ramp", "low": value, "high": value} if value else {"fill": "zero"})
        elif kind in ("Random", ""):
            usual = 1 if element in FLOAT_TOLERANCES else 100 if SIZES[element] == 1 else 1000
            most = usual if value is None else value
            out.update({"fill": "uniform", "low": min(0, most), "high": max(0, most)})
        else:
            node["FillType"].fail(f"vectors filled by {kind} cannot be taken over, only Constant and Random")
        return out

    def value_of(self, tree, config):
        """A condition's or a number's value for a configuration, by Python's meaning; None if it has none."""
        names = {**config, **{name: sizes if len(sizes) > 1 else sizes[0] for name, sizes in self.lists.items()}}
        if self.problem_size and any(isinstance(node, ast.Subscript) for node in ast.walk(tree)):
            names["ProblemSize"] = self.problem_size
        try:
            return ConditionEvaluator(names, self.parameters).evaluate(tree)
        except PythonTextError:
            return None

    def default(self):
        """The first configuration that meets the conditions with a block of 1 to 1024 threads, those with the defaults
        that are given before all others."""
        order = {name: index for index, name in enumerate(self.parameters)}
        last = lambda *trees: max((order[node.id] for tree in trees for node in ast.walk(tree)
                                   if isinstance(node, ast.Name) and node.id in order), default=0)
        block = [parse_python(node.python_text()) for node in self.local if node]
        checks = [(last(tree), lambda config, tree=tree: self.value_of(tree, config)) for tree, *_ in self.conditions]

        def fits(config):
            threads = [self.value_of(tree, config) for tree in block]
            return all(count is not None and count >= 1 for count in threads) and math.prod(threads) <= 1024

        checks.append((last(*block), fits))
        due = [[check for place, check in checks if place == index] for index in range(len(order))]
        names, config, tried = list(self.parameters), {}, 0

        def choose_from(index):
            nonlocal tried
            if index == len(names):
                return True
            given = [self.defaults[names[index]][0]] if names[index] in self.defaults else []
            for value in dict.fromkeys(given + self.parameters[names[index]]):
                tried += 1
                if tried > MAX_TRIED:
                    self.space["Conditions"].fail("no configuration that meets them was found in reasonable time")
                config[names[index]] = value
                if all(check(config) for check in due[index]) and choose_from(index + 1):
                    return True
            config.pop(names[index], None)
            return False

        if not choose_from(0):
            Node(None, self.space.file, self.space.pointer + "/Conditions").fail(
                "no configuration meets the conditions with a block of 1 to 1024 threads")
        for name, (value, node) in self.defaults.items():
            if config[name] != value:
                node.fail(f"no configuration with {name}={value} and the other defaults meets the conditions with a block "
                          "of 1 to 1024 threads")
        return config

    def check_extents(self, arguments, default):
        for entry, node in zip(arguments, self.kernel["Arguments"].items()):
            if "extent" not in entry:
                continue
            count = self.value_of(parse_python(node["Size"].python_text()), default)
            most = MAX_BUFFER // SIZES[entry["buffer"]]
            if count is None or not 1 <= count * TYPES[node["Type"].value][1] <= most:
                node["Size"].fail(f"a vector of {'too many' if count is None else count} elements cannot be allocated; "
                                  f"1 to {most} can")


# ---- The kernel ----


def named_source(kernel, file):
    """The kernel's file as the T1 input names it: in its own folder or below, as the input may come from anyone."""
    node = kernel["KernelFile"]
    named = pathlib.PurePath(node.name())
    if named.is_absolute() or ".." in named.parts:
        node.fail(f"'{named}' leads out of the folder of this file; put the kernel's file beside it, and name it so")
    source = pathlib.Path(file).parent / named
    if not source.is_file():
        node.fail(f"there is no file {source}")
    text = source.read_text(encoding="utf-8", errors="surrogateescape")
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    included = re.search(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', bare, re.MULTILINE)
    if included:
        raise InputError(f"{source} includes '{included[1]}', and only one file can be taken over: put what it needs "
                         "into the kernel's file")
    return text


def with_c_linkage(kernel, source):
    """The source with `extern "C"` in front of the kernel's function, should it not have it."""
    name = kernel["KernelName"].name()
    for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)\s*\(", source):
        start = source.rfind("__global__", 0, found.start())
        if start < 0 or re.search(r"[;{}]", source[start:found.start()]):
            continue
        # It stands on the declaration itself, or in front of a block around it.
        return source if 'extern "C"' in source[:start] else source[:start] + 'extern "C" ' + source[start:]
    kernel["KernelName"].fail(f"the kernel's file has no __global__ function '{name}'")


# ---- Writing ----


def written_beside(file, text):
    """A temporary file with this content in the folder of `file`."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".import_t1.")
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text)
    mask = os.umask(0o077)
    os.umask(mask)
    os.chmod(name, 0o666 & ~mask)
    return name


def write_pair(folder, contents):
    """Both files or none, and no folders that were not there before if none."""
    made = []
    temporary = []
    try:
        for parent in reversed([folder, *folder.parents]):
            if not parent.exists():
                parent.mkdir()
                made.append(parent)
        for file, text in contents.items():
            if file.is_dir():
                raise IsADirectoryError(21, "a folder is in its place", str(file))
            temporary.append((written_beside(file, text), file))
        while temporary:
            os.replace(*temporary[0])
            temporary.pop(0)
        made.clear()
    finally:
        for name, _ in temporary:
            os.unlink(name)
        for parent in reversed(made):
            parent.rmdir()


def import_space(options):
    root = read_input(options.file)
    check_version(root, "schema_version")
    if "General" in root:
        check_version(root["General"], "FormatVersion")
    writer = SpaceWriter(root)
    name = options.name or writer.kernel["KernelName"].name()
    if not re.fullmatch(r"\w+", name, re.ASCII):
        writer.kernel["KernelName"].fail(f"'{name}' cannot be a file's name here; give another with --name")
    space_file, source_file = (options.into / (name + ending) for ending in (".json", ".cu"))
    for file in (space_file, source_file):
        if file.exists() and not options.force:
            raise InputError(f"{file} exists; give --force to replace it, or another name with --name")
    document = writer.document(name)
    source = with_c_linkage(writer.kernel, named_source(writer.kernel, options.file))
    write_pair(options.into, {source_file: source, space_file: json.dumps(document, indent=1) + "\n"})
    combinations = math.prod(len(values) for values in writer.parameters.values())
    print(f"wrote {space_file} and {source_file}: {len(writer.parameters)} parameters, "
          f"{len(writer.conditions)} constraints, {combinations} combinations before constraints")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="T1 input, JSON, plain or packed with gzip")
    parser.add_argument("--into", type=pathlib.Path, required=True, help="folder to write NAME.json and NAME.cu to")
    parser.add_argument("--name", help="name of the kernel here (default: its KernelName)")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    try:
        import_space(parser.parse_args())
    except (InputError, OSError, EOFError) as error:
        line = "".join(c if c.isprintable() else "?" for c in str(error))
        sys.exit(f"import_t1_space.py: {line}")


if __name__ == "__main__":
    main()
