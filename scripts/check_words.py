#!/usr/bin/env python3
"""Looks for the words of scripts/words.tsv in docs, comments, string literals, identifiers and commit subjects.

    scripts/check_words.py [--root FOLDER] [--since REVISION] [--show [PATH...]] [--update]

scripts/words_known.tsv lists the present hits, by file, as count and pattern. The list may only shrink. The check fails when a count
rises, and when a listed count is larger than the present one. To lower the list, rewrite some of the sentences that
--show prints, then run --update and commit scripts/words_known.tsv with them. --update never raises a count, but a file that
was moved takes its counts along. Where a hit is right as it is, make the pattern in scripts/words.tsv narrower.

With --since the list must also be no longer than at that revision, and commit subjects since then must be imperative, at
most 72 characters long, without a semicolon and without those words. Where a shallow clone lacks the revision, only the last
commit is checked. The check reads tracked files and new files that git does not ignore. The exit code is 1 if anything is
wrong.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

LIST = "scripts/words_known.tsv"
# The words themselves, and pages that are generated from texts that are checked where they are written.
EXEMPT = re.compile(r"scripts/(words(_known)?\.tsv|check_words\.py)|tests/scripts/check_words_test\.py|docs/reference/.*")
CODE, START = "\0", "\1"  # what is not text, and where a comment begins

C_STRINGS = r'(?:\bu8|\b[uUL])?R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\\n])+\''
SHELL_STRINGS = r'"(?:\\.|[^"\\])*"|(?<![\w\\])\'[^\']*\''
C = re.compile(rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{C_STRINGS})", re.S)
PYTHON = re.compile(r"""(?P<comment>\#[^\n]*)|(?P<string>\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
SHELL = re.compile(rf"(?P<comment>(?:^|(?<=\s))\#[^\n]*)|(?P<string>{SHELL_STRINGS})", re.S | re.M)
CMAKE = re.compile(r'(?P<comment>\#[^\n]*)|(?P<string>"(?:\\.|[^"\\])*")', re.S)
SCRIPT = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""", re.S)
SQL = re.compile(r"(?P<comment>--[^\n]*)|(?P<string>'[^']*')", re.S)
STYLE = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<string>(?!))", re.S)
PAGE = None  # all of it is text
LANGUAGES = {"cpp": C, "hpp": C, "h": C, "in": C, "cu": C, "cuh": C, "py": PYTHON, "sh": SHELL, "cmake": CMAKE, "js": SCRIPT,
             "sql": SQL, "css": STYLE, "md": PAGE, "html": PAGE, "json": PAGE, "toml": CMAKE, "yml": CMAKE}
LEADER = re.compile(r"(?m)^[ \t]*(?://[/!]?<?|/?\*|#+|--)")
ESCAPE = re.compile(r"\\.")
DATA = re.compile(r"(tests|bench|examples)/.*\.json")

PAST = re.compile(r"(?!(?:Em|Sh|Sp|S|F|N|Pro|Ex|Suc)c?e?ed$|Embed$).*ed|(?!Bring$|String$).*ing|(?!.*(?:ss|us|as)$).*s")
NOT_VERBS = set("A An The This That These Those It One Two No New More All Every Each Some Any What How Which Where When Whether Why As Of "
                "For In On At By To From With After Before If And Or".split())

Pattern = collections.namedtuple("Pattern", "key regex hint instead where")
Hit = collections.namedtuple("Hit", "file line text pattern")


def literal_of(key):
    """What the pattern begins with, in small letters, as far as that is plain text."""
    plain = re.match(r"\\b([a-z ]*)([?(\[]?)", key)
    return plain[1][:-1] if plain and plain[2] == "?" else plain[1] if plain else ""


def read_patterns(file):
    patterns = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            key, instead, where = line.split("\t")
            begin = START + r"[\s/*!<#]*"
            spaced = (key.replace("^", begin, 1) if where == "comments" else key).replace(" ", r"\s+")
            patterns.append(Pattern(key, re.compile(spaced, re.I), literal_of(key), instead, where))
    return patterns


def code_mark(code):
    """What stands for code in the text of a source: its line ends are kept, so that lines can be counted."""
    return CODE + "\n" * code.count("\n")


def split_source(source, language):
    """Its text, with marks instead of code, and its code."""
    text, code, end, last = [], [], 0, None
    for match in language.finditer(source):
        between, piece, kind = source[end:match.start()], match[0], match.lastgroup
        # A comment of several lines is one text, and so are literals with nothing between them.
        joined = kind == last and not between.strip() and (kind == "string" or between.count("\n") == 1)
        text.append(between if joined else code_mark(between))
        if kind == "comment":
            text.append((" " if joined else START) + LEADER.sub(" ", piece))
        else:
            text.append(f" {ESCAPE.sub(' ', piece[1:-1])} ")
        last = kind
        code.append(between)
        end = match.end()
    text.append(code_mark(source[end:]))
    code.append(source[end:])
    return "".join(text), "\n".join(code)


def words_of(identifier):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", " ", identifier).strip()


def project_files(root):
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in sorted(set(subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0"))):
        ending = "cmake" if name.endswith("CMakeLists.txt") else name.rsplit(".", 1)[-1]
        if ending in LANGUAGES and not EXEMPT.fullmatch(name) and not DATA.fullmatch(name) and (root / name).is_file():
            yield name, LANGUAGES[ending]


class Reader:
    def __init__(self, patterns):
        self.text_patterns = [p for p in patterns if p.where != "identifiers"]
        self.name_patterns = [p for p in patterns if "identifiers" in p.where]
        self.names = {}  # identifier -> patterns that it matches

    def of_name(self, name):
        if name not in self.names:
            words = words_of(name)
            self.names[name] = [p for p in self.name_patterns if p.regex.search(words)]
        return self.names[name]

    def of_text(self, file, text):
        small = " ".join(text.lower().split())
        for pattern in self.text_patterns:
            if pattern.hint in small:
                for match in pattern.regex.finditer(text):
                    begin = match.start() + len(match[0]) - len(match[0].lstrip(START + " /*!<#\n\t"))
                    yield Hit(file, text.count("\n", 0, begin) + 1, " ".join(text[begin:match.end()].split()), pattern)

    def of_file(self, file, source, language):
        if language is PAGE:
            yield from self.of_text(file, source)
            return
        text, code = split_source(source, language)
        yield from self.of_text(file, text)
        for name, count in collections.Counter(re.findall(r"[A-Za-z_]\w*", code)).items():
            for pattern in self.of_name(name):
                line = source.count("\n", 0, re.search(rf"\b{name}\b", source).start()) + 1
                yield from [Hit(file, line, name, pattern)] * count


def read_list(text):
    known = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            file, *entries = line.split("\t")
            for entry in entries:
                count, key = entry.split(" ", 1)
                known[file, key] = int(count)
    return known


def write_list(file, counts):
    lines = {}
    for (name, key), count in sorted(counts.items()):
        if count > 0:
            lines[name] = lines.get(name, name) + f"\t{count} {key}"
    head = "# Present hits of scripts/words.tsv in each file. Only scripts/check_words.py --update writes this list.\n"
    file.write_text(head + "".join(f"{line}\n" for line in lines.values()), encoding="utf-8")


def allowed_counts(known, files):
    """The counts that each file may have, and for each pattern those of files that are gone, which new files may have."""
    gone = collections.Counter()
    for (file, key), count in known.items():
        if file not in files:
            gone[key] += count
    return gone, {pair: count for pair, count in known.items() if pair[0] in files}


def compare(known, hits, files):
    """Faults, and the counts that the list would have after --update."""
    counts = collections.Counter((hit.file, hit.pattern.key) for hit in hits)
    gone, allowed = allowed_counts(known, files)
    listed_files = {file for file, _ in known}
    faults, risen, moved = [], {}, collections.Counter()
    for (file, key), count in sorted(counts.items()):
        over = count - allowed.get((file, key), 0)
        if over > 0 and file not in listed_files and moved[key] + over <= gone[key]:
            moved[key] += over
        elif over > 0:
            risen[file, key] = count
            there = [hit for hit in hits if (hit.file, hit.pattern.key) == (file, key)]
            faults += [f"{hit.file}:{hit.line}: '{hit.text}', better: {hit.pattern.instead}" for hit in there[:5]]
            faults.append(f"{file}: {count} of '{key}', {allowed.get((file, key), 0)} known")
    lowered = sum(1 for pair, count in known.items() if counts[pair] < count)
    if (lowered or moved) and not risen:
        faults.append(f"{LIST}: {lowered} counts are larger than the present ones: run scripts/check_words.py --update")
    return faults, {pair: min(count, allowed.get(pair, 0)) if pair in risen else count for pair, count in counts.items()}


def git(root, *arguments):
    result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else None


def subject_faults(root, since, reader):
    if git(root, "rev-parse", "-q", "--verify", f"{since}^{{commit}}") is None:
        print(f"  words: this clone does not have {since}, so of the commit subjects only the last one is checked")
        log = git(root, "log", "-1", "--no-merges", "--format=%h%x09%s") or ""
    else:
        log = git(root, "log", "--no-merges", "--format=%h%x09%s", f"{since}..HEAD") or ""
    faults = []
    for line in log.splitlines():
        commit, subject = line.split("\t", 1)
        first = subject.split(" ")[0]
        if len(subject) > 72:
            faults.append(f"commit {commit}: its subject has {len(subject)} characters, and 72 are the maximum: {subject}")
        if ";" in subject:
            faults.append(f"commit {commit}: its subject has a semicolon, make it one topic: {subject}")
        if not re.fullmatch(r"[A-Z][a-z-]+", first) or first in NOT_VERBS or PAST.fullmatch(first):
            faults.append(f"commit {commit}: its subject must begin with a verb in the imperative, such as Add or Fix: {subject}")
        faults += [f"commit {commit}: '{hit.text}' in its subject, better: {hit.pattern.instead}" for hit in reader.of_text("", subject)]
    return faults


def growth_faults(root, since, known, patterns):
    """Faults of a list that is longer than at the revision, counting patterns that were there."""
    earlier = git(root, "show", f"{since}:{LIST}")
    words = git(root, "show", f"{since}:scripts/words.tsv")
    if earlier is None or words is None:
        return []
    before, now = collections.Counter(), collections.Counter()
    for counts, listed in ((before, read_list(earlier)), (now, known)):
        for (_, key), count in listed.items():
            counts[key] += count
    old = {line.split("\t")[0] for line in words.splitlines()}
    return [f"{LIST}: {now[p.key]} of '{p.key}', but {before[p.key]} at {since}: the list may only shrink"
            for p in patterns if p.key in old and now[p.key] > before[p.key]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1], help="the project (default: this one)")
    parser.add_argument("--since", metavar="REVISION", help="also check the commit subjects since this revision")
    parser.add_argument("--show", nargs="*", metavar="PATH", help="print every present hit, or those below the paths, and do nothing else")
    parser.add_argument("--update", action="store_true", help=f"lower the counts of {LIST} to the present ones")
    options = parser.parse_args()
    root = options.root
    patterns = read_patterns(root / "scripts" / "words.tsv")
    reader = Reader(patterns)
    hits, files = [], set()
    for name, language in project_files(root):
        files.add(name)
        hits += reader.of_file(name, (root / name).read_text(encoding="utf-8", errors="replace"), language)
    hits.sort(key=lambda hit: hit[:3])
    if options.show is not None:
        for hit in hits:
            if not options.show or any(hit.file == path or hit.file.startswith(path.rstrip("/") + "/") for path in options.show):
                print(f"{hit.file}:{hit.line}: '{hit.text}', better: {hit.pattern.instead}")
        return 0
    file = root / LIST
    first = options.update and not file.exists()
    known = read_list(file.read_text(encoding="utf-8")) if file.exists() else {}
    faults, lowered = compare(known, hits, files)
    if options.update:
        write_list(file, collections.Counter((hit.file, hit.pattern.key) for hit in hits) if first else lowered)
        known = read_list(file.read_text(encoding="utf-8"))
        faults = compare(known, hits, files)[0]
    if options.since:
        faults += growth_faults(root, options.since, known, patterns) + subject_faults(root, options.since, reader)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"  words: {len(files)} files, {len(hits)} known hits left")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
