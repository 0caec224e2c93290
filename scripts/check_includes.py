#!/usr/bin/env python3
"""Checks includes: no file includes itself through others, and no folder includes one above it.

    scripts/check_includes.py [--root FOLDER]

The order of the folders is the table MAY_INCLUDE in this script. Two folders side by side, such as tuner/sweep and
tuner/measure, must not include each other either. scripts/includes_known.tsv lists the present faults, one pair of files
or folders per line. The list may only shrink: a pair that no longer occurs is also a fault until its line is removed.
The check reads tracked files and new files that git does not ignore. The exit code is 1 if anything is wrong.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

MAY_INCLUDE = {
    "kernel_templates": set(),
    "search_spaces": set(),
    "core": set(),
    "db": {"core"},
    # Code that the processor and devices both compile is in kernel_templates/inputs.
    "runtime": {"core", "db", "kernel_templates"},
    "model": {"core", "db", "runtime"},
    "tuner": {"core", "db", "runtime", "model", "kernel_templates"},
    "report": {"core", "db"},
    "app": {"core", "db", "runtime", "model", "tuner", "report"},
    "cli": {"core", "db", "runtime", "model", "tuner", "report", "app"},
    "python": {"core", "db", "runtime", "model", "tuner", "report", "app"},
}
SUFFIXES = (".hpp", ".cpp", ".h", ".cu", ".cuh")
# Where the compilers look for what is not found from the project's root or beside the file.
FURTHER_FOLDERS = ("kernel_templates", "runtime/device/shim")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)


def part_of(file):
    """The row of MAY_INCLUDE that a file belongs to; that of tests, bench and the like has none."""
    return file.split("/")[0]


def folder_of(file):
    """The first two folders of a file's path."""
    return "/".join(file.split("/")[:-1][:2])


def project_files(root):
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted({name for name in names if name.endswith(SUFFIXES) and (root / name).is_file()})


def read_includes(root, files):
    """(file, line, included file) for each include of one of the files by another."""
    known = set(files)
    found = []
    for file in files:
        text = (root / file).read_text(encoding="utf-8", errors="replace")
        for match in INCLUDE.finditer(text):
            beside = [os.path.dirname(file)] if match[1] == '"' else []
            for folder in ("", *beside, *FURTHER_FOLDERS):
                target = os.path.normpath(os.path.join(folder, match[2]))
                if target in known:
                    found.append((file, text.count("\n", 0, match.start(2)) + 1, target))
                    break
    return found


def find_circles(includes):
    """Each group of files that include each other, as one circle from a file back to itself."""
    graph = {}
    for file, _, target in includes:
        graph.setdefault(file, []).append(target)
    state, circles = {}, []
    for start in graph:
        if start in state:
            continue
        path, stack = [start], [iter(graph[start])]
        state[start] = "open"
        while stack:
            target = next(stack[-1], None)
            if target is None:
                state[path.pop()] = "done"
                stack.pop()
            elif state.get(target) == "open":
                circles.append([*path[path.index(target):], target])
            elif target not in state:
                state[target] = "open"
                path.append(target)
                stack.append(iter(graph.get(target, ())))
    return circles


def find_faults(includes):
    """Faults as ((from, to), message)."""
    faults = []
    for file, line, target in includes:
        part, other = part_of(file), part_of(target)
        if part != other and part in MAY_INCLUDE and other not in MAY_INCLUDE[part]:
            allowed = ", ".join(sorted(MAY_INCLUDE[part])) or "nothing outside it"
            faults.append(((file, target), f"{file}:{line}: includes {target}, but {part} may include only {allowed}"))
    pairs = {}
    for file, line, target in includes:
        pair = folder_of(file), folder_of(target)
        related = f"{pair[0]}/".startswith(f"{pair[1]}/") or f"{pair[1]}/".startswith(f"{pair[0]}/")  # one within the other
        if not related and part_of(file) == part_of(target) and part_of(file) in MAY_INCLUDE:
            pairs.setdefault(pair, f"{file}:{line}")
    for (one, other), place in sorted(pairs.items()):
        if one < other and (other, one) in pairs:
            faults.append(((one, other), f"{place}: {one} and {other} include each other, the other way in {pairs[other, one]}"))
    for circle in find_circles(includes):
        faults.append(((circle[0], circle[-2]), "include circle: " + " -> ".join(circle)))
    return faults


def read_known(file):
    if not file.exists():
        return set()
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {tuple(line.split("\t")) for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1], help="the project (default: this one)")
    root = parser.parse_args().root
    files = project_files(root)
    includes = read_includes(root, files)
    known = read_known(root / "scripts" / "includes_known.tsv")
    faults = find_faults(includes)
    messages = [message for pair, message in faults if pair not in known]
    present = {pair for pair, _ in faults}
    messages += [f"scripts/includes_known.tsv: {' and '.join(pair)}: no longer so, remove the line" for pair in sorted(known - present)]
    for message in messages:
        print(message)
    if not messages:
        print(f"  includes: {len(includes)} in {len(files)} files, none points up, no circle, {len(known)} known faults left")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
