"""How arguments become the words of options, which the libraries check as those of a command line."""

import ctypes
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Union


def _require_main_interpreter() -> None:
    """The compiled part keeps Python's objects for the whole process."""
    current, number = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_GetID
    current.restype, number.argtypes, number.restype = ctypes.c_void_p, [ctypes.c_void_p], ctypes.c_int64
    if number(current()) != 0:
        raise ImportError("pascaline works in a process's main interpreter only; use a process in place of a subinterpreter")


_require_main_interpreter()

from . import _native
from ._errors import ArgumentError, Error

PREFIX = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(PREFIX, "bin", "pascaline")
VERSION: str = _native.version

_native.set_installation_prefix(PREFIX)

Path = Union[str, "os.PathLike[str]"]
Value = Union[bool, int, float, str, "os.PathLike[str]", None]
Problem = Union[str, Mapping[str, Union[int, str]]]


def path_text(name: str, value: Path | None) -> str:
    """The path as text; empty for None."""
    if value is None:
        return ""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: {type(value).__name__} is not a path")
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError(f"{name}: bytes are not a path; pass a str")
    if text == "":
        raise ArgumentError(f"{name}: it is empty")
    return plain(name, text)


def folder_text(name: str, value: Path | None) -> str:
    """As `path_text`, of a folder that is there."""
    text = path_text(name, value)
    if text and not os.path.isdir(text):
        raise ArgumentError(f"{name}: there is no folder {text}")
    return text


def write_text(name: str, file: str, text: str) -> None:
    """Writes a file that an argument named."""
    try:
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise ArgumentError(f"{name}: cannot write {file}: {error.strerror}") from None
    except OSError as error:
        raise Error(f"{name}: cannot write {file}: {error.strerror}") from None


def flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: {type(value).__name__} is not a bool")
    return value


def text_of(name: str, value: str | None) -> str:
    """The text; empty for None."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name}: {type(value).__name__} is not a str")
    return plain(name, value)


def number_of(value: object) -> object:
    """An int of what is a whole number of another library, such as NumPy's; all else as it is."""
    if isinstance(value, int) or not hasattr(value, "__index__"):
        return value
    try:
        return operator.index(value)
    except TypeError:  # of an array
        return value


def whole(name: str, value: int, low: int) -> int:
    given = number_of(value)
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{name}: {type(value).__name__} is not an int")
    value = given
    if not low <= value < 2**63:
        raise ArgumentError(f"{name}: must be a whole number of at least {low}, not {value}")
    return value


def plain(name: str, text: str) -> str:
    """The text, if it can be handed on."""
    if "\0" in text:
        raise ArgumentError(f"{name}: it has a zero byte")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{name}: it is not valid Unicode") from None
    return text


def problem_text(name: str, problem: Problem) -> str:
    """"M=512,STORAGE=float32" of a mapping, or the text that is given."""
    if isinstance(problem, str):
        return plain(name, problem)
    if not isinstance(problem, Mapping):
        raise TypeError(f"{name}: {type(problem).__name__} is not a problem; pass a dict such as {{'M': 512, 'N': 2048}}")
    parts = []
    for key, given in problem.items():
        value = number_of(given)
        if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, (int, str)):
            raise TypeError(f"{name}: {key!r}: {value!r} is not the name of a dimension or type and its value")
        parts.append(f"{plain(name, key)}={plain(name, str(value))}")
    return ",".join(parts)


def problem_texts(name: str, problems: Problem | Iterable[Problem] | None) -> list[str]:
    if problems is None:
        return []
    if not isinstance(problems, Iterable):
        raise TypeError(f"{name}: {type(problems).__name__} is not a problem or a list of problems")
    one = isinstance(problems, (str, Mapping))
    texts = [problem_text(name, problem) for problem in ([problems] if one else problems)]  # type: ignore[arg-type]
    if not texts:
        raise ArgumentError(f"{name}: the list is empty; None stands for the kernel's example")
    if "" in texts:
        raise ArgumentError(f"{name}: one has no dimensions")
    return texts


def texts_of(name: str, value: Union[str, Iterable[str], None]) -> list[str]:
    """The texts of one or several."""
    if value is None:
        return []
    if not isinstance(value, Iterable):
        raise TypeError(f"{name}: {type(value).__name__} is not a str or a list of them")
    return [text_of(name, one) for one in ([value] if isinstance(value, str) else value)]


def words_of(values: Mapping[str, object]) -> list[str]:
    """"--min-samples=5" of min_samples=5; a list is a word each, None and False nothing."""
    words: list[str] = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        several = value if isinstance(value, (list, tuple)) else [value]
        for one in map(number_of, several):
            if one is None or one is False:
                continue
            if one is True:
                words.append(f"{option}=true")
            elif isinstance(one, (str, int, float, os.PathLike)):
                text = os.fspath(one) if isinstance(one, os.PathLike) else str(one)
                if text == "":  # after which an option would take the next one's word
                    raise ArgumentError(f"{name}: it is empty")
                words.append(f"{option}={plain(name, text)}")
            else:
                raise TypeError(f"{name}: {type(one).__name__} is not a value for it")
    return words
