"""Compiler options of scripts, as parameters of a search space with one value."""

import os
import re
from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentError

# They say for which device and how well to compile, which a sweep knows, or steer what NVRTC does not have.
_IGNORED = (r"-arch(=.*)?|--?gpu-architecture(=.*)?|--?gpu-code(=.*)?|-code=.*|-gencode(=.*)?|--generate-code(=.*)?|-O[0-3s]?|-Xcompiler(=.*)?"
            r"|--compiler-options?(=.*)?|-m64|-g|-cubin|--cubin|-ptx|--ptx|-Wno-.*|-Wall|--?expt-relaxed-constexpr|--?expt-extended-lambda")
_WITH_VALUE = ("-arch", "--gpu-architecture", "-gpu-architecture", "-gencode", "--generate-code", "-Xcompiler",
               "--compiler-options", "-code",
               "--gpu-code", "-I", "--include-path", "-D", "--define-macro", "-std", "--std", "-maxrregcount", "--maxrregcount",
               "-Xptxas",
               "--ptxas-options")
_NAMES = {"-use_fast_math": "--use_fast_math", "-include-path": "--include-path"}


class Options:
    """`parameters` of the search space, `folders` in which headers are looked for, and `ignored` options."""

    def __init__(self, given: Sequence[str] | None) -> None:
        self.parameters: list[dict[str, Any]] = []
        self.folders: list[str] = []
        self.ignored: list[str] = []
        if isinstance(given, str) or not isinstance(given, (Sequence, type(None))):
            raise TypeError("compiler_options: it is not a list of texts")
        words = [str(word) for word in given or ()]
        while words:
            word = words.pop(0).strip()
            if word in _WITH_VALUE and words:
                word += ("" if word in ("-I", "-D") else "=") + words.pop(0).strip()
            self._take(_NAMES.get(word, word))

    def _take(self, word: str) -> None:
        folder = re.fullmatch(r"(?:-I|--include-path=)(.+)", word)
        if folder:
            self.folders.append(os.path.abspath(os.path.expanduser(folder[1])))
        elif not word or re.fullmatch(_IGNORED, word):
            self.ignored.append(word)
        else:
            option = re.fullmatch(r"(-D|-{1,2}[\w-]+=)(.+)|(-{1,2})([A-Za-z][\w-]*)", word)
            if not option:
                raise ArgumentError(f"compiler_options: '{word}' cannot be taken over (docs/search_spaces.md lists those that can)")
            name, value = (option[1], option[2]) if option[1] else (option[3], option[4])
            value = value if not value.isdecimal() else int(value)
            self.parameters.append({"name": f"compiler_option_{len(self.parameters)}", "values": [value], "default": value,
                                    "option": name})
