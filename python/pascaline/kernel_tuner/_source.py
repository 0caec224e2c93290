"""The code of kernels: texts, files, lists of files, and functions of the parameters."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._errors import ArgumentError
from .._headers import Headers, read_text, with_headers
from .._words import path_text
from ._functions import Condition, Reading, called, rows
from ._parameters import Parameters, choice

MOST_SOURCES = 256


def is_file(source: str) -> bool:
    return not ("\n" in source or "{" in source)


def codes(source: Any, parameters: Parameters, folders: Sequence[str],
          conditions: Sequence[Condition]) -> tuple[list[tuple[str, str]], Headers]:
    """Each code with the condition under which it is taken, and copies of the headers that they include from beside them, by
    their names."""
    headers: Headers = {}
    if isinstance(source, (list, tuple)) and source and callable(source[0]):
        folders = [*folders, *_folders_of(source[1:])]
        source = source[0]
    if not callable(source):
        return [("1", code_of(source, folders, headers))], headers
    texts: dict[str, list[Any]] = {}

    def compute(config: Reading) -> str:
        code = called("kernel_source", source, config)
        if not isinstance(code, str):
            raise TypeError(f"kernel_source: the function gives a {type(code).__name__}, not the code")
        return code

    for row in rows("kernel_source", compute, parameters.values, conditions):
        texts.setdefault(row.result, []).append(row)
    if len(texts) > MOST_SOURCES:
        raise ArgumentError(f"kernel_source: the function makes {len(texts)} different codes; at most {MOST_SOURCES} can be taken")
    if len(texts) == 1:
        return [("1", with_headers(text, os.getcwd(), folders, headers)) for text in texts], headers
    read = {name for found in texts.values() for row in found for name in row.values}
    parameters.require_macros("kernel_source", read)
    parameters.index(read)
    return [(" || ".join(parameters.any_of(found)), with_headers(text, os.getcwd(), folders, headers))
            for text, found in texts.items()], headers


def _folders_of(files: Sequence[Any]) -> list[str]:
    return [os.path.dirname(os.path.abspath(file)) for file in files if isinstance(file, (str, os.PathLike))]


def code_of(source: Any, folders: Sequence[str], headers: Headers) -> str:
    """The code of a text, a file, or of the first of a list, which includes the others."""
    if isinstance(source, (list, tuple)):
        if not source:
            raise ArgumentError("kernel_source: the list is empty")
        folders = [*folders, *_folders_of(source[1:])]
        source = source[0]
    if isinstance(source, str) and not is_file(source):
        return with_headers(source, os.getcwd(), folders, headers)
    file = path_text("kernel_source", source)
    if not os.path.isfile(file):
        raise ArgumentError(f"kernel_source: the file {file} does not exist")
    return with_headers(read_text(file), os.path.dirname(os.path.abspath(file)), folders, headers)


def without_unrolling(code: str, parameters: Parameters) -> str:
    """The code, in which `#pragma unroll` by a parameter called loop_unroll_factor… asks for nothing where that is 0."""
    for name in parameters:
        if "loop_unroll_factor" in name and all(isinstance(value, int) for value in parameters.values[name]):
            code = re.sub(rf"^([ \t]*#[ \t]*pragma[ \t]+unroll[ \t]+\(?{name}\)?[ \t]*)$", rf"#if {name} != 0\n\1\n#endif",
                          code, flags=re.MULTILINE)
    return code


def defined(defines: Mapping[str, str | Callable[..., Any]] | None, parameters: Parameters, conditions: Sequence[Condition]) -> str:
    """Lines that define what the script asks for in place of the parameters."""
    if defines is None:
        return ""
    lines, read = [], []
    for name, value in dict(defines).items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ArgumentError(f"defines: '{name}' is not an identifier")

        def compute(config: Reading, value: Any = value) -> str:
            if callable(value):
                return str(called("defines", value, config))
            return re.sub(r"[A-Za-z0-9_]+", lambda word: str(config[word[0]]) if word[0] in config else word[0], str(value))

        found = rows(f"defines: {name}", compute, parameters.values, conditions)
        read.append((name, found))
        names = {one for row in found for one in row.values}
        parameters.require_macros("defines", names)
        parameters.index(names)
    for name, found in read:
        texts: dict[str, list[Any]] = {}
        for row in found:
            texts.setdefault(row.result.replace("\n", "\\\n"), []).append(row)
        # Its name may be that of a parameter, which conditions after this one still need.
        lines.append(choice([(" || ".join(parameters.any_of(of)), f"#define kt_define_{name} {text}\n")
                             for text, of in texts.items()]))
    return "".join(lines)
