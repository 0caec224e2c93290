#!/usr/bin/env python3
"""Checks search_spaces/workloads/*.json: form of every file, and the totals of the models whose totals are known.

Usage: scripts/check_workload.py [FILE...]     (default: all workloads; docs/workloads.md has the format)
"""
import ast
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "search_spaces" / "workloads"
HALF = 2  # bytes of a stored weight or cache element
PRODUCTS = ("matmul", "matvec")  # kernels of matrix products
CHOICES = ("CAUSAL", "EPILOGUE", "OPERATION", "RESIDUAL")  # dimensions that choose what is computed, from 0


class WorkloadError(Exception):
    pass


def require(condition, where, what):
    if not condition:
        raise WorkloadError(f"{where}: {what}")


def truncating_division(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


OPERATORS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: truncating_division,
    ast.Mod: lambda a, b: a - b * truncating_division(a, b),
}
FUNCTIONS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b}


def evaluate(value, symbols, where):
    """An integer, or the value of a C integer expression (the arithmetic part of the search spaces' language)."""
    if type(value) is int:
        return value
    require(isinstance(value, str), where, f"must be an integer or an expression, not {value!r}")

    def walk(node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            require(node.id in symbols, where, f"'{value}' uses '{node.id}', which is no symbol of the phase")
            return symbols[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*[walk(argument) for argument in node.args])
        raise WorkloadError(f"{where}: '{value}' is not an integer expression")

    try:
        return walk(ast.parse(value.strip(), mode="eval").body)
    except (SyntaxError, TypeError, ZeroDivisionError) as error:
        raise WorkloadError(f"{where}: '{value}': {error}") from error


def check_members(thing, where, needed, allowed=()):
    require(isinstance(thing, dict), where, "must be an object")
    for name in needed:
        require(name in thing, where, f"'{name}' is missing")
    for name in thing:
        require(name in needed or name in allowed, where, f"'{name}' is not a known member")


def check_phase(phase, where):
    check_members(phase, where, ("name", "per"), ("symbols",))
    for name, values in phase.get("symbols", {}).items():
        require(name.isidentifier(), where, f"'{name}' is not an identifier")
        ok = isinstance(values, list) and values and all(type(v) is int and v > 0 for v in values)
        require(ok and len(set(values)) == len(values), where, f"'{name}' needs a list of different positive integers")


def check_entry(entry, where, phases, dimension_names):
    check_members(entry, where, ("kernel", "name", "phase", "dimensions", "count"), ("alternative_of", "types"))
    require(entry["phase"] in phases, where, f"phase '{entry['phase']}' is not in 'phases'")
    require(type(entry["count"]) is int and entry["count"] > 0, where, "'count' must be a positive integer")
    names = set(entry["dimensions"])
    known = dimension_names.setdefault(entry["kernel"], names)
    require(names == known, where, f"dimensions {sorted(names)} differ from {sorted(known)} of the same kernel above")
    symbols = phases[entry["phase"]].get("symbols", {})
    for name, value in entry["dimensions"].items():
        for choice in range(max((len(values) for values in symbols.values()), default=1)):
            at = {symbol: values[min(choice, len(values) - 1)] for symbol, values in symbols.items()}
            number = evaluate(value, at, f"{where}/dimensions/{name}")
            require(number >= (0 if name in CHOICES else 1), where, f"{name} is {number} with {at}")


def check_form(workload):
    check_members(workload, "", ("schema", "name", "description", "source", "phases", "entries"), ("types",))
    require(workload["schema"] == 1, "/schema", "only 1 is known")
    for name, types in workload.get("types", {}).items():
        require(isinstance(types, list) and types, f"/types/{name}", "must be a list of element types")
    for index, phase in enumerate(workload["phases"]):
        check_phase(phase, f"/phases/{index}")
    phases = {phase["name"]: phase for phase in workload["phases"]}
    require(len(phases) == len(workload["phases"]), "/phases", "two phases have the same name")
    dimension_names, seen = {}, {}
    for index, entry in enumerate(workload["entries"]):
        where = f"/entries/{index}"
        check_entry(entry, where, phases, dimension_names)
        key = (entry["phase"], entry["name"])
        require(key not in seen, where, f"'{entry['name']}' stands twice in phase '{entry['phase']}'")
        seen[key] = entry
    for index, entry in enumerate(workload["entries"]):
        for name in entry.get("alternative_of", []):
            other = seen.get((entry["phase"], name))
            require(other and "alternative_of" not in other, f"/entries/{index}/alternative_of",
                    f"'{name}' is not a plain entry of the same phase")


def entries_of(workload, phase):
    """Entries that count: those that are not an alternative of others."""
    return [e for e in workload["entries"] if e["phase"] == phase and "alternative_of" not in e]


def dimensions(entry, symbols):
    return {name: evaluate(value, symbols, entry["name"]) for name, value in entry["dimensions"].items()}


def flops(entry, symbols):
    """Multiply-adds count two; attention without skipping the causal half; norms and rotations not counted."""
    d = dimensions(entry, symbols)
    if entry["kernel"] in PRODUCTS:
        return entry["count"] * 2 * d["M"] * d["N"] * d["K"]
    if entry["kernel"].startswith("attention"):
        return entry["count"] * 4 * d["HEADS"] * d["HEAD_DIM"] * d.get("QUERIES", 1) * d["KEYS"]
    return 0


def sum_flops(workload, phase, symbols, kind):
    return sum(flops(e, symbols) for e in entries_of(workload, phase) if e["kernel"].startswith(kind))


def parameters(workload, phase, symbols, bias):
    """Parameters of the matmuls and of the norms of a phase."""
    matrices = norms = 0
    for entry in entries_of(workload, phase):
        d = dimensions(entry, symbols)
        if entry["kernel"] in PRODUCTS:
            matrices += entry["count"] * d["N"] * (d["K"] + (1 if bias else 0))
        elif entry["kernel"] in ("rmsnorm", "layernorm"):
            norms += entry["count"] * d["WIDTH"] * (2 if entry["kernel"] == "layernorm" else 1)
        elif entry["kernel"] == "qk_norm_rope":
            norms += entry["count"] * d["HEAD_DIM"] * 2
    return matrices, norms


class Totals:
    def __init__(self):
        self.wrong = 0

    def expect(self, what, value, expected):
        good = value == expected
        self.wrong += not good
        print(f"  {'ok   ' if good else 'WRONG'} {what}: {value:,}" + ("" if good else f", expected {expected:,}"))


def check_text(workload, totals):
    for s in (128, 512, 1024, 2048, 4096):
        at = {"S": s}
        totals.expect(f"prefill S={s}, matmul FLOP", sum_flops(workload, "prefill", at, "mat"),
                      2818572288 * s + 622329856)
        totals.expect(f"prefill S={s}, attention FLOP", sum_flops(workload, "prefill", at, "attention"), 229376 * s * s)
    for length in (1, 512, 4096):
        at = {"L": length}
        totals.expect(f"decode L={length}, FLOP", sum_flops(workload, "decode", at, ""),
                      3440902144 + 229376 * length)
        cache = sum(e["count"] * HALF * 2 * d["KV_HEADS"] * d["HEAD_DIM"] * d["KEYS"]
                    for e in entries_of(workload, "decode") if e["kernel"] == "attention_decode"
                    for d in [dimensions(e, at)])
        totals.expect(f"decode L={length}, cache bytes read", cache, 114688 * length)
    for phase, at in (("prefill", {"S": 128}), ("decode", {"L": 512})):
        matrices, norms = parameters(workload, phase, at, bias=False)
        totals.expect(f"{phase} matrix bytes", HALF * matrices, 3440902144)
        totals.expect(f"{phase} text bytes", HALF * (matrices + norms), 3441149952)


def check_vision(workload, totals):
    # Rows of the published table: patches, then blocks, attention, mergers and total in GFLOP.
    table = {256: (154.6, 6.4, 12.9, 174.8), 784: (473.5, 60.4, 39.5, 575.9), 1200: (724.8, 141.6, 60.4, 930.5),
             4096: (2473.9, 1649.3, 206.2, 4342.2), 8160: (4928.5, 6545.6, 410.7, 11910.5)}
    for n, row in table.items():
        parts = {"patch": 0, "blocks": 0, "attention": 0, "mergers": 0}
        for entry in entries_of(workload, "image"):
            part = ("attention" if entry["kernel"].startswith("attention") else
                    "patch" if entry["name"] == "patch_embed" else
                    "mergers" if entry["name"].startswith("merger") else "blocks")
            parts[part] += flops(entry, {"N": n})
        exact = {"patch": 3145728 * n, "blocks": 603979776 * n, "attention": 98304 * n * n, "mergers": 50331648 * n}
        for part, value in parts.items():
            totals.expect(f"image N={n}, {part} FLOP", value, exact[part])
        rounded = tuple(round(v / 1e9, 1) for v in (parts["blocks"], parts["attention"], parts["mergers"],
                                                    sum(parts.values())))
        for name, value, expected in zip(("blocks", "attention", "mergers", "total"), rounded, row):
            totals.expect(f"image N={n}, {name} GFLOP", value, expected)
    matrices, norms = parameters(workload, "image", {"N": 256}, bias=True)
    position_table = 2304 * 1024
    totals.expect("vision bytes", HALF * (matrices + norms + position_table), 813914112)


def check_model(workload, totals):
    check_text(workload, totals)
    check_vision(workload, totals)
    text = HALF * sum(parameters(workload, "decode", {"L": 512}, bias=False))
    vision = HALF * (sum(parameters(workload, "image", {"N": 256}, bias=True)) + 2304 * 1024)
    totals.expect("model bytes", text + vision, 4255064064)
    totals.expect("model parameters", (text + vision) // HALF, 2127532032)


KNOWN_TOTALS = {"qwen3-vl-2b": check_model}


def main(arguments):
    files = [pathlib.Path(a) for a in arguments] or sorted(FOLDER.glob("*.json"))
    totals = Totals()
    for file in files:
        try:
            workload = json.loads(file.read_text())
            check_form(workload)
        except (OSError, ValueError, WorkloadError) as error:
            print(f"{file}:{error}", file=sys.stderr)
            return 1
        print(f"{file.name}: {len(workload['entries'])} entries, well formed")
        if workload["name"] in KNOWN_TOTALS:
            KNOWN_TOTALS[workload["name"]](workload, totals)
    print(f"{totals.wrong} totals wrong" if totals.wrong else "all totals right")
    return 1 if totals.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
