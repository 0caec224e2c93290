#!/usr/bin/env python3
"""One workload of several: merge_workloads.py OUT.json IN.json...

Entries keep their phases; their names get the stem of the file they are from. A sweep tunes shapes that several have
only once.
"""
import json
import pathlib
import sys


def merged(files, name):
    phases, entries = {}, []
    for file in files:
        document = json.loads(file.read_text(encoding="utf-8"))
        for phase in document["phases"]:
            phases.setdefault(phase["name"], phase)
        for entry in document["entries"]:
            named = dict(entry, name=f"{entry['name']}_{file.stem}")
            if "alternative_of" in entry:
                named["alternative_of"] = [f"{other}_{file.stem}" for other in entry["alternative_of"]]
            entries.append(named)
    return {
        "schema": 1,
        "name": name,
        "source": "merged from " + ", ".join(file.name for file in files),
        "phases": list(phases.values()),
        "entries": entries,
    }


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    out = pathlib.Path(sys.argv[1])
    files = [pathlib.Path(name) for name in sys.argv[2:]]
    out.write_text(json.dumps(merged(files, out.stem), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
