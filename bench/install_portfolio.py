#!/usr/bin/env python3
"""Puts portfolios into search spaces: install_portfolio.py SEARCH_SPACES PORTFOLIO.json...

PORTFOLIO.json is what `pascaline portfolio --json` prints. `portfolio` and, by architecture, `portfolios` take the place of
those that a space has, behind its parameters and defaults; nothing else of the file changes.
"""
import json
import pathlib
import re
import sys


def member_lines(members, indent):
    return ",\n".join(" " * indent + json.dumps(member) for member in members)


def written(general, own):
    """The lines of both keys."""
    parts = []
    if general:
        parts.append('  "portfolio": [\n' + member_lines(general, 4) + "\n  ],\n")
    if own:
        each = (f'    "{name}": [\n' + member_lines(members, 6) + "\n    ]" for name, members in sorted(own.items()))
        parts.append('  "portfolios": {\n' + ",\n".join(each) + "\n  },\n")
    return "".join(parts)


def installed(text, portfolio):
    document = json.loads(text)
    general = portfolio.get("portfolio", document.get("portfolio", []))
    own = {**document.get("portfolios", {}), **portfolio.get("portfolios", {})}
    text = re.sub(r'^  "portfolio": \[.*?^  \],\n', "", text, flags=re.M | re.S)
    text = re.sub(r'^  "portfolios": \{.*?^  \},\n', "", text, flags=re.M | re.S)
    place = re.search(r'^  "parameters": \[.*?^  \],\n(?:  "defaults": .*?\},\n(?=  "))?', text, flags=re.M | re.S).end()
    text = text[:place] + written(general, {name: list_ for name, list_ in own.items() if list_}) + text[place:]
    after = json.loads(text)
    changed = {"portfolio", "portfolios"}
    if any(after.get(key) != document.get(key) for key in (after.keys() | document.keys()) - changed):
        raise ValueError("the file would change elsewhere: is it formatted as the others are?")
    return text


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        for kernel, portfolio in json.loads(pathlib.Path(name).read_text(encoding="utf-8")).items():
            file = folder / f"{kernel}.json"
            file.write_text(installed(file.read_text(encoding="utf-8"), portfolio), encoding="utf-8")
            print(f"{file}: {', '.join(portfolio)}")


if __name__ == "__main__":
    main()
