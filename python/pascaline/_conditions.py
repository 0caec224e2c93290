"""Conditions in Python's syntax as expressions of search spaces (docs/search_spaces.md)."""

import ast
import dataclasses
import math
import operator

from ._python_text import FUNCTIONS, MAX_INTEGER, MIN_INTEGER, Evaluator, PythonTextError, parse_python, what

MAX_EXPRESSION = 4096  # characters
MAX_EXPONENT = 62
EXACT = 1 << 53  # whole numbers up to it are exact as reals


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
