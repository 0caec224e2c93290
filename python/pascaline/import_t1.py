"""Makes a search space and its kernel out of a T1 input (autotuning's exchange format, version 1.x, CUDA only).

  python -m pascaline.import_t1 stencil.json --into my
  pascaline sweep --kernels my --spaces my --kernel stencil

Writes NAME.json and NAME.cu, both or neither; docs/exchange.md says what becomes what.
"""

import argparse
import ast
import contextlib
import gzip
import json
import math
import os
import pathlib
import re
import sys
import tempfile

from . import _headers
from ._conditions import EXACT, ConditionEvaluator, translate_condition, translate_number
from ._python_text import MAX_INTEGER, MIN_INTEGER, PythonTextError, parse_python, python_values

MAX_VALUES = 4096  # of a parameter of a search space
MAX_FILE = 512 << 20
MAX_BUFFER = 1 << 40  # bytes
MAX_TRIED = 1_000_000
RESERVED = {"min", "max", "abs", "ceil_div", "round_up", "is_pow2", "log2", "sizeof"}


class InputError(Exception):
    """Something that cannot be taken over, with its place."""


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
    """Written as 1, "1" or "1.0.0", or not at all; the format was published with versions below 1, too."""
    if key in parent:
        version = str(parent[key].value)
        if version != "1" and not version.startswith(("0.", "1.")):
            parent[key].fail(f"version {version[:40]} of T1 is not known; known are 0.x and 1.x")


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


def function_of(name):
    """The function that a name stands for, which may be in a namespace and a template with its arguments, and its bare name; None
    for other texts."""
    found = re.fullmatch(r"\s*((?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)\s*(<.*>)?)\s*", name, re.ASCII) if isinstance(name, str) else None
    return found and (re.sub(r"\s*<", "<", found[1].strip(), count=1), found[2])


def own_path(node, named, file):
    """A file or folder as the T1 input names it: in its own folder or below, as the input may come from anyone."""
    path = pathlib.PurePath(named)
    if path.is_absolute() or ".." in path.parts:
        node.fail(f"'{path}' leads out of the folder of this file; put what it names beside it, and name it so")
    return pathlib.Path(file).parent / path


def read_options(kernel):
    """Compiler options as a search space has them, without those that say for which card, or how well, to compile, and the folders
    of headers. Those that a space does not allow are reported when it is read."""
    options, folders = [], []
    nodes = kernel["CompilerOptions"].items() if "CompilerOptions" in kernel else []
    while nodes:
        node = nodes.pop(0)
        option = node.name().strip()
        folder = re.fullmatch(r"(?:-I|--?include-path)[= ]*(.*)", option)
        if folder:
            node = node if folder[1] or not nodes else nodes.pop(0)
            folders.append(own_path(node, folder[1] or node.name().strip(), kernel.file))
            if not folders[-1].is_dir():
                node.fail(f"no such folder: {folders[-1]}")
        elif not re.match(r"-O\d|-arch|-gencode|--gpu-architecture|-lineinfo|--generate-line-info", option):
            options.append(re.sub(r"^-(?=std=|use_fast_math|maxrregcount=|ftz=|fmad=|prec-)", "--", option))
    return options, folders


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


FLOAT_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}  # of sums in another order
RANGES = {"float64": (-sys.float_info.max, sys.float_info.max),
          "float32": (-3.4028234663852886e38, 3.4028234663852886e38), "float16": (-65504, 65504), "int8": (-128, 127),
          "uint8": (0, 255), "bool": (0, 1), "int32": (-(1 << 31), (1 << 31) - 1),
          "uint32": (0, (1 << 32) - 1), "int64": (MIN_INTEGER, MAX_INTEGER)}
SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "int8": 1, "uint8": 1, "bool": 1}
TYPES = {"float": ("float32", 1), "float2": ("float32", 2), "float4": ("float32", 4), "double": ("float64", 1),
         "double2": ("float64", 2), "double4": ("float64", 4), "half": ("float16", 1), "half2": ("float16", 2),
         **{name: (name, 1) for name in ("int32", "uint32", "int64", "int8", "uint8", "bool")}}


KERNEL_MEMBERS = ("Language", "KernelName", "KernelFile", "Sources", "CompilerOptions", "ProblemSize", "GlobalSize", "GlobalSizeType",
                  "LocalSize", "GridDivX", "GridDivY", "GridDivZ", "SharedMemory", "Arguments")
USUAL_BLOCK = {"block_size_x": 256, "block_size_y": 1, "block_size_z": 1}
# How to search, where, and what to do with results: nothing that a kernel computes.
NO_EFFECT = ("$schema", "General", "Search", "Budget", "Device", "Profiling", "SimulationInput", "BenchmarkName")


class TooManyTried(Exception):
    """No configuration was found among as many as are tried."""


def first_config(values, checks):
    """The first configuration, of parameters and their values in order, that meets all checks, or None. A check is the place of the
    last parameter that it reads, and a function of the configuration so far."""
    names, config, tried = list(values), {}, 0
    due = [[holds for place, holds in checks if place == index] for index in range(len(names))]

    def choose_from(index):
        nonlocal tried
        if index == len(names):
            return True
        for value in values[names[index]]:
            tried += 1
            if tried > MAX_TRIED:
                raise TooManyTried
            config[names[index]] = value
            if all(holds(config) for holds in due[index]) and choose_from(index + 1):
                return True
        config.pop(names[index], None)
        return False

    return config if choose_from(0) else None


def comes_from_elsewhere(node):
    """Whether an argument's contents are made by a program or read from a file."""
    return "FillType" in node and node["FillType"].value in ("Generator", "Script", "BinaryRaw", "BinaryHDF")


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
        self.options, self.folders = read_options(self.kernel)
        node = self.kernel["KernelName"]
        self.function, self.name = function_of(node.name()) or node.fail(f"'{node.value}' is not the name of a function")
        self.tolerances = {}
        self.notes = []  # what is to be done by hand
        self.local = [self.block_size(node) if node else None for node in read_sizes(self.kernel["LocalSize"])]

    def block_size(self, node):
        """Kernel Tuner takes its usual block without a parameter of the usual name."""
        usual = USUAL_BLOCK.get(node.value) if isinstance(node.value, str) else None
        return Node(usual, node.file, node.pointer) if usual and node.value not in self.parameters else node

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
            **({"options": self.options} if self.options else {}),
            "launch": {"function": self.function, "block": block, "grid": grid,
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
                               "RandomSeed", "Output", *(("DataSource",) if comes_from_elsewhere(node) else ()))
            kind = node["MemType"].one_of("Global", "Scalar", "Vector", "Constant") if "MemType" in node else ""
            memory = node["MemoryType"].one_of("Scalar", "Vector", "Local", "Symbol")
            if memory == "Local":
                node["MemoryType"].fail("Local memory cannot be taken over; its size in bytes is SharedMemory's")
            argument = {"name": name, **(self.scalar(node) if memory == "Scalar" else self.vector(node, name))}
            if memory == "Symbol" or kind == "Constant":
                self.make_symbol(node, argument)
            arguments.append(argument)
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
        if "FillValue" not in node or comes_from_elsewhere(node):
            return kind, None
        value = node["FillValue"].number()
        least, most = RANGES[TYPES[node["Type"].value][0]]
        if not least <= value <= most:
            node["FillValue"].fail(f"{value} does not fit the type '{node['Type'].value}', which holds {least} to "
                                   f"{most}")
        return kind, value

    def scalar(self, node):
        element, lanes = TYPES[node["Type"].value]
        if lanes > 1 or element == "float16":
            node["Type"].fail(f"scalars of type '{node['Type'].value}' cannot be taken over")
        kind, value = self.fill(node)
        if value is None or kind == "Random":
            node.fail("a scalar needs a number as its FillValue")
        if value == math.floor(value) and abs(value) <= EXACT:
            return {"scalar": element, "value": int(value)}
        if element not in ("float32", "float64"):
            node["FillValue"].fail(f"{value} is not a whole number, as scalars of type '{node['Type'].value}' are")
        return {"scalar": element, "value": float(value)}

    def vector(self, node, name):
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
            out.update({"fill": "constant", "low": value} if value else {"fill": "zero"})
        else:
            if comes_from_elsewhere(node):
                source = f" ({node['DataSource'].text()})" if "DataSource" in node else ""
                self.notes.append(f"'{name}' is filled by {kind}{source}: give its contents to sweep and check with --input {name}=FILE, "
                                  "else they are random")
            usual = 1 if element in FLOAT_TOLERANCES else 2 if element == "bool" else 100 if SIZES[element] == 1 else 1000
            most = usual if value is None or element == "bool" else value
            out.update({"fill": "uniform", "low": min(0, most), "high": max(0, most)})
        return out

    @staticmethod
    def make_symbol(node, argument):
        """A variable of the kernel's file, of the argument's name. A symbol is not an argument of the function. What MemType
        calls constant is one, if the function has a parameter for it, which only its file tells (pass_symbols)."""
        if argument.get("access") != "in":
            node.fail(f"'{argument['name']}' is a variable of the kernel's file, which can only be read: AccessType ReadOnly")
        argument["symbol"] = argument["name"]

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
        given = {name: [default] for name, (default, _) in self.defaults.items()}
        values = {name: dict.fromkeys(given.get(name, []) + listed) for name, listed in self.parameters.items()}
        try:
            config = first_config(values, checks)
        except TooManyTried:
            self.space["Conditions"].fail("no configuration that meets them was found in reasonable time")
        if config is None:
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


def source_of(writer, file):
    """The kernel's code, after that of further sources, and copies of what they include, by their names."""
    nodes = writer.kernel["Sources"].items() if "Sources" in writer.kernel else []
    main = writer.kernel["KernelFile"]
    sources = [own_path(node, node.name(), file) for node in [*nodes, main]]
    for source, node in zip(sources, [*nodes, main]):
        if not source.is_file():
            node.fail(f"there is no file {source}")
    root = os.path.realpath(pathlib.Path(file).parent)

    def require(header):
        if os.path.commonpath([root, header]) != root:
            raise InputError(f"{sources[-1]} includes {header}, which is not in the folder of {file}; put it there")

    others = [os.path.realpath(source) for source in sources[:-1] if source != sources[-1]]
    before = "".join(f'#include "{other}"\n' for other in others)
    copies = {}
    text = _headers.with_headers(before + ("#line 1\n" if before else "") + _headers.read_text(sources[-1]), str(sources[-1].parent),
                                 [str(folder) for folder in writer.folders], copies, require)
    return text, copies


def parameters_of(writer, text):
    """Number of parameters of the kernel's function."""
    for code in text:
        found = re.search(rf"__global__[^;{{}}]*?(?<!\w){re.escape(writer.name)}\s*\(([^)]*)\)", code)
        if found:
            return len(_headers.split_parameters(found[1]))
    writer.kernel["KernelName"].fail(f"the kernel's file has no __global__ function '{writer.name}'")


def pass_symbols(document, count):
    """Makes constant memory an argument as well where the function has a parameter for it."""
    if count == len(document["arguments"]):
        for argument in document["arguments"]:
            if "symbol" in argument:
                argument["argument"] = True


def write_pair(folder, contents):
    """Both files or none, and no folders that were not there before if none."""
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import_t1.", dir=folder) as drafts:
            for file, text in contents.items():
                if file.is_dir():
                    raise IsADirectoryError(21, "a folder is in its place", str(file))
                pathlib.Path(drafts, file.name).write_text(text, encoding="utf-8", errors="surrogateescape")
            for file in contents:
                os.replace(pathlib.Path(drafts, file.name), file)
    except BaseException:
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def import_space(options):
    root = read_input(options.file)
    check_version(root, "schema_version")
    if "General" in root:
        check_version(root["General"], "FormatVersion")
    writer = SpaceWriter(root)
    name = options.name or writer.name
    if not re.fullmatch(r"\w+", name, re.ASCII):
        writer.kernel["KernelName"].fail(f"'{name}' cannot be a file's name here; give another with --name")
    space_file, source_file = (options.into / (name + ending) for ending in (".json", ".cu"))
    for file in (space_file, source_file):
        if file.exists() and not options.force:
            raise InputError(f"{file} exists; give --force to replace it, or another name with --name")
    document = writer.document(name)
    source, headers = source_of(writer, options.file)
    pass_symbols(document, parameters_of(writer, [source, *headers.values()]))
    write_pair(options.into, {**{options.into / header: text for header, text in headers.items()},
                              source_file: source, space_file: json.dumps(document, indent=1) + "\n"})
    combinations = math.prod(len(values) for values in writer.parameters.values())
    for note in writer.notes:
        print(f"import_t1: {note}", file=sys.stderr)
    print(f"wrote {space_file} and {source_file}: {len(writer.parameters)} parameters, "
          f"{len(writer.conditions)} constraints, {combinations} combinations before constraints")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m pascaline.import_t1", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="T1 input, JSON, plain or packed with gzip")
    parser.add_argument("--into", type=pathlib.Path, required=True, help="folder to write NAME.json and NAME.cu to")
    parser.add_argument("--name", help="name of the kernel here (default: its KernelName)")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    try:
        import_space(parser.parse_args(arguments))
    except (InputError, OSError, EOFError) as error:
        line = "".join(c if c.isprintable() else "?" for c in str(error))
        sys.exit(f"import_t1: {line}")


if __name__ == "__main__":
    main()