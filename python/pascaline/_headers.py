"""A kernel's code: copies of the headers that it includes from beside it or from given folders, parameters of functions."""

import hashlib
import os
import re
from collections.abc import Callable, Sequence

Headers = dict[str, str]


def read_text(file: str) -> str:
    with open(file, encoding="utf-8", errors="surrogateescape") as text:
        return text.read()


def with_headers(source: str, folder: str, folders: Sequence[str], copies: Headers,
                 require: Callable[[str], object] = lambda file: None) -> str:
    """The code of a file in `folder`, in which includes of files that are there or in `folders` name their copies. Copies lie in
    one folder, so that they get names of their own, of which what they include is part. `require` is asked about each file."""
    names: dict[str, str] = {}

    def taken(text: str, here: str) -> str:
        def renamed(found: re.Match[str]) -> str:
            for place in ([here, folder] if found[2] == '"' else []) + [*folders]:
                file = os.path.realpath(os.path.join(place, found[3]))
                if os.path.isfile(file):
                    require(file)
                    return f'{found[1]}"{copied(file)}"'
            return found[0]

        return re.sub(r'^([ \t]*#[ \t]*include[ \t]*)(["<])([^">\n]+)[">]', renamed, text, flags=re.MULTILINE)

    def copied(file: str) -> str:
        if file not in names:
            text = read_text(file)
            stem, ending = os.path.splitext(os.path.basename(file))
            kept = hashlib.sha256(f"{os.path.relpath(file, folder)}\n{text}".encode(errors="surrogateescape")).hexdigest()[:8]
            names[file] = f"{stem}-{kept}{ending}"
            copies[names[file]] = taken(text, os.path.dirname(file))
        return names[file]

    return taken(source, folder)


def split_parameters(text: str) -> list[str]:
    """The parameters of a function, by the text between its parentheses; commas within <> separate template arguments."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts if text.strip() else []
