"""Results for notebooks."""

import html
import re
from collections.abc import Iterable
from typing import Any

from ._commands import report
from ._words import Path, whole

_SETTING = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


def _value(text: str) -> Any:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def frame(rows: Iterable[dict[str, Any]]) -> Any:
    """A pandas DataFrame of what `winners` or `trials` returns, with a column for each parameter in place of `config`, and for
    each dimension and type in place of `problem`. Needs pandas."""
    import pandas

    flat = []
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise TypeError(f"rows: {type(rows).__name__} is not a list of dicts")
    for row in rows:
        if not isinstance(row, dict):
            raise TypeError(f"rows: one is {type(row).__name__}, not a dict")
        one = {name: value for name, value in row.items() if name not in ("problem", "config")}
        kernel, _, problem = str(row.get("problem", "")).partition(" ")
        if kernel:
            one["kernel"] = kernel
        for text in (problem, str(row.get("config", ""))):
            one.update({name: _value(value) for name, value in _SETTING.findall(text)})
        flat.append(one)
    return pandas.DataFrame(flat)


class Page:
    """A report that a notebook shows inline. html: its text."""

    def __init__(self, text: str, height: int) -> None:
        self.html = text
        self.height = height

    def _repr_html_(self) -> str:
        # Apart from the notebook's page, whose styles and scripts it would meet otherwise.
        return (f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" '
                f'style="width: 100%; height: {self.height}px; border: 0"></iframe>')


def page(db: Path | None = None, *, height: int = 700, **options: Any) -> Page:
    """The HTML report of a database, for the end of a notebook's cell. height: in pixels; options: those of `report`."""
    for name in ("file", "format"):
        if name in options:
            raise TypeError(f"{name} is not an argument of page: it is HTML, and is shown")
    pixels = whole("height", height, 1)
    return Page(report(db, format="html", **options) or "", pixels)
