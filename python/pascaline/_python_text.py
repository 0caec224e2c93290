"""Texts in Python's syntax that come from elsewhere: parsed by Python's own `ast`, never run. Values are worked out by an
interpreter of the few things that such a text may hold."""

import ast
import math
import operator
import re
import warnings
from fractions import Fraction

MAX_LISTED = 65535
MAX_STEPS = 500_000
MAX_TEXT = 1 << 20
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1


class PythonTextError(Exception):
    def __init__(self, node, message):
        super().__init__(message)
        self.column = node if isinstance(node, int) else node.col_offset + 1


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
