"""A kernel and its search space, from what Kernel Tuner takes."""

import difflib
import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import _native, import_t1
from .._errors import ArgumentError, SpaceError
from .._kernel import Kernel
from .._words import Path, path_text
from . import _arguments, _source
from ._functions import Condition, Row, listed
from ._options import Options
from ._parameters import Parameters, choice
from ._signature import Signature
from ._terms import Terms
from .util import Result, WrongResultConfig

_t1: Any = import_t1

_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_USUAL_BLOCK = 256  # threads along x, where no parameter says how many
_ANY = 1e30  # a tolerance that takes any number: what is right, an answer decides


class Request(NamedTuple):
    """What scripts say of a kernel."""

    name: Any
    source: Any
    problem_size: Any
    arguments: Sequence[Any]
    tune_params: Mapping[str, Sequence[Any]]
    divisors: tuple[Any, Any, Any]
    restrictions: Any = None
    smem_args: Mapping[str, Any] | None = None
    block_size_names: Sequence[str] | None = None
    defines: Mapping[str, Any] | None = None
    compiler_options: Sequence[str] | None = None
    cmem_args: Mapping[str, Any] | None = None


class Folder:
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


class Space:
    """The search space and the code, which `write` writes. known: configurations that need no measuring."""

    def __init__(self, request: Request, is_judged: bool = False, known: Sequence[Mapping[str, Any]] = ()) -> None:
        function, name = _t1.function_of(request.name) or ("", "")
        if not function:
            raise ArgumentError(f"kernel_name: {request.name!r} is not the name of a function, or of a template with its arguments")
        self.name, self.is_judged = name, is_judged
        self.function: str = function
        self.parameters = Parameters(request.tune_params)
        if request.defines is not None:
            for word in re.findall(r"[A-Za-z_]\w*", function.partition("<")[2]):
                if word in request.tune_params and word not in request.defines:
                    raise ArgumentError(f"kernel_name: {word} is a parameter that is not among `defines`, so the code does not see it")
        self.options = Options(request.compiler_options)
        values = self.parameters.values
        terms = Terms(self.parameters)
        blocks = _block_names(request.block_size_names, values)
        self.conditions = [terms.condition(one) for one in listed(request.restrictions)]
        codes, self._headers = _source.codes(request.source, self.parameters, self.options.folders, self.conditions)
        block = [self._threads(one, axis) for axis, one in enumerate(blocks)]
        grid = terms.grid(request.problem_size, request.divisors, blocks)
        shared = terms.shared_bytes(request.smem_args)
        defines = _source.defined(request.defines, self.parameters, self.conditions)
        if known:
            self.parameters.index(values)
            taken = [{name: config[name] for name in values} for config in known]
            texts = [f"!({text})" for text in self.parameters.any_of([Row(config, False) for config in taken])]
            self.conditions.append(Condition(texts, "it is in the cache", frozenset(values), lambda config: dict(config) not in taken))
        self.default = self._default(block)
        signature, compiled = self._compiled(codes, request.arguments)
        structures = _arguments.Structures()
        arguments = [_arguments.entry(f"arguments[{i}]", f"argument_{i}", signature.as_declared(i, value),
                                      signature.parameters[i].is_written, structures)
                     for i, value in enumerate(request.arguments)]
        self.constants = self._constants(request, arguments, structures, [code for _, code in codes])
        tolerance = {kind: _t1.FLOAT_TOLERANCES.get(kind, 0) for one, value in zip(arguments, request.arguments)
                     if one.get("access") == "inout" for kind in _arguments.types(value)}
        if not tolerance:
            raise ArgumentError("arguments: no array is written to, so no result can be checked")
        self.inputs: dict[str, Any] = {}  # arrays that trials are given, by the names of buffers
        for described, value in zip(arguments, [*request.arguments, *self.constants]):
            if not _arguments.fill(described, value):
                self.inputs[described["name"]] = _arguments.flat(value)
        code = self._before(request, blocks, defines, compiled) + choice(list(zip((condition for condition, _ in codes), compiled)))
        document: dict[str, Any] = {
            "schema": 1, "kernel": name, "description": "Made by pascaline.kernel_tuner.", "dimensions": [], "types": [],
            "structs": structures.document,
            "parameters": self.parameters.document(self.default) + self.options.parameters, "definitions": terms.definitions,
            "constraints": [{"require": text, "because": condition.because or "a function"} for condition in self.conditions
                            for text in condition.texts],
            "macros": [{"name": one, "value": value} for one, value in zip(("grid_size_x", "grid_size_y", "grid_size_z"), grid)
                       if request.defines is None and one not in values and re.search(rf"\b{one}\b", code)],
            "launch": {"function": self.function, "block": block, "grid": grid, "shared_bytes": shared},
            "arguments": arguments, "reference": {"default": True},
            "tolerance": {**dict.fromkeys(tolerance, _ANY), "floor": _ANY} if is_judged else tolerance,
            "work": {"flops": 0,
                     "bytes": sum(int(value.nbytes) for value in [*request.arguments, *self.constants] if _arguments.is_array(value))}}
        # Measurements are kept by the kernel's name, source and configuration: sizes and arguments become part of it.
        kept = hashlib.sha256(json.dumps(document).encode()).hexdigest()[:8]
        self.file_name = document["kernel"] = f"{name}-{kept}"
        self._document = document
        self._code = code

    @staticmethod
    def conditions_of(request: Request) -> tuple[Mapping[str, Sequence[Any]], list[Condition]]:
        """The values and the conditions alone, of a script whose kernel is not run."""
        terms = Terms(Parameters(request.tune_params))
        return terms.parameters.values, [terms.condition(one) for one in listed(request.restrictions)]

    def _threads(self, name: str, axis: int) -> str:
        values = self.parameters.values.get(name)
        if values is None:
            return str(_USUAL_BLOCK if axis == 0 else 1)
        if not all(isinstance(value, int) for value in values):
            raise ArgumentError(f"tune_params: {name} is a block's size, and has values other than whole numbers: {values}")
        return name

    @staticmethod
    def _constants(request: Request, arguments: list[dict[str, Any]], structures: _arguments.Structures,
                   codes: Sequence[str]) -> list[Any]:
        """Arrays of constant memory that the function has no parameter for. Where one is an argument as well, its buffer is for both."""
        found = []
        for name, given in (request.cmem_args or {}).items():
            if not any(re.search(rf"\b{re.escape(name)}\b", code) for code in codes):
                raise ArgumentError(f"cmem_args: the code has no variable '{name}'")
            value = _arguments.on_host(given)
            value = value.reshape(1) if hasattr(value, "reshape") and not _arguments.is_array(value) else value
            own = [one for one, other in zip(arguments, request.arguments) if "buffer" in one and _arguments.same(value, other)]
            if own:
                own[0].update({"symbol": name, "argument": True, "access": "in"})  # whatever its pointer allows
            else:
                arguments.append({**_arguments.entry(f"cmem_args['{name}']", f"constant_{name}", value, False, structures), "symbol": name})
                found.append(value)
        return found

    # The default configuration.

    def _default(self, block: Sequence[str]) -> dict[str, Any]:
        """The first configuration that meets the conditions with a block of 1 to 1024 threads."""
        order = list(self.parameters)

        def fits(config: Mapping[str, Any]) -> bool:
            threads = [int(config.get(one, one)) for one in block]
            return all(count >= 1 for count in threads) and math.prod(threads) <= 1024

        checks = [(condition.reads, condition.holds)
                  for condition in self.conditions] + [(frozenset(block) & frozenset(order), fits)]
        placed = [(max((order.index(name) for name in reads), default=0), holds) for reads, holds in checks]
        try:
            config: dict[str, Any] | None = _t1.first_config(self.parameters.values, placed)
        except _t1.TooManyTried:
            raise ArgumentError("restrictions: no configuration that meets them was found in reasonable time") from None
        if config is None:
            raise NothingLeft("restrictions: no configuration meets the conditions with a block of 1 to 1024 threads")
        return config

    # The code.

    def _compiled(self, codes: Sequence[tuple[str, str]], arguments: Sequence[Any]) -> tuple[Signature, list[str]]:
        texts: list[str] = []
        first: Signature | None = None
        for _, code in codes:
            signature = Signature(self.name, code)
            wanted = len(signature.parameters)
            if len(arguments) != wanted:
                raise ArgumentError(f"arguments: {self.name} takes {wanted}, not {len(arguments)}")
            for i, value in enumerate(arguments):
                _arguments.entry(f"arguments[{i}]", "", value, False, _arguments.Structures())
            signature.require_types(arguments)
            first = first or signature
            texts.append("#line 1\n" + _source.without_unrolling(code, self.parameters))
        assert first is not None
        return first, texts

    def _before(self, request: Request, blocks: Sequence[str], defines: str, texts: Sequence[str]) -> str:
        values = self.parameters.values
        if request.defines is not None:
            undefined = "".join(f"#undef {name}\n" for name in values if self.parameters.own(name) == name)
            return defines + undefined + "".join(f"#define {name} kt_define_{name}\n" for name in request.defines)
        usual = "".join(f"#ifndef {name}\n#define {name} {_USUAL_BLOCK if axis == 0 else 1}\n#endif\n"
                        for axis, name in enumerate(blocks)
                        if name not in values and any(re.search(rf"\b{name}\b", text) for text in texts))
        return "#define kernel_tuner 1\n" + usual + self.parameters.macros()

    # Use of the files.

    def write(self, folder: str) -> str:
        """The kernel's file."""
        source = os.path.join(folder, self.file_name + ".cu")
        document = json.dumps({key: value for key, value in self._document.items() if value != []
                               or key not in ("definitions", "macros", "structs")}, indent=1)
        for name, text in {self.file_name + ".cu": self._code, **self._headers,
                           self.file_name + ".json": document + "\n"}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8", errors="surrogateescape") as out:
                out.write(text)
        return source

    def kernel(self, folder: str, db: str) -> Kernel:
        """The kernel in a folder, with its database."""
        try:
            return Kernel(self.write(folder), db=db)
        except SpaceError as error:
            which = re.fullmatch(r"/parameters/(\d+)/(?:option|values).*", error.pointer)
            option = self._document["parameters"][int(which[1])] if which else {}
            if "option" not in option:
                raise
            raise ArgumentError(f"compiler_options: '{option['option']}{option['default']}' cannot be taken over (docs/search_spaces.md lists those "
                                "that can)") from None

    @property
    def is_single(self) -> bool:
        """Whether there is but one configuration."""
        return all(len(values) == 1 for values in self.parameters.values.values())

    def single(self, config: Mapping[str, Any], folder: str) -> Kernel:
        """The kernel with one configuration only."""
        document = dict(self._document)
        own = {self.parameters.own(name): self.parameters.own_value(name, value) for name, value in config.items()}
        document["parameters"] = [{**one, "values": [own.get(one["name"], one["default"])],
                                   "default": own.get(one["name"], one["default"])}
                                  for one in document["parameters"]]
        one = Space.__new__(Space)
        one.__dict__.update(self.__dict__, _document=document)
        return one.kernel(folder, os.path.join(folder, "none.db"))

    def config_of(self, text: str) -> dict[str, Any]:
        """The configuration that a text such as `A=1 B="x y"` shows."""
        shown = {name: re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
                 for name, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', text)}
        own = {one["name"]: _shown(one, shown[one["name"]]) for one in self._document["parameters"]}
        return self.parameters.config(own)

    def leave_out(self, results: Sequence[Result]) -> bool:
        """Excludes wrong configurations from launches by constraints; false if constraints cannot express that. The
        fastest configuration becomes the default."""
        parameters = self._document["parameters"]
        if any(isinstance(value, (float, str)) for one in parameters for value in one["values"] if "option" not in one):
            return False
        for one, now in zip(parameters, self.parameters.document({name: results[0][name] for name in self.parameters})):
            one["default"] = now["default"]
        known = {constraint["require"] for constraint in self._document["constraints"]}
        for result in results:
            if isinstance(result.get("__error__"), WrongResultConfig):
                text = f"!({self.parameters.condition({name: result[name] for name in self.parameters})})"
                if text not in known:
                    self._document["constraints"].append({"require": text, "because": result["reason"]})
        return True


class NothingLeft(ArgumentError):
    """No configuration meets the conditions."""


def _shown(parameter: Mapping[str, Any], text: str) -> Any:
    """The value that a configuration's text shows."""
    for value in parameter["values"]:
        shown = ("true", "1") if value is True else ("false", "0") if value is False else (str(value),)
        if text in shown or isinstance(value, float) and float(text) == value:
            return value
    raise AssertionError(f"{parameter['name']}={text}")


def _block_names(given: Any, parameters: Mapping[str, Any]) -> list[str]:
    """The parameters of a block's axes: those that are named, then block_size_x and so on, in capitals or not."""
    alike = {name.lower(): name for name in parameters}
    usual: list[str] = [name if name in parameters else alike.get(name, name) for name in _NAMES]
    if given is None:
        if not any(name in parameters for name in usual):
            warnings.warn(f"tune_params has no block_size_x, so that blocks have {_USUAL_BLOCK} threads; name the parameter "
                          "with block_size_names if it has another", stacklevel=5)
        return usual
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise TypeError("block_size_names: it is not a list of names")
    if len(given) > len(_NAMES):
        raise ArgumentError(f"block_size_names: it has {len(given)} names for {len(_NAMES)} axes")
    for name in given:
        if name not in parameters and name.lower() not in _NAMES:
            near = difflib.get_close_matches(name, parameters, 1)
            raise ArgumentError(f"block_size_names: tune_params has no '{name}'" + (f"; did you mean '{near[0]}'?" if near
                                                                                    else ""))
    named = [name if name in parameters else alike.get(name.lower(), name) for name in map(str, given)]
    return named + usual[len(named):]
