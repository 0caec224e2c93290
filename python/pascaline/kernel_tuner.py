"""Scripts that were written for Kernel Tuner, with few changes: `from pascaline import kernel_tuner`.

`tune_kernel` and `run_kernel` take its arguments: a kernel with macros, a dict of their values, restrictions, divisors of
the grid. The arguments become a search space and its kernel (docs/python.md says what becomes what), which `Kernel` tunes
and launches. What cannot be taken over raises ArgumentError, which names it.
"""

import ast
import difflib
import hashlib
import inspect
import json
import math
import os
import re
import struct
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Union

from . import _native, import_t1
from ._commands import Progress, trials
from ._errors import ArgumentError, Error
from ._kernel import Kernel
from ._words import Path, path_text

_t1: Any = import_t1

Parameters = Mapping[str, Sequence[Any]]
Function = Callable[..., Any]
Texts = Union[str, Function, Sequence[Union[str, int, Function]], None]

_TYPES = {"float32": "float", "float64": "double", "float16": "half", "int32": "int32", "uint32": "uint32", "int64": "int64",
          "int8": "int8", "uint8": "uint8", "bool": "bool"}
_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_USUAL_BLOCK = 256  # threads along x, where no parameter says how many
_ALL = 1_000_000_000
_ANY = 1e30  # a tolerance that takes any number: what is right, an answer decides
_REPEATS = 10  # of finals, where a winner turns out to be wrong
# What Kernel Tuner takes besides, and what to do instead.
_OTHERS = {"platform": "", "cmem_args": "", "texmem_args": "", "compiler": "", "compiler_options": "", "observers": "",
           "parallel": "", "simulation_mode": "", "objectives": "", "objective_higher_is_better": "",
           "defines": "; write them into the code", "log": "; `progress` is told what happens",
           "cache": "; give a folder as `into`"}


class ErrorConfig(str):
    """The `__error__` of a configuration that failed; its text is the name of its class, as in Kernel Tuner."""

    def __new__(cls, *_: object) -> "ErrorConfig":
        return super().__new__(cls, cls.__name__)


class InvalidConfig(ErrorConfig):
    """It cannot be launched on this device."""


class CompilationFailedConfig(ErrorConfig):
    """It does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """Its launch failed, crashed or took too long."""


class WrongResultConfig(ErrorConfig):
    """It computes something else."""


_FAILURES: dict[str, type[ErrorConfig]] = {
    "rejected": InvalidConfig, "compile_failed": CompilationFailedConfig, "wrong_result": WrongResultConfig}


def tune_kernel(
    kernel_name: str,
    kernel_source: Path,
    problem_size: Union[int, str, Sequence[Union[int, str]]],
    arguments: Sequence[Any],
    tune_params: Parameters,
    grid_div_x: Texts = None,
    grid_div_y: Texts = None,
    grid_div_z: Texts = None,
    restrictions: Texts = None,
    answer: Sequence[Any] | None = None,
    atol: float = 1e-6,
    verify: Callable[..., Any] | None = None,
    *,
    smem_args: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    device: Union[int, str, None] = None,
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    iterations: int = 7,
    metrics: Mapping[str, Union[str, Function]] | None = None,
    lang: str | None = None,
    verbose: bool = False,
    quiet: bool = False,
    into: Path | None = None,
    db: Path | None = None,
    progress: Progress = None,
    **options: Any,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tries the configurations of a kernel, as kernel_tuner.tune_kernel does.

    kernel_name, kernel_source: the function, and its code or its file. arguments: NumPy arrays and scalars, in the order of
        its signature; pointers to const are only read.
    tune_params: values of each macro. problem_size: one to three numbers. restrictions, grid_div_x and so on: texts, or
        functions of one expression of a dict of the parameters, such as lambda p: p["block_size_x"] <= 256.
    answer: what the arrays hold after a launch, None for those that are not looked at: every configuration that ran is run on
        `arguments` and compared, by `verify(answer, result)`, which may have an argument `atol`, or by numpy.allclose. Without
        answer and verify all are compared with the default (the first that meets the restrictions), on random contents in the
        range of the arrays'. On such contents all are timed, of which a warning tells.
    strategy: "brute_force" (the default) tries all; others search ("random_sample" draws, any other name is Pascaline's own
        search), strategy_options["max_fevals"] configurations, for strategy_options["time_limit"] seconds.
    iterations: samples of a configuration, at least 3. device: a number of a CUDA device, or a name such as "emulator".
    metrics: what each result gets besides, by its name: a function of the result so far, or an expression.
    into: a folder in which the kernel, its search space and the database are left, so that nothing is measured again; db:
        another place for the database. Without either nothing is kept. options: others of `pascaline.sweep`. lang must be
        "CUDA" if given; verbose and quiet change nothing, as nothing is printed.

    Returns a dict for each configuration, fastest first, with its parameters and its `time` in milliseconds; those that failed
    are last, with an infinite time, an `__error__` (ErrorConfig) and its `reason`. And a dict of what it ran on. Raises Error if
    none ran, which says why the first did not, and ArgumentError if none computes the answer.
    """
    options = _taken(options)
    if lang is not None and str(lang).upper() not in ("CUDA", "CUPY", "NVCUDA"):
        raise ArgumentError(f"lang: kernels in {lang} cannot be run here, only CUDA")
    with _Folder(into) as folder:
        judge = _Judge(answer, arguments, atol, verify) if answer is not None or verify is not None else None
        pair = _Pair(kernel_name, kernel_source, problem_size, arguments, tune_params,
                     [grid_div_x, grid_div_y, grid_div_z], restrictions, smem_args, block_size_names, judge is not None)
        if pair.random:
            warnings.warn(f"{kernel_name} is timed on random contents in the range of {', '.join(pair.random)}, not on the arrays"
                          " given: where its work depends on them, so may the fastest configuration", stacklevel=2)
        store = path_text("db", db) or os.path.join(folder, "tuned.db")
        kernel = Kernel(pair.write(folder), db=store)
        place = _device(device)
        if judge is not None:
            judge.ask(pair, place, pair.default)
            if judge.reasons and pair.is_single:
                raise ArgumentError(judge.complaint())
        samples = max(3, _number("iterations", iterations, int))
        wanted: dict[str, Any] = {"min_samples": samples, "max_samples": samples, **options}
        most, seconds = (_of(strategy_options, name) for name in ("max_fevals", "time_limit"))
        searcher = {"brute_force": "exhaustive", "random_sample": "random"}.get(strategy or "brute_force", "auto")
        wanted.setdefault("searcher", searcher)
        wanted.setdefault("trials", most or (_ALL if searcher == "exhaustive" else 100))
        if seconds is not None:
            wanted.setdefault("budget", f"{max(1, math.ceil(_number('time_limit', seconds, float)))}s")
        for _ in range(_REPEATS):
            summary = kernel.tune(device=place, progress=progress, **wanted)
            results, environment = _results(kernel, store, judge, pair, place, summary)
            # A winner in a database that is kept would be launched; the next finals are without it.
            if judge is None or not (into or db) or not any(pair.config(won["config"]) in judge for won in kernel.winners()[:1]):
                break
            if not pair.leave_out(results):
                warnings.warn(f"the winner in {store} does not compute the answer: do not launch {kernel.name} from it",
                              stacklevel=2)
                break
            kernel = Kernel(pair.write(folder), db=store)
        for result in results:
            if "__error__" not in result:
                _add_metrics(result, metrics or {})
        return results, environment


def _of(options: Mapping[str, Any] | None, name: str) -> Any:
    return (options or {}).get(name)


def _number(name: str, value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{name}: {type(value).__name__} is not a number")
    return value


def _taken(options: dict[str, Any]) -> dict[str, Any]:
    """Options without Kernel Tuner's others, as far as these ask for nothing."""
    for name, instead in _OTHERS.items():
        if options.get(name):
            raise ArgumentError(f"{name}: Kernel Tuner's argument of this name cannot be taken over{instead}")
    if options.get("objective") == "time":  # which is what decides here, too
        options = {**options, "objective": None}
    return {name: value for name, value in options.items() if name not in _OTHERS}


def _add_metrics(result: dict[str, Any], metrics: Mapping[str, Union[str, Function]]) -> None:
    for name, metric in metrics.items():
        if callable(metric):
            result[name] = metric(result)
        elif isinstance(metric, str):
            try:
                result[name] = eval(metric, {"__builtins__": {}}, result)  # the caller's own code, as a function would be
            except (NameError, SyntaxError) as error:
                raise ArgumentError(f"metrics: {name}: {error}") from None
        else:
            raise TypeError(f"metrics: {name}: {type(metric).__name__} is neither a function nor a text")


def run_kernel(
    kernel_name: str,
    kernel_source: Path,
    problem_size: Union[int, str, Sequence[Union[int, str]]],
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Texts = None,
    grid_div_y: Texts = None,
    grid_div_z: Texts = None,
    *,
    smem_args: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    device: Union[int, str, None] = None,
    lang: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> list[Any]:
    """Runs a kernel once in one configuration, as kernel_tuner.run_kernel does: copies of `arguments` after the launch.
    Arguments as for `tune_kernel`; params: one value of each macro."""
    for name in _taken(options):
        raise TypeError(f"run_kernel has no argument '{name}'")
    if lang is not None and str(lang).upper() not in ("CUDA", "CUPY", "NVCUDA"):
        raise ArgumentError(f"lang: kernels in {lang} cannot be run here, only CUDA")
    values = {name: [value] for name, value in params.items()}
    with _Folder(None) as folder:
        pair = _Pair(kernel_name, kernel_source, problem_size, arguments, values, [grid_div_x, grid_div_y, grid_div_z], None,
                     smem_args, block_size_names)
        kernel = Kernel(pair.write(folder), db=os.path.join(folder, "none.db"))
        return _launched(kernel, arguments, _device(device))


class _Folder:
    """The folder that is given, or one that is gone afterwards."""

    def __init__(self, folder: Path | None) -> None:
        self._given = path_text("into", folder)
        self._made: _native.DraftFolder | None = None

    def __enter__(self) -> str:
        if self._given:
            os.makedirs(self._given, exist_ok=True)
            return self._given
        self._made = _native.DraftFolder()
        return self._made.path

    def __exit__(self, *_: object) -> None:
        self._made = None


class _Pair:
    """A kernel and its search space, from what Kernel Tuner takes."""

    def __init__(self, name: Any, source: Any, problem_size: Any, arguments: Any, tune_params: Any, divisors: Any,
                 restrictions: Any, smem_args: Any, block_size_names: Any, judged: bool = False) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ArgumentError(f"kernel_name: {name!r} is not the name of a function")
        self.name = name
        code, self._headers = _code_of(source)
        signature = _Signature(name, code)
        writes = [parameter.is_written for parameter in signature.parameters]
        values = {parameter: [_plain(value) for value in listed] for parameter, listed in dict(tune_params).items()}
        block_size_names = _block_names(block_size_names, values)
        self.kernel: dict[str, Any] = {
            "Language": "CUDA", "KernelName": name, "KernelFile": name + ".cu", "ProblemSize": _sizes(problem_size),
            "GlobalSize": {"X": 1}, "LocalSize": _block(values, block_size_names),
            "Arguments": [_argument(f"arguments[{i}]", signature.as_declared(i, value), writes[i]) for i, value in enumerate(arguments)]
            if len(arguments) == len(writes) else _wrong_number(name, len(writes), len(arguments))}
        code = signature.with_bits_for(arguments)
        signature.require_types(arguments)
        for axis, texts, block in zip("XYZ", divisors, block_size_names):
            usual = [block] if block in values else []
            self.kernel["GridDiv" + axis] = usual if texts is None else [
                str(text) for text in _listed(f"grid_div_{axis.lower()}", texts, values)]
        root = {"ConfigurationSpace": {
            "TuningParameters": [{"Name": parameter, "Type": _kind(parameter, listed), "Values": repr(listed)}
                                 for parameter, listed in values.items()],
            "Conditions": [_condition(text, values) for text in _listed("restrictions", restrictions, values)]},
            "KernelSpecification": self.kernel}
        try:
            writer = _t1.SpaceWriter(_t1.Node(root, "tune_kernel"))
            document = writer.document(name)
            if smem_args:
                size, = _listed("smem_args", smem_args["size"], values)
                document["launch"]["shared_bytes"] = _t1.translate_number(str(size), writer.parameters)
            code = _t1.with_c_linkage(writer.kernel, code)
        except (_t1.InputError, _t1.PythonTextError) as error:
            raise ArgumentError(_in_python(str(error))) from None
        document["description"] = "Made by pascaline.kernel_tuner."
        self.random: list[str] = []  # arrays in whose place trials have others
        for entry, value, parameter in zip(document["arguments"], arguments, signature.parameters):
            if not _fill(entry, value):
                self.random.append(parameter.name)
        if judged:
            document["tolerance"] = {**dict.fromkeys(document["tolerance"], _ANY), "floor": _ANY}
        # What was measured is kept by the kernel's name, source and configuration: sizes and arguments become part of it.
        kept = hashlib.sha256(json.dumps(document).encode()).hexdigest()[:8]
        self.file_name = document["kernel"] = f"{name}-{kept}"
        self._document = document
        self._code = f"#define kernel_tuner 1\n#line 1\n{code}"

    def write(self, folder: str) -> str:
        """The kernel's file."""
        source = os.path.join(folder, self.file_name + ".cu")
        for name, text in {self.file_name + ".cu": self._code, **self._headers}.items():
            _write(os.path.join(folder, name), text)
        _write(os.path.join(folder, self.file_name + ".json"), json.dumps(self._document, indent=1) + "\n")
        return source

    @property
    def default(self) -> dict[str, Any]:
        return {parameter["name"]: parameter["default"] for parameter in self._document["parameters"]}

    @property
    def is_single(self) -> bool:
        """Whether there is but one configuration."""
        return all(len(parameter["values"]) == 1 for parameter in self._document["parameters"])

    def launched(self, config: Mapping[str, Any], arguments: Sequence[Any], device: str | None) -> list[Any]:
        """Copies of the arguments after a launch of that configuration."""
        document = dict(self._document)
        document["parameters"] = [{**parameter, "values": [config[parameter["name"]]], "default": config[parameter["name"]]}
                                  for parameter in document["parameters"]]
        with _Folder(None) as folder:
            single = _Pair.__new__(_Pair)
            single.__dict__.update(self.__dict__, _document=document)
            return _launched(Kernel(single.write(folder), db=os.path.join(folder, "none.db")), arguments, device)

    def leave_out(self, results: Sequence[Mapping[str, Any]]) -> bool:
        """Excludes wrong configurations from launches by constraints; false if constraints cannot express that. The
        fastest configuration becomes the default."""
        parameters = self._document["parameters"]
        if any(isinstance(value, (float, str)) for parameter in parameters for value in parameter["values"]):
            return False
        for parameter in parameters:
            parameter["default"] = results[0][parameter["name"]]
        known = {constraint["require"] for constraint in self._document["constraints"]}
        for result in results:
            if isinstance(result.get("__error__"), WrongResultConfig):
                equal = " && ".join(f"{parameter['name']} == {int(result[parameter['name']])}" for parameter in parameters)
                if f"!({equal})" not in known:
                    self._document["constraints"].append({"require": f"!({equal})", "because": result["reason"]})
        return True

    def config(self, text: str) -> dict[str, Any]:
        """The configuration that a text such as `A=1 B="x y"` shows."""
        shown = {name: re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
                 for name, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', text)}
        return {parameter["name"]: _value(parameter, shown[parameter["name"]]) for parameter in self._document["parameters"]}


def _write(file: str, text: str) -> None:
    with open(file, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text)


def _block_names(given: Any, parameters: Mapping[str, Any]) -> list[str]:
    """The parameters of a block's axes: those that are named, then block_size_x and so on, in capitals or not."""
    alike = {name.lower(): name for name in parameters}
    usual: list[str] = [name if name in parameters else alike.get(name, name) for name in _NAMES]
    if given is None:
        if not any(name in parameters for name in usual):
            warnings.warn(f"tune_params has no block_size_x, so that blocks have {_USUAL_BLOCK} threads; name the parameter "
                          "with block_size_names if it has another", stacklevel=4)
        return usual
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise TypeError("block_size_names: it is not a list of names")
    if len(given) > len(_NAMES):
        raise ArgumentError(f"block_size_names: it has {len(given)} names for {len(_NAMES)} axes")
    for name in given:
        if name not in parameters and name.lower() not in _NAMES:
            near = difflib.get_close_matches(name, parameters, 1)
            raise ArgumentError(f"block_size_names: tune_params has no '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    named = [name if name in parameters else alike.get(name.lower(), name) for name in map(str, given)]
    return named + usual[len(named):]


def _wrong_number(name: str, wanted: int, given: int) -> Any:
    raise ArgumentError(f"arguments: {name} takes {wanted}, not {given}")


def _code_of(source: Any) -> tuple[str, dict[str, str]]:
    """The code, and copies of the headers that it includes from beside its file, by their names."""
    if callable(source):
        raise ArgumentError("kernel_source: a function that makes code cannot be taken over; pass the code or its file")
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return source, {}
    file = path_text("kernel_source", source)
    if not os.path.isfile(file):
        raise ArgumentError(f"kernel_source: there is no file {file}")
    return _with_headers(file)


def _with_headers(source: str) -> tuple[str, dict[str, str]]:
    """As above. Copies lie in one folder, so that they get names of their own, of which what they include is part."""
    folder = os.path.dirname(os.path.abspath(source))
    names: dict[str, str] = {}
    copies: dict[str, str] = {}

    def read(file: str) -> str:
        with open(file, encoding="utf-8", errors="surrogateescape") as text:
            return text.read()

    def taken(text: str, here: str) -> str:
        def renamed(found: re.Match[str]) -> str:
            for place in (here, folder):
                file = os.path.realpath(os.path.join(place, found[2]))
                if os.path.isfile(file):
                    return found[1] + copied(file) + found[3]
            return found[0]

        return re.sub(r'^([ \t]*#[ \t]*include[ \t]*")([^"\n]+)(")', renamed, text, flags=re.MULTILINE)

    def copied(file: str) -> str:
        if file not in names:
            text = read(file)
            stem, ending = os.path.splitext(os.path.basename(file))
            kept = hashlib.sha256(f"{os.path.relpath(file, folder)}\n{text}".encode(errors="surrogateescape")).hexdigest()[:8]
            names[file] = f"{stem}-{kept}{ending}"
            copies[names[file]] = taken(text, os.path.dirname(file))
        return names[file]

    return taken(read(source), folder), copies


class _Parameter:
    """Of a kernel's function: where it is in the code, and whether it is a pointer to what is not const."""

    def __init__(self, text: str, begin: int) -> None:
        self.text, self.begin = text, begin
        found = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", text)
        self.name = found[1] if found else text.strip()
        self.is_written = "*" in text and not re.search(r"\bconst\b[^*]*\*|\w\s+const\s*\*", text)


class _Signature:
    """A kernel's function in its code."""

    def __init__(self, name: str, code: str) -> None:
        self._code = code
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

    def with_bits_for(self, arguments: Sequence[Any]) -> str:
        """The code, in which scalars that are not whole numbers come as their bits: a search space's are whole."""
        code, body = self._code, ""
        for parameter, value in reversed(list(zip(self.parameters, arguments))):
            if _is_whole(value):
                continue
            found = re.fullmatch(r"(\s*)(?:const\s+)?(float|double)(?:\s+const)?\s+(\w+)\s*", parameter.text)
            if not found or _TYPES[value.dtype.name] != found[2]:
                raise ArgumentError(f"arguments: {value} of {value.dtype.name} is passed as '{parameter.text.strip()}', which is not "
                                    "that type; write it into the kernel, or pass it in an array")
            given = f"{found[1]}int {found[3]}_bits"
            code = code[:parameter.begin] + given + code[parameter.begin + len(parameter.text):]
            self._body += len(given) - len(parameter.text)
            # Those of a double are more than a search space holds exactly: they are in the code.
            number = (f"__int_as_float({found[3]}_bits)" if found[2] == "float" else
                      f"__longlong_as_double({hex(struct.unpack('<Q', struct.pack('<d', float(value)))[0])}ULL)")
            body = f" {found[2]} {found[3]} = {number};{body}"
        return code[:self._body] + body + code[self._body:]


# Kinds of NumPy's types, and bytes.
_DECLARED = {"float": ("f", 4), "double": ("f", 8), "int": ("iu", 4), "unsigned": ("iu", 4), "unsigned int": ("iu", 4),
             "long long": ("iu", 8), "unsigned long long": ("iu", 8)}


def _fits(parameter: str, value: Any) -> bool:
    """Whether an argument is of the type of a kernel's parameter, as far as the parameter's text tells that."""
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
    # Of a longer integer the lower bytes are the number, where that is in the range.
    low = 0 if declared[1].startswith("unsigned") else -2**(8 * size - 1)
    return bool(value.dtype.itemsize >= size) and low <= int(value) < low + 2**(8 * size)


def _is_whole(value: Any) -> bool:
    """Whether an argument is no scalar, or one that is a whole number."""
    if getattr(value, "shape", ()):
        return True
    number = float(value)
    return math.isfinite(number) and number == int(number) and (number != 0 or math.copysign(1, number) > 0)


def _plain(value: Any) -> Any:
    """A Python number of one of NumPy's."""
    return value.item() if hasattr(value, "item") and not isinstance(value, (int, float, str)) else value


def _listed(name: str, texts: Any, parameters: Mapping[str, Any]) -> list[Any]:
    """Texts and numbers, of functions what they compute."""
    if texts is None:
        return []
    several = [texts] if isinstance(texts, (str, int)) or callable(texts) else list(texts)
    return [_expression(name, one, parameters) if callable(one) else one for one in several]


def _expression(name: str, function: Any, parameters: Mapping[str, Any]) -> str:
    """The expression that a function of the parameters computes, a lambda or a `def` with no more than a return: p["x"], or an
    argument x, as x, and numbers and texts of its surroundings as such."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        found = {ast.dump(node): node for node in _functions_in(source, function)}
        (node,) = found.values()
        known = inspect.getclosurevars(function)
    except (OSError, TypeError, ValueError):
        raise ArgumentError(f"{name}: the source of a function cannot be read, or it does more than compute one expression; give "
                            "texts") from None
    arguments = [argument.arg for argument in node.args.args]
    values = {**known.globals, **known.nonlocals}

    class InTheirNames(ast.NodeTransformer):
        def visit_Subscript(self, at: ast.Subscript) -> ast.AST:
            if isinstance(at.value, ast.Name) and at.value.id in arguments and isinstance(at.slice, ast.Constant):
                return ast.Name(str(at.slice.value), ast.Load())
            return self.generic_visit(at)

        def visit_Name(self, at: ast.Name) -> ast.AST:
            value = _plain(values.get(at.id))
            return ast.Constant(value) if at.id not in arguments and isinstance(value, (bool, int, float, str)) else at

    body = node.body if isinstance(node, ast.Lambda) else node.body[-1].value
    text = ast.unparse(ast.fix_missing_locations(InTheirNames().visit(body)))
    if any(argument not in parameters and re.search(rf"\b{argument}\b", text) for argument in arguments):
        raise ArgumentError(f"{name}: a function may read its dict only by the names of parameters, not as in {text}")
    return text


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
                made: Any = next(one for one in compile(ast.Expression(node), "", "eval").co_consts if isinstance(one, CodeType))
                if (made.co_varnames == code.co_varnames and made.co_consts == code.co_consts
                        and set(made.co_names) == {*code.co_names, *code.co_freevars}):
                    found.append(node)
                break
    return found


def _kind(name: str, values: list[Any]) -> str:
    for kind, types in (("bool", (bool,)), ("int", (int,)), ("float", (int, float)), ("string", (str,))):
        if all(isinstance(value, types) and (kind == "bool" or not isinstance(value, bool)) for value in values):
            return kind
    raise ArgumentError(f"tune_params: {name} has values of several types, or of one that is not known: {values}")


def _condition(text: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(text, str):
        raise ArgumentError(f"restrictions: {type(text).__name__} cannot be taken over; give conditions as texts")
    try:
        names = {node.id for node in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(node, ast.Name)}
    except SyntaxError as error:
        raise ArgumentError(f"restrictions: '{text}': {error.msg}") from None
    return {"Parameters": sorted(names & set(parameters)), "Expression": text}


def _sizes(problem_size: Any) -> list[int]:
    sizes = [_plain(size) for size in (problem_size if isinstance(problem_size, (list, tuple)) else [problem_size])]
    sizes = [int(size) if isinstance(size, str) and size.strip().isdecimal() else size for size in sizes]
    if not 1 <= len(sizes) <= 3 or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise ArgumentError(f"problem_size: {problem_size!r} is not one to three numbers of at least 1")
    return sizes


def _block(parameters: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {axis: name if name in parameters else _USUAL_BLOCK if axis == "X" else 1 for axis, name in zip("XYZ", names)}


def _argument(where: str, value: Any, written: bool) -> dict[str, Any]:
    dtype = getattr(getattr(value, "dtype", None), "name", None)
    if dtype not in _TYPES:
        raise ArgumentError(f"{where}: {type(value).__name__} of {dtype} cannot be passed; give NumPy's arrays and scalars of "
                            f"{', '.join(_TYPES)}")
    if not getattr(value, "shape", ()):
        if not _is_whole(value) and _TYPES[dtype] not in ("float", "double"):
            raise ArgumentError(f"{where}: the scalar {value} is not a whole number; write it into the kernel, or pass it in "
                                "an array")
        if not _is_whole(value):
            bits = struct.unpack("<i", struct.pack("<f", value))[0] if dtype == "float32" else 0
            return {"Type": "int32", "MemoryType": "Scalar", "FillType": "Constant", "FillValue": bits}
        return {"Type": _TYPES[dtype], "MemoryType": "Scalar", "FillType": "Constant", "FillValue": int(value)}
    return {"Type": _TYPES[dtype], "MemoryType": "Vector", "AccessType": "ReadWrite" if written else "ReadOnly",
            "Size": int(value.size), "FillType": "Random"}


def _fill(entry: dict[str, Any], value: Any) -> bool:
    """Random contents in the range of the array's; whether they are the array's own."""
    if "buffer" not in entry:
        return True
    low, high = float(value.min()), float(value.max())
    is_finite = abs(low) < 1e300 and abs(high) < 1e300  # NaN is not
    if not is_finite:
        if entry["access"] == "in":
            raise ArgumentError(f"arguments: {entry['name']} has values that are not finite")
        low = high = 0.0
    whole = entry["buffer"] not in ("float16", "float32", "float64")
    if low == high:
        entry.update({"fill": "ramp", "low": low, "high": high} if low else {"fill": "zero"})
        if not low:
            entry.pop("low", None), entry.pop("high", None)
    else:
        entry.update({"fill": "uniform", "low": low, "high": high + 1 if whole else high})
    return is_finite and low == high


def _in_python(message: str) -> str:
    """What Kernel Tuner calls a part of a T1 input."""
    for part, name in (("/ConfigurationSpace/TuningParameters", "tune_params"), ("/ConfigurationSpace/Conditions", "restrictions"),
                       ("/KernelSpecification/Arguments", "arguments"), ("/KernelSpecification/GridDiv", "grid_div_"),
                       ("/KernelSpecification/", "")):
        message = message.replace("tune_kernel:" + part, name)
    return message


def _device(device: Any) -> str | None:
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device: {type(device).__name__} is not the number or the name of a device")
    return device


def _launched(kernel: Kernel, arguments: Sequence[Any], device: str | None) -> list[Any]:
    """Copies of the arguments after a launch."""
    after = [value.copy() if getattr(value, "shape", ()) else value for value in arguments]
    kernel.run(*[value for value in after if getattr(value, "shape", ())], device=device)
    return after


class _Judge:
    """Whether configurations compute the answer on the script's own arrays."""

    def __init__(self, answer: Any, arguments: Sequence[Any], atol: float, verify: Callable[..., Any] | None) -> None:
        if answer is not None:
            if isinstance(answer, str) or not isinstance(answer, Sequence):
                raise TypeError(f"answer: {type(answer).__name__} is not a list with an entry for each argument")
            if len(answer) != len(arguments):
                raise ArgumentError(f"answer: it has {len(answer)} entries for {len(arguments)} arguments")
        self._answer, self._arguments, self._atol, self._verify = answer, arguments, atol, verify
        self._right: set[str] = set()
        self.reasons: dict[str, str] = {}  # of those that do not

    def __contains__(self, config: Mapping[str, Any]) -> bool:
        return repr(config) in self.reasons

    def ask(self, pair: _Pair, device: str | None, config: Mapping[str, Any]) -> str | None:
        """Why the configuration is wrong, None if it is right."""
        key = repr(config)
        if key not in self._right and key not in self.reasons:
            try:
                reason = self._reason(pair.launched(config, self._arguments, device))
            except ArgumentError:
                raise
            except Error as error:
                reason = f"on the arrays given: {error}"
            if reason is None:
                self._right.add(key)
            else:
                self.reasons[key] = reason
        return self.reasons.get(key)

    def complaint(self) -> str:
        config, reason = next(iter(self.reasons.items()))
        return f"answer: none of {len(self.reasons)} configurations computes it: {reason} ({config})"

    def _reason(self, result: list[Any]) -> str | None:
        if self._verify is not None:
            taken = inspect.signature(self._verify).parameters
            named = {"atol": self._atol} if "atol" in taken else {}
            rest = () if named or len(taken) < 3 else (self._atol,)
            given = list(self._answer) if self._answer is not None else None
            return None if self._verify(given, result, *rest, **named) else "verify refuses what it computes"
        import numpy

        for index, (wanted, found) in enumerate(zip(self._answer, result)):
            if wanted is None:
                continue
            if numpy.size(wanted) != numpy.size(found):
                raise ArgumentError(f"answer: the one of arguments[{index}] is {list(numpy.shape(wanted))}, not "
                                    f"{list(numpy.shape(found))}")
            wanted, found = numpy.ravel(wanted), numpy.ravel(found)
            if not numpy.allclose(wanted, found, atol=self._atol):
                with numpy.errstate(all="ignore"):
                    apart = numpy.abs(numpy.asarray(wanted, float) - numpy.asarray(found, float))
                worst = float(numpy.nanmax(apart)) if numpy.isfinite(apart).any() else math.nan
                return f"what it computes differs in arguments[{index}], by up to {worst:g}"
        return None


def _value(parameter: dict[str, Any], text: str) -> Any:
    """The value that a configuration's text shows."""
    for value in parameter["values"]:
        shown = ("true", "1") if value is True else ("false", "0") if value is False else (str(value),)
        if text in shown or isinstance(value, float) and float(text) == value:
            return value
    raise AssertionError(f"{parameter['name']}={text}")


def _has_time(trial: dict[str, Any]) -> bool:
    """Whether the trial ran with the right result; dropped trials did, too."""
    return trial["median_us"] is not None


def _results(kernel: Kernel, db: str, judge: _Judge | None, pair: _Pair, device: str | None,
             summary: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    found = trials(db, kernel=kernel.name)
    best: dict[str, dict[str, Any]] = {}
    for trial in found:  # what ran comes first; of finals and searches, the finals are what counts
        known = best.get(trial["config"])
        if known is None or (_has_time(trial) and trial["stage"] == "finals" and known["stage"] != "finals"):
            best[trial["config"]] = trial
    ran = [trial for trial in best.values() if _has_time(trial)]
    failed = [trial for trial in best.values() if not _has_time(trial)]
    if not best and summary["not_reached"]:
        contents = f" with random contents of {', '.join(pair.random)}, which trials run on" if pair.random else ""
        raise Error(f"no configuration was tried: the default one ({pair.default}) did not end in time{contents}")
    if not ran:
        reason = f": {failed[0]['status']}: {failed[0]['reason']} ({failed[0]['config']})" if failed else ""
        raise Error(f"none of {len(failed)} configurations ran{reason}")
    results: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for trial in sorted(ran, key=lambda trial: float(trial["median_us"])):
        config = pair.config(trial["config"])
        wrong = judge.ask(pair, device, config) if judge else None
        if wrong is None:
            results.append({**config, "time": trial["median_us"] / 1000})
        else:
            refused.append({**config, "time": math.inf, "__error__": WrongResultConfig(), "reason": wrong})
    if judge and not results:
        raise ArgumentError(judge.complaint())
    refused += [{**pair.config(trial["config"]), "time": math.inf,
                 "__error__": _FAILURES.get(trial["status"], RuntimeFailedConfig)(),
                 "reason": f"{trial['status']}: {trial['reason']}"} for trial in failed]
    environment = {"device_name": ran[0]["device"], "compiler": ran[0]["compiler"], "target": ran[0]["target"]}
    return results + refused, environment
